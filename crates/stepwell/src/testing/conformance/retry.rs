//! Retries: a failed step is tried again when its policy says so, and never before.

use std::collections::BTreeMap;
use std::time::Duration;

use stepwell_core::failure::{Failure, FailureKind};
use stepwell_core::retry::Retry;
use stepwell_core::run::{AttemptState, EventKind, Phase, RunStatus};

use super::world::{Sketch, World, failed, failed_for_good, failed_until};
use crate::ports::{Clock, Outcome};

pub(super) async fn a_delayed_retry_cannot_be_claimed_before_it_is_due(world: &World) {
    // S11, R11
    let flow = world.define("a * 1/10s").await;
    let run = world.start(&flow).await;
    world.fail(&world.claim_one().await).await;
    assert_eq!(world.states(&run).await, "a QUEUED");
    world.pass(Duration::from_secs(10).saturating_sub(Duration::from_micros(1)));
    assert_eq!(world.fire().await.n_fired, 0);
    assert!(world.claim_all().await.is_empty());
    world.pass(Duration::from_micros(1));
    assert_eq!(world.fire().await.n_fired, 1);
    assert_eq!(world.drain().await, "a");
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

pub(super) async fn a_delayed_retry_waits_behind_a_timer_and_in_no_queue(world: &World) {
    // R11: the waiting time is durable.
    let flow = world.define("a * 1/10s").await;
    let run = world.start(&flow).await;
    world.fail(&world.claim_one().await).await;
    assert_eq!(world.place(&run, "a").await, None);
    let due = world.clock().now().after(Duration::from_secs(10));
    assert_eq!(world.dump().await.timers.get(&(run.key, run.node("a"))), Some(&due));
    let Phase::Queued { due: planned, .. } = world.task(&run, "a").await.phase else {
        panic!("it waits")
    };
    assert_eq!(planned, Some(due));
}

pub(super) async fn a_retry_without_delay_can_be_claimed_at_once(world: &World) {
    let flow = world.define("a * 1").await;
    let run = world.start(&flow).await;
    world.fail(&world.claim_one().await).await;
    assert_eq!(world.fire().await.next_due, None);
    let again = world.claim_one().await;
    assert_eq!(again.attempt, 2);
    world.complete(&again).await;
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

pub(super) async fn the_first_failure_is_final_by_default(world: &World) {
    // R11
    let flow = world.define("a").await;
    let run = world.start(&flow).await;
    world.fail(&world.claim_one().await).await;
    assert_eq!(world.states(&run).await, "a FAILED");
    assert_eq!(world.status(&run).await, RunStatus::Failed);
}

pub(super) async fn a_step_fails_when_its_retries_are_used_up(world: &World) {
    // L6, S9
    let flow = world.define("a * 2; b < a").await;
    let run = world.start(&flow).await;
    for _ in 0..3 {
        assert_eq!(world.status(&run).await, RunStatus::Running);
        world.fail(&world.claim_one().await).await;
    }
    assert_eq!(world.states(&run).await, "a FAILED, b CANCELLED");
    let row = world.row(&run).await;
    assert_eq!(row.status, RunStatus::Failed);
    let failure = row.failure.expect("the run says why");
    assert_eq!((failure.step.as_str(), failure.attempt), ("a", 3));
    assert_eq!(failure.failure.message, "boom");
}

pub(super) async fn a_permanent_failure_skips_the_retries(world: &World) {
    // R11, L5
    let flow = world.define("a * 9").await;
    let run = world.start(&flow).await;
    world.settle(&world.claim_one().await, failed_for_good("no use")).await;
    assert_eq!(world.states(&run).await, "a FAILED");
}

pub(super) async fn a_step_may_ask_for_a_delay_of_its_own(world: &World) {
    // L5
    let flow = world.define("a * 1/10s").await;
    world.start(&flow).await;
    world.settle(&world.claim_one().await, failed_until(Duration::from_hours(2))).await;
    let fired = world.fire().await;
    assert_eq!((fired.n_fired, fired.next_due), (0, Some(Duration::from_hours(2))));
}

pub(super) async fn a_delay_of_its_own_does_not_give_a_step_more_retries(world: &World) {
    // L6
    let flow = world.define("a * 1").await;
    let run = world.start(&flow).await;
    for _ in 0..2 {
        world.settle(&world.claim_one().await, failed_until(Duration::ZERO)).await;
    }
    assert_eq!(world.states(&run).await, "a FAILED");
}

pub(super) async fn delays_double_up_to_the_cap(world: &World) {
    // R11
    let flow = world.define(Sketch::from("a").retry(Retry::exponential(9))).await;
    world.start(&flow).await;
    for expected in [1, 2, 4, 8, 16, 32, 60, 60] {
        world.fail(&world.claim_one().await).await;
        let delay = Duration::from_secs(expected);
        assert_eq!(world.fire().await.next_due, Some(delay));
        world.pass(delay);
        assert_eq!(world.fire().await.n_fired, 1);
    }
}

pub(super) async fn jitter_spreads_delays_between_half_and_all_of_their_length(world: &World) {
    // FC6
    let retry = Retry::fixed(9, Duration::from_secs(8)).jitter();
    let flow = world.define(Sketch::from("a").retry(retry)).await;
    world.start(&flow).await;
    let longest = Duration::from_secs(8);
    for (chance, expected) in [(0, longest / 2), (1 << 31, longest * 3 / 4)] {
        let failure = Failure::new(FailureKind::Error, "Error", "boom");
        let outcome = Outcome::Failed {
            failure,
            notes: BTreeMap::new(),
            chance,
            failures: 0,
            forgets: Vec::new(),
        };
        world.settle(&world.claim_one().await, outcome).await;
        assert_eq!(world.fire().await.next_due, Some(expected));
        world.pass(longest);
        world.fire().await;
    }
}

pub(super) async fn every_failed_attempt_is_kept_with_its_plan(world: &World) {
    // G10, R17
    let flow = world.define("a * 1/10s").await;
    let run = world.start(&flow).await;
    world.settle(&world.claim_one().await, failed("first")).await;
    let first_failed_at = world.clock().now();
    world.pass(Duration::from_secs(10));
    world.fire().await;
    world.settle(&world.claim_one().await, failed("second")).await;
    let log = world.store().log(run.key).await.expect("read a log").expect("the run exists");
    let mut attempts = log.attempts;
    attempts.sort_by_key(|attempt| attempt.attempt);
    let [first, second] = attempts.as_slice() else { panic!("{attempts:?}") };
    assert_eq!((first.state, second.state), (AttemptState::Failed, AttemptState::Failed));
    let plan = first.retry.expect("it is tried again");
    assert_eq!((plan.count, plan.delay), (1, Duration::from_secs(10)));
    assert_eq!(plan.due, first_failed_at.after(plan.delay));
    assert_eq!(second.retry, None);
    let messages = attempts.iter().flat_map(|attempt| &attempt.failure).map(|f| &f.message);
    assert_eq!(messages.collect::<Vec<_>>(), ["first", "second"]);
}

pub(super) async fn the_log_tells_when_and_why_a_step_is_tried_again(world: &World) {
    // R17
    let flow = world.define("a * 1/10s").await;
    let run = world.start(&flow).await;
    world.fail(&world.claim_one().await).await;
    let event = world.last_event(&run, "RETRYING").await;
    let EventKind::Retrying { count, delay, due, failure } = event.kind else { panic!() };
    assert_eq!((count, delay), (1, Duration::from_secs(10)));
    assert_eq!(due, world.clock().now().after(delay));
    assert_eq!((failure.message.as_str(), event.attempt), ("boom", 1));
}

pub(super) async fn a_retry_is_not_charged_for_releases_and_losses(world: &World) {
    // R11, S9
    let flow = world.define("a * 1").await;
    let run = world.start(&flow).await;
    world.release(&world.claim_one().await).await;
    let second = world.hire("second").await;
    world.claim(&second, 1).await;
    world.lose(&second).await;
    world.fail(&world.claim_one().await).await;
    assert_eq!(world.task(&run, "a").await.failures, 1);
    assert_eq!(world.states(&run).await, "a QUEUED");
    world.fail(&world.claim_one().await).await;
    assert_eq!(world.states(&run).await, "a FAILED");
}

pub(super) async fn the_row_decides_when_a_failure_carries_another_count(world: &World) {
    let flow = world.define("a * 1; b < a").await;
    let run = world.start(&flow).await;
    let with_count = |failures| match failed("boom") {
        Outcome::Failed { failure, notes, chance, forgets, .. } => {
            Outcome::Failed { failure, notes, chance, failures, forgets }
        }
        other => other,
    };
    world.settle(&world.claim_one().await, with_count(7)).await;
    assert_eq!(world.states(&run).await, "a QUEUED, b PENDING");
    world.settle(&world.claim_one().await, with_count(0)).await;
    assert_eq!(world.states(&run).await, "a FAILED, b CANCELLED");
}
