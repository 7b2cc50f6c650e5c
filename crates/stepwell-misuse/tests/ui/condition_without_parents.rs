use stepwell::Workflow;

fn main() {
    let mut w = Workflow::define::<u32, ()>("w");
    let _ = w.step("a").skip_if(|_| true).run(async |ctx| Ok(*ctx.input()));
}
