use stepwell::Workflow;

fn workflow() -> Workflow<u32, String> {
    let mut w = Workflow::define("w");
    let a = w.step("a").run(async |ctx| Ok(*ctx.input()));
    w.output(a)
}

fn main() {
    let _ = workflow();
}
