//! The order workflow of the design, in both branches and when it fails.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use stepwell::testing::TestEngine;
use stepwell::{
    Code, Maybe, Retry, RunStatus, StepError, StepRef, TaskState, Workflow, WorkflowRef,
};

use crate::support::{DAY, Journal, builder, refused, starts_secs, state, states, trail};

#[derive(Clone, Serialize, Deserialize)]
struct Order {
    id: u32,
    cents: i64,
}

#[derive(Serialize, Deserialize)]
struct Validation {
    is_valid: bool,
    cents: i64,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Charge {
    receipt: String,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Done {
    Shipped { tracking: String },
    Rejected { reason: String },
}

/// What the steps share: whom they notify, and how often the bank refuses before it charges.
#[derive(Clone, Default)]
struct Shop {
    mail: Journal,
    n_bank_failures: u32,
    is_carrier_down: bool,
}

impl Shop {
    async fn charge(&self, attempt: u32, cents: i64) -> stepwell::Result<Charge> {
        tokio::task::yield_now().await;
        if attempt <= self.n_bank_failures {
            return Err(StepError::new("the bank is busy"));
        }
        Ok(Charge { receipt: format!("receipt for {cents}") })
    }

    async fn ship(&self, parcel: &str) -> stepwell::Result<String> {
        tokio::task::yield_now().await;
        if self.is_carrier_down {
            return Err(StepError::permanent("the carrier is down"));
        }
        Ok(format!("tracking of {parcel}"))
    }
}

/// Handles of the steps whose outputs the tests read.
#[derive(Clone, Copy)]
struct Steps {
    charge: StepRef<Charge, Maybe>,
    reject: StepRef<String, Maybe>,
    parcel: StepRef<String, Maybe>,
    ship: StepRef<String, Maybe>,
}

fn order_workflow() -> (Workflow<Order, Option<Done>, Shop>, Steps) {
    let mut w = Workflow::define::<Order, Shop>("order-processing");
    let validate = w.step("validate").run(async |ctx| {
        let cents = ctx.input().cents;
        Ok(Validation { is_valid: cents > 0, cents })
    });
    let charge = w
        .step("charge")
        .after(validate)
        .skip_if(|v| !v.is_valid)
        .retry(Retry::exponential(3))
        .timeout(Duration::from_secs(30))
        .run(async |ctx, v| ctx.state().charge(ctx.attempt(), v.cents).await);
    let reject = w
        .step("reject")
        .after(validate)
        .skip_if(|v| v.is_valid)
        .run_blocking(|ctx, v| Ok(format!("order {}: {} cents", ctx.input().id, v.cents)));
    let window = w.sleep("fraud-window", DAY).after(charge);
    let parcel = w
        .step("prepare-shipment")
        .after(charge)
        .run(async |ctx, charge| Ok(format!("order {}, {}", ctx.input().id, charge.receipt)));
    let ship = w
        .step("ship")
        .after((window.needed(), parcel.needed()))
        .run(async |ctx, ((), parcel)| ctx.state().ship(&parcel).await);
    let done = w.step("finalize").after((ship, reject)).run(async |_, outcome| match outcome {
        (Some(tracking), None) => Ok(Done::Shipped { tracking }),
        (None, Some(reason)) => Ok(Done::Rejected { reason }),
        both => Err(StepError::permanent(format!("both or neither: {both:?}"))),
    });
    w.on_failure(async |ctx, failure| {
        let (id, step) = (ctx.input().id, &failure.step);
        ctx.state().mail.write(format!("order {id} failed in {step}: {}", failure.failure.message));
        Ok(())
    });
    (w.output(done), Steps { charge, reject, parcel, ship })
}

fn shop_engine(shop: &Shop) -> (TestEngine, WorkflowRef<Order, Option<Done>>, Steps) {
    let (workflow, steps) = order_workflow();
    let mut builder = builder().state(shop.clone());
    let orders = builder.workflow(workflow);
    (builder.start().unwrap(), orders, steps)
}

#[test]
fn a_valid_order_is_charged_prepared_and_shipped_after_a_day() {
    // R4, R23
    let (test, orders, steps) = shop_engine(&Shop::default());
    let order = Order { id: 4711, cents: 999 };
    let run = test.start(&orders, order).tenant("customer-123").id("order-4711").now().unwrap();
    test.run_until_idle();
    assert_eq!(
        states(&run),
        "validate COMPLETED, charge COMPLETED, reject SKIPPED, fraud-window SLEEPING, \
         prepare-shipment COMPLETED, ship PENDING, finalize PENDING"
    );
    assert_eq!(run.output(&steps.parcel).unwrap().unwrap(), "order 4711, receipt for 999");
    test.advance(DAY - Duration::from_secs(1));
    assert_eq!(state(&run, "ship"), TaskState::Pending);
    test.advance(Duration::from_secs(1));
    let tracking = "tracking of order 4711, receipt for 999".to_owned();
    assert_eq!(run.output(&steps.ship).unwrap().as_deref(), Some(tracking.as_str()));
    assert_eq!(run.result().unwrap(), Some(Done::Shipped { tracking }));
    assert_eq!(run.output(&steps.reject).unwrap(), None);
    assert_eq!(starts_secs(&run, "finalize"), [DAY.as_secs()]);
}

#[test]
fn an_invalid_order_is_rejected_and_nothing_is_charged() {
    // R21, R23
    let (test, orders, steps) = shop_engine(&Shop::default());
    let order = Order { id: 4712, cents: -1 };
    let run = test.start(&orders, order).tenant("customer-123").now().unwrap();
    let reason = "order 4712: -1 cents".to_owned();
    assert_eq!(run.output(&steps.reject).unwrap().as_deref(), Some(reason.as_str()));
    assert_eq!(run.result().unwrap(), Some(Done::Rejected { reason }));
    assert_eq!(run.output(&steps.charge).unwrap(), None);
    assert_eq!(
        states(&run),
        "validate COMPLETED, charge SKIPPED, reject COMPLETED, fraud-window SKIPPED, \
         prepare-shipment SKIPPED, ship SKIPPED, finalize COMPLETED"
    );
    assert_eq!(test.now(), run.events().unwrap()[0].at, "without waiting");
}

#[test]
fn a_busy_bank_is_asked_again() {
    // R11
    let (test, orders, steps) = shop_engine(&Shop { n_bank_failures: 3, ..Shop::default() });
    let run = test.start(&orders, Order { id: 1, cents: 5 }).now().unwrap();
    test.run_to_end();
    assert_eq!(run.status().unwrap(), RunStatus::Completed);
    let receipt = "receipt for 5".to_owned();
    assert_eq!(run.output(&steps.charge).unwrap(), Some(Charge { receipt }));
    assert_eq!(starts_secs(&run, "charge"), [0, 1, 3, 7]);
    assert_eq!(starts_secs(&run, "ship"), [7 + DAY.as_secs()]);
}

#[test]
fn an_order_that_cannot_be_shipped_fails_and_somebody_is_told_once() {
    // R20
    let shop = Shop { is_carrier_down: true, ..Shop::default() };
    let (test, orders, _) = shop_engine(&shop);
    let run = test.start(&orders, Order { id: 2, cents: 5 }).now().unwrap();
    test.run_to_end();
    refused(run.result(), Code::RunFailed, &["\"ship\"", "the carrier is down"]);
    assert_eq!(shop.mail.lines(), ["order 2 failed in ship: the carrier is down"]);
    assert_eq!(state(&run, "finalize"), TaskState::Cancelled);
    assert_eq!(trail(&run, "on_failure"), "QUEUED STARTED COMPLETED");
}

#[test]
fn many_orders_of_many_customers_end_as_each_should() {
    // R2, R16
    let (test, orders, _) = shop_engine(&Shop::default());
    let start = |n: u32| {
        let cents = if n.is_multiple_of(3) { -5 } else { 5 };
        let order = Order { id: n, cents };
        test.start(&orders, order).tenant(format!("customer-{}", n % 7)).now().unwrap()
    };
    let runs: Vec<_> = (0..60).map(start).collect();
    test.run_to_end();
    for (n, run) in (0..).zip(&runs) {
        let is_shipped = matches!(run.result().unwrap(), Some(Done::Shipped { .. }));
        assert_eq!(is_shipped, n % 3 != 0, "order {n}");
    }
}

on_every_store![
    a_valid_order_is_charged_prepared_and_shipped_after_a_day,
    an_invalid_order_is_rejected_and_nothing_is_charged,
    a_busy_bank_is_asked_again,
    an_order_that_cannot_be_shipped_fails_and_somebody_is_told_once,
    many_orders_of_many_customers_end_as_each_should,
];
