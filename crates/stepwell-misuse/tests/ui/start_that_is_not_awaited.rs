#![deny(unused_must_use)]
use stepwell::{Engine, WorkflowRef};

fn start(engine: &Engine, workflow: &WorkflowRef<u32, u32>) {
    engine.start(workflow, 1).tenant("t");
    engine.run(workflow, 1);
}

fn main() {}
