use stepwell::Workflow;

fn main() {
    let mut total = 0_u32;
    let mut w = Workflow::define::<(), ()>("count");
    w.step("add").run(async |_ctx| {
        total += 1;
        Ok(())
    });
}
