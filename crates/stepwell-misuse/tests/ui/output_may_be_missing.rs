use stepwell::Workflow;

fn workflow() -> Workflow<u32, u32> {
    let mut w = Workflow::define("w");
    let a = w.step("a").run(async |ctx| Ok(*ctx.input()));
    let b = w.step("b").after(a).skip_if(|n| *n > 1).run(async |_ctx, n| Ok(n));
    w.output(b)
}

fn main() {
    let _ = workflow();
}
