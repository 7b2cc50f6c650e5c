use std::rc::Rc;

use stepwell::Workflow;

fn main() {
    let mut w = Workflow::define::<u32, ()>("w");
    let _ = w.step("a").run(async |_ctx| {
        let local = Rc::new(1_u32);
        std::future::ready(()).await;
        Ok(*local)
    });
}
