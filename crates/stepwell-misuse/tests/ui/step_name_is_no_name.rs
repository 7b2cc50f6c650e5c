use stepwell::{Ctx, Result};

async fn function(ctx: Ctx<u32>) -> Result<u32> {
    ctx.step(7, async || Ok(1)).await
}

fn main() {
    let _ = function;
}
