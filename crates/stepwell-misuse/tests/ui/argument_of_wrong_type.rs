use stepwell::Workflow;

fn main() {
    let mut w = Workflow::define::<u32, ()>("w");
    let a = w.step("a").run(async |ctx| Ok(*ctx.input()));
    let _ = w.step("b").after(a).run(async |_ctx, text: String| Ok(text));
}
