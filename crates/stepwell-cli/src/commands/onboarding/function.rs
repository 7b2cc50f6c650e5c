//! The onboarding of an employee, as a durable function.

use std::time::Duration;

use futures_util::future::try_join;
use serde::{Deserialize, Serialize};
use stepwell::{Ctx, Result, Retry};

use super::progress::Progress;
use crate::args::OnboardingStep;

/// Who begins to work here.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Employee {
    pub(super) id: String,
}

/// What the steps have done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Welcome {
    pub(super) record: String,
    pub(super) laptop: String,
    pub(super) access: String,
    pub(super) mail: String,
}

/// What the functions of all runs share. A real company would keep its connections here.
pub(super) struct Company {
    pub(super) progress: Progress,
    /// How long a step takes.
    pub(super) pace: Duration,
}

type OnboardingCtx = Ctx<Employee, Company>;

/// The whole function. It may be stopped anywhere: what is recorded is not done again.
pub(super) async fn onboarding(ctx: OnboardingCtx) -> Result<Welcome> {
    let id = &ctx.input().id;
    let pace = ctx.state().pace;
    let record = format!("record of {id} created");
    let record = step(&ctx, OnboardingStep::CreateRecord, pace, record).await?;
    // Both begin at once. Whoever grants access takes their time.
    let (laptop, access) = try_join(
        step(&ctx, OnboardingStep::Laptop, pace, format!("laptop for {id} ordered")),
        step(&ctx, OnboardingStep::Access, 2 * pace, format!("access granted to {id}")),
    )
    .await?;
    let mail = format!("mail to {id} sent");
    let mail = step(&ctx, OnboardingStep::WelcomeMail, pace, mail).await?;
    Ok(Welcome { record, laptop, access, mail })
}

/// A step that is told to whoever watches.
async fn step(
    ctx: &OnboardingCtx,
    step: OnboardingStep,
    takes: Duration,
    does: String,
) -> Result<String> {
    let progress = &ctx.state().progress;
    let code = async || {
        progress.started(ctx.run_id(), step);
        call_out(takes).await;
        Ok(does.clone())
    };
    let done = ctx.step(step.name(), code).retry(Retry::exponential(3)).await?;
    // It is recorded by now: whatever happens to the process, it is not executed again.
    progress.recorded(ctx.run_id(), step, &done);
    Ok(done)
}

/// Stands in for a call to some other service.
#[expect(clippy::disallowed_methods, reason = "a call to another service takes real time")]
async fn call_out(takes: Duration) {
    tokio::time::sleep(takes).await;
}
