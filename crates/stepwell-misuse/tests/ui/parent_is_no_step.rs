use stepwell::Workflow;

fn main() {
    let mut w = Workflow::define::<u32, ()>("w");
    let _ = w.step("b").after(5).run(async |_ctx, n: u32| Ok(n));
}
