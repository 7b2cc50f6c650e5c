use stepwell::{Engine, WorkflowRef};

fn start(engine: &Engine, workflow: &WorkflowRef<u32, u32>) {
    let _ = engine.start(workflow, "one");
}

fn main() {
    let _ = start;
}
