//! `stepwell onboarding`: a durable function that can be killed anywhere, and goes on at the next
//! call.
//!
//! A run is known by its id, so a second call finds the first one's run: it carries it on, or says
//! that it has ended before.

mod function;
mod progress;

use std::time::Duration;

use stepwell::cli::Output;
use stepwell::{Config, RunStatus};

use super::Failure;
use crate::args::OnboardingArgs;
use function::{Company, Employee, onboarding};
use progress::Progress;

/// Whose employees they are.
const TENANT: &str = "acme";

/// Somebody waits for what a killed process has left, also where only its silence tells.
const LEASE: Duration = Duration::from_secs(3);

/// The run has ended when the engine is stopped. Of others that it has carried on, steps that go on
/// are handed back.
const GRACE: Duration = Duration::from_secs(1);

pub(super) fn run(args: &OnboardingArgs, output: Output) -> Result<(), Failure> {
    tokio::runtime::Runtime::new()?.block_on(onboard(args, output))
}

async fn onboard(args: &OnboardingArgs, output: Output) -> Result<(), Failure> {
    let progress = Progress::new(TENANT, &args.id, args.crash_after, output);
    let company = Company { progress: progress.clone(), pace: args.pace };
    let config = Config {
        lease: LEASE,
        heartbeat_interval: LEASE / 3,
        leader_ttl: LEASE,
        ..Config::default()
    };
    let builder = args.store.engine_builder().await?.config(config).app("onboarding");
    let mut builder = builder.default_tenant(TENANT).state(company);
    let onboarding = builder.function("onboarding", onboarding);
    let engine = builder.start().await?;

    let employee = Employee { id: args.id.clone() };
    let run = engine.start(&onboarding, employee).id(&args.id).await?;
    let was_over = !matches!(run.status().await?, RunStatus::Running | RunStatus::Ending);
    progress.begin(args.store.address()?)?;
    let welcome = run.result().await;
    progress.end(welcome?, was_over)?;
    engine.stop(GRACE).await;
    Ok(())
}
