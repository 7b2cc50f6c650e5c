#![deny(unused_must_use)]
use stepwell::Workflow;

fn main() {
    let mut w = Workflow::define::<u32, ()>("w");
    w.wait::<u32>("payment", "paid");
}
