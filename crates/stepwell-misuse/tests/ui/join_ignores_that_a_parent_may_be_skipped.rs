use stepwell::Workflow;

fn main() {
    let mut w = Workflow::define::<u32, ()>("w");
    let a = w.step("a").run(async |ctx| Ok(*ctx.input()));
    let b = w.step("b").after(a).skip_if(|n| *n > 1).run(async |_ctx, n| Ok(n));
    let _ = w.step("c").after((a, b)).run(async |_ctx, (a, b): (u32, u32)| Ok(a + b));
}
