#![deny(unused_must_use)]

use stepwell::{Ctx, Result};

async fn function(ctx: Ctx<u32>) -> Result<u32> {
    ctx.step("charge", async || Ok(1));
    Ok(1)
}

fn main() {
    let _ = function;
}
