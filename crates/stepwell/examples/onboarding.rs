//! A durable function, and a command line for it in one call. Try
//! `cargo run -p stepwell --features cli --example onboarding --` with
//!
//! ```text
//! start onboarding --id ada --input '{"name": "Ada"}' --store demo.db
//! resume acme/ada --store demo.db       kill it, and type it again
//! signal acme/ada signed --store demo.db
//! show acme/ada --store demo.db
//! ```

use std::process::ExitCode;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use stepwell::cli::App;
use stepwell::{Ctx, Result, Retry, Signalled};

#[derive(Serialize, Deserialize)]
struct Employee {
    name: String,
}

async fn onboarding(ctx: Ctx<Employee>) -> Result<String> {
    let name = &ctx.input().name;
    let record = ctx.step("create-record", async || Ok(format!("record of {name}"))).await?;
    let (laptop, key) = tokio::try_join!(
        ctx.step("laptop", async || Ok(format!("laptop ({record})"))),
        ctx.step("access", async || Ok(format!("key of {name}"))).retry(Retry::exponential(5)),
    )?;
    let signed = ctx.wait::<()>("contract", "signed").timeout(Duration::from_hours(72)).await?;
    if signed == Signalled::TimedOut {
        return ctx.step("remind", async || Ok(format!("{name} did not sign"))).await;
    }
    ctx.step("welcome-mail", async || Ok(format!("{laptop}, {key}: welcome!"))).await
}

pub(crate) fn app() -> App {
    App::new(|builder| {
        let mut builder = builder.default_tenant("acme");
        builder.function("onboarding", onboarding);
        builder
    })
}

pub(crate) fn main() -> ExitCode {
    app().run_blocking()
}
