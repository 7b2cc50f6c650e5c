use stepwell::Workflow;

struct Opaque;

fn main() {
    let mut w = Workflow::define::<u32, ()>("w");
    let _ = w.step("a").run(async |_ctx| Ok(Opaque));
}
