use stepwell::{Engine, MemoryStore, Workflow};

struct App;

fn workflow() -> Workflow<u32, u32, App> {
    let mut w = Workflow::define("w");
    let a = w.step("a").run(async |ctx| Ok(*ctx.input()));
    w.output(a)
}

fn main() {
    let mut builder = Engine::builder(MemoryStore::new());
    let _ = builder.workflow(workflow());
}
