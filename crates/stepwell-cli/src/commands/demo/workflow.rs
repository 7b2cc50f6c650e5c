//! The workflow of the demo: an order is checked, then charged and shipped, or rejected.
//!
//! ```text
//! validate ─┬─ charge ─┬─ fraud-window ────┬─ ship ─┬─ finalize
//!           │          └─ prepare-shipment ┘        │
//!           └─ reject ──────────────────────────────┘
//! ```

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use stepwell::core::run::RunFailure;
use stepwell::{Ctx, Result, Retry, StepError, Workflow};

use super::orders::{CENTS_MAX, Card, Order};

/// The delay before the first retry of a charge. Short, since somebody watches.
const RETRY_DELAY: Duration = Duration::from_millis(200);

/// What the steps of all runs share. A real shop would keep its connections here.
#[derive(Clone, Default)]
pub(super) struct Shop {
    /// Orders that support was told about.
    told: Arc<Mutex<Vec<String>>>,
}

/// How the workflow ends when nothing fails: its output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Done {
    Shipped { parcel: String },
    Rejected { reason: String },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Verdict {
    Valid,
    Invalid { reason: String },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Charge {
    key: String,
    cents: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Parcel {
    label: String,
}

type OrderCtx = Ctx<Order, Shop>;

/// The whole workflow.
pub(super) fn order_workflow(fraud_window: Duration) -> Workflow<Order, Option<Done>, Shop> {
    let mut w = Workflow::define("order-processing");
    let validate = w.step("validate").run(validate);
    let charge = w
        .step("charge")
        .after(validate)
        .skip_if(|verdict| !verdict.is_valid())
        .retry(Retry::exponential(3).initial(RETRY_DELAY))
        .timeout(Duration::from_secs(30))
        .run(charge);
    let reject = w
        .step("reject")
        .after(validate)
        .skip_if(Verdict::is_valid)
        .run_blocking(|ctx, verdict| reject(&ctx, verdict));
    let window = w.sleep("fraud-window", fraud_window).after(charge);
    let parcel = w.step("prepare-shipment").after(charge).run(prepare_shipment);
    let ship = w.step("ship").after((window.needed(), parcel.needed())).run(ship);
    let done = w.step("finalize").after((ship, reject)).run(finalize);
    w.on_failure(tell_support);
    w.output(done)
}

async fn validate(ctx: OrderCtx) -> Result<Verdict> {
    call_out(60).await;
    let order = ctx.input();
    if order.n_items == 0 {
        return Ok(Verdict::Invalid { reason: "it has no items".into() });
    }
    if order.cents > CENTS_MAX {
        let reason = format!("{} is over the limit of {}", euros(order.cents), euros(CENTS_MAX));
        return Ok(Verdict::Invalid { reason });
    }
    Ok(Verdict::Valid)
}

async fn charge(ctx: OrderCtx, _: Verdict) -> Result<Charge> {
    call_out(150).await;
    let order = ctx.input();
    match order.card {
        // No retry would change the bank's mind, so the step fails at once.
        Card::Declined => Err(StepError::permanent("the bank declined the card")),
        Card::Flaky if ctx.attempt() < 3 => Err(StepError::new("the bank did not answer")),
        Card::Flaky | Card::Good => {
            ctx.note("charged", euros(order.cents));
            // A bank that sees this key twice charges once.
            Ok(Charge { key: ctx.idempotency_key(), cents: order.cents })
        }
    }
}

/// An ordinary function: it may block, and runs on a thread of its own.
fn reject(ctx: &OrderCtx, verdict: Verdict) -> Result<String> {
    let Verdict::Invalid { reason } = verdict else {
        return Err(StepError::permanent("a valid order came to be rejected"));
    };
    ctx.note("mailed", "the customer");
    Ok(reason)
}

async fn prepare_shipment(ctx: OrderCtx, charge: Charge) -> Result<Parcel> {
    call_out(250).await;
    let label = ctx.input().id.replace("order", "parcel");
    ctx.note("insured", euros(charge.cents));
    Ok(Parcel { label })
}

async fn ship(_: OrderCtx, ((), parcel): ((), Parcel)) -> Result<Parcel> {
    call_out(120).await;
    Ok(parcel)
}

/// Runs after either branch; the other one was skipped and gives `None`.
async fn finalize(_: OrderCtx, ends: (Option<Parcel>, Option<String>)) -> Result<Done> {
    match ends {
        (Some(parcel), _) => Ok(Done::Shipped { parcel: parcel.label }),
        (None, Some(reason)) => Ok(Done::Rejected { reason }),
        (None, None) => Err(StepError::permanent("neither shipped nor rejected")),
    }
}

async fn tell_support(ctx: OrderCtx, failure: RunFailure) -> Result<()> {
    call_out(80).await;
    ctx.note("told support", format!("about {}", failure.step));
    ctx.state().told().push(ctx.input().id.clone());
    Ok(())
}

impl Shop {
    /// Whether support was told about an order.
    pub(super) fn was_told_about(&self, order: &str) -> bool {
        self.told().iter().any(|told| told == order)
    }

    fn told(&self) -> MutexGuard<'_, Vec<String>> {
        self.told.lock().expect("no holder of the lock panics")
    }
}

impl Verdict {
    fn is_valid(&self) -> bool {
        matches!(self, Self::Valid)
    }
}

/// Stands in for a call to some other service.
#[expect(clippy::disallowed_methods, reason = "a call to another service takes real time")]
async fn call_out(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

fn euros(cents: u64) -> String {
    format!("{}.{:02} EUR", cents / 100, cents % 100)
}
