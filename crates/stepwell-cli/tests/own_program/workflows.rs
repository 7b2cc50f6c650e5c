//! The workflows of the user's program.

use std::time::Duration;

use stepwell::cli::App;
use stepwell::{Ctx, Result, StepError, Workflow};

/// What its functions share.
struct Shop {
    greeting: &'static str,
}

/// The user's program: a graph and functions, with a state and a default tenant.
pub(crate) fn app() -> App {
    App::new(|builder| {
        let mut builder = builder.default_tenant("bakery").state(Shop { greeting: "Hello" });
        let mut w = Workflow::define::<u64, Shop>("double");
        let double = w.step("double").run(async |ctx| Ok(2 * ctx.input()));
        builder.workflow(w.output(double));
        builder.function("greet", greet);
        builder.function("declined", declined);
        builder.function("approval", approval);
        builder.function("patient", patient);
        builder
    })
}

async fn greet(ctx: Ctx<String, Shop>) -> Result<String> {
    let greeting = ctx.state().greeting;
    let name = ctx.step("upper", async || Ok(ctx.input().to_uppercase())).await?;
    ctx.sleep("pause", Duration::from_millis(1)).await?;
    ctx.step("greet", async || Ok(format!("{greeting}, {name}!"))).await
}

async fn declined(ctx: Ctx<(), Shop>) -> Result<()> {
    ctx.step("charge", async || Err(StepError::permanent("the card was declined"))).await
}

/// A step that goes on until there is a file of this name.
async fn patient(ctx: Ctx<String, Shop>) -> Result<bool> {
    let step = ctx.step("watch", async || {
        while !std::fs::exists(ctx.input())? {
            tokio::task::yield_now().await;
        }
        Ok(true)
    });
    step.await
}

async fn approval(ctx: Ctx<(), Shop>) -> Result<String> {
    ctx.wait("approval", "approved").await
}
