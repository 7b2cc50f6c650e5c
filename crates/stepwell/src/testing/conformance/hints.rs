//! Hints: whoever waits is told to look again, by the time the call that gave reason returns.

use std::time::Duration;

use futures_util::FutureExt;
use stepwell_core::id::WorkerId;

use super::world::{Sketch, TENANT, WORKER, World, worker};
use crate::ports::{EndedRuns, Hint, Hints};

/// Hints as somebody receives them who has just looked.
fn look(world: &World) -> Hints {
    let mut hints = world.store().hints();
    for hint in Hint::ALL {
        hints.look(hint);
    }
    hints
}

fn is_given(hints: &mut Hints, hint: Hint) -> bool {
    hints.given(hint).now_or_never().is_some()
}

pub(super) async fn a_start_hints_at_ready_tasks(world: &World) {
    // FC1
    let flow = world.define("a").await;
    let mut hints = look(world);
    assert!(!is_given(&mut hints, Hint::Ready));
    world.start(&flow).await;
    assert!(is_given(&mut hints, Hint::Ready));
}

pub(super) async fn a_completion_hints_at_children_that_became_ready(world: &World) {
    let flow = world.define("a; b < a").await;
    world.start(&flow).await;
    let task = world.claim_one().await;
    let mut hints = look(world);
    world.complete(&task).await;
    assert!(is_given(&mut hints, Hint::Ready));
}

pub(super) async fn a_freed_slot_hints_at_ready_tasks(world: &World) {
    let flow = world.define("a").await;
    world.limit(TENANT, 1).await;
    world.start_many_for(TENANT, &flow, 2).await;
    let task = world.claim_one().await;
    let mut hints = look(world);
    world.complete(&task).await;
    assert!(is_given(&mut hints, Hint::Ready));
}

pub(super) async fn a_raised_limit_hints_at_ready_tasks(world: &World) {
    let flow = world.define("a").await;
    world.limit(TENANT, 1).await;
    world.start_many_for(TENANT, &flow, 2).await;
    let mut hints = look(world);
    world.limit(TENANT, 2).await;
    assert!(is_given(&mut hints, Hint::Ready));
}

pub(super) async fn a_new_worker_hints_at_tasks_that_came_back(world: &World) {
    let flow = world.define_unserved("a").await;
    world.start(&flow).await;
    let mut hints = look(world);
    world.serve(&flow).await;
    assert!(is_given(&mut hints, Hint::Ready));
}

pub(super) async fn a_release_and_a_retry_hint_at_ready_tasks(world: &World) {
    let flow = world.define("a * 1").await;
    world.start(&flow).await;
    let task = world.claim_one().await;
    let mut hints = look(world);
    world.release(&task).await;
    assert!(is_given(&mut hints, Hint::Ready));
    let task = world.claim_one().await;
    let mut hints = look(world);
    world.fail(&task).await;
    assert!(is_given(&mut hints, Hint::Ready));
}

pub(super) async fn a_reaping_hints_at_ready_tasks(world: &World) {
    let flow = world.define("a").await;
    world.start(&flow).await;
    let second = world.hire("second").await;
    world.claim(&second, 1).await;
    let mut hints = look(world);
    world.lose(&second).await;
    assert!(is_given(&mut hints, Hint::Ready));
}

pub(super) async fn a_sleep_hints_at_its_timer(world: &World) {
    // FC1
    let flow = world.define("s ~ 1s").await;
    let mut hints = look(world);
    world.start(&flow).await;
    assert!(is_given(&mut hints, Hint::Timers));
}

pub(super) async fn a_delayed_retry_hints_at_its_timer(world: &World) {
    let flow = world.define("a * 1/1s").await;
    world.start(&flow).await;
    let task = world.claim_one().await;
    let mut hints = look(world);
    world.fail(&task).await;
    assert!(is_given(&mut hints, Hint::Timers));
}

pub(super) async fn a_fired_timer_hints_at_what_became_ready(world: &World) {
    let flow = world.define("s ~ 1s; b < s; a * 1/1s").await;
    world.start(&flow).await;
    world.fail(&world.claim_one().await).await;
    world.pass(Duration::from_secs(1));
    for _ in 0..2 {
        let mut hints = look(world);
        assert_eq!(world.fire_up_to(1).await.n_fired, 1);
        assert!(is_given(&mut hints, Hint::Ready));
    }
}

pub(super) async fn the_end_of_a_run_is_hinted_at(world: &World) {
    // R22
    let flow = world.define("a; b < a").await;
    world.start(&flow).await;
    let gone = world.start(&flow).await;
    let mut hints = look(world);
    world.cancel(&gone).await;
    assert!(is_given(&mut hints, Hint::Ended));
    assert_eq!(world.step().await, "a");
    let mut hints = look(world);
    assert_eq!(world.step().await, "b");
    assert!(is_given(&mut hints, Hint::Ended));
}

pub(super) async fn the_end_of_a_run_is_hinted_at_by_name(world: &World) {
    // Who waits for others need not look.
    let flow = world.define("a").await;
    let mut hints = look(world);
    let runs = world.start_many_for(TENANT, &flow, 3).await;
    assert_eq!(hints.look_at_ended(), EndedRuns::Named(Vec::new()));
    let batch = world.claim_all().await;
    world.complete_together(&batch[..2]).await;
    world.cancel(&runs[2]).await;
    let EndedRuns::Named(ended) = hints.look_at_ended() else { panic!("it names them") };
    let mut ended: Vec<_> = ended.into_iter().map(|ended| ended.run).collect();
    ended.sort_unstable();
    let mut expected: Vec<_> = batch[..2].iter().map(|task| task.claim.run).collect();
    expected.push(runs[2].key);
    expected.sort_unstable();
    expected.dedup();
    assert_eq!(ended, expected);
    assert_eq!(hints.look_at_ended(), EndedRuns::Named(Vec::new()), "once");
}

pub(super) async fn a_sleep_that_ends_a_run_hints_at_the_end(world: &World) {
    // R22
    let flow = world.define("s ~ 1s").await;
    world.start(&flow).await;
    world.pass(Duration::from_secs(1));
    let mut hints = look(world);
    world.fire().await;
    assert!(is_given(&mut hints, Hint::Ended));
}

pub(super) async fn claims_that_were_taken_are_hinted_at(world: &World) {
    // L12
    let flow = world.define("a").await;
    let run = world.start(&flow).await;
    world.claim_one().await;
    let mut hints = look(world);
    world.cancel(&run).await;
    assert!(is_given(&mut hints, Hint::Claims));
}

pub(super) async fn only_workers_whose_claims_were_taken_are_told(world: &World) {
    let flow = world.define(Sketch::from("a; b").fail_fast()).await;
    let (run, others) = (world.start(&flow).await, world.hire("another").await);
    let held = world.claim_all().await;
    let mut hints = look(world);
    let mut told = |worker: &WorkerId| hints.claims_taken_from(worker).now_or_never().is_some();
    world.fail(held.of("a")).await;
    assert!(told(&worker(WORKER)), "the claim of b was taken");
    assert!(!told(&others), "it held nothing");
    let mut hints = look(world);
    assert!(hints.claims_taken_from(&worker(WORKER)).now_or_never().is_none(), "it has looked");
    world.cancel(&run).await;
    assert!(!is_given(&mut hints, Hint::Claims), "nothing was held any more");
}

pub(super) async fn claims_taken_by_a_run_that_fails_fast_are_hinted_at(world: &World) {
    let flow = world.define(Sketch::from("a; b").fail_fast()).await;
    world.start(&flow).await;
    let roots = world.claim_all().await;
    let mut hints = look(world);
    world.fail(roots.of("a")).await;
    assert!(is_given(&mut hints, Hint::Claims));
}

pub(super) async fn a_hint_given_between_looking_and_waiting_is_not_lost(world: &World) {
    // FC1
    let flow = world.define("a").await;
    let mut first = look(world);
    let mut second = first.clone();
    world.start(&flow).await;
    assert!(is_given(&mut first, Hint::Ready));
    assert!(!is_given(&mut first, Hint::Ready), "it was seen");
    assert!(is_given(&mut second, Hint::Ready), "each receiver has its own");
}

pub(super) async fn where_no_claim_was_taken_none_is_hinted_at(world: &World) {
    let flow = world.define(Sketch::from("a; b < a").fail_fast()).await;
    let waiting = world.start(&flow).await;
    let mut hints = look(world);
    world.cancel(&waiting).await;
    world.cancel(&waiting).await;
    world.start(&flow).await;
    world.fail(&world.claim_one().await).await;
    assert!(!is_given(&mut hints, Hint::Claims));
}

pub(super) async fn a_signal_hints_at_what_became_ready(world: &World) {
    // FC1, L7: the child of a wait, and a step that waited.
    let flow = world.define("w ? paid; b < w; a").await;
    let run = world.start(&flow).await;
    world.waits_for(&world.claim_one().await, "sent").await;
    for name in ["paid", "sent"] {
        let mut hints = look(world);
        world.signal(&run, name).await;
        assert!(is_given(&mut hints, Hint::Ready), "{name}");
    }
}

pub(super) async fn a_signal_that_ends_a_run_hints_at_the_end(world: &World) {
    // R22
    let flow = world.define("w ? paid").await;
    let run = world.start(&flow).await;
    let mut hints = look(world);
    world.signal(&run, "paid").await;
    assert!(is_given(&mut hints, Hint::Ended));
}

pub(super) async fn a_wait_that_opens_hints_at_its_timer(world: &World) {
    // FC1: opened by a start, by a signal, by a commit, and by a step itself.
    let flow = world.define("w ? paid/1h; v ? sent/1h < w; a; u ? sent/1h < a; b").await;
    let mut hints = look(world);
    let run = world.start(&flow).await;
    assert!(is_given(&mut hints, Hint::Timers));
    let mut hints = look(world);
    world.signal(&run, "paid").await;
    assert!(is_given(&mut hints, Hint::Timers));
    let batch = world.claim_all().await;
    let mut hints = look(world);
    world.complete(batch.of("a")).await;
    assert!(is_given(&mut hints, Hint::Timers));
    let mut hints = look(world);
    world.waits_for(batch.of("b"), "sent/1h").await;
    assert!(is_given(&mut hints, Hint::Timers));
}

pub(super) async fn a_wait_that_has_to_look_hints_at_its_timer(world: &World) {
    // Nobody would look at what was kept before the leader's next round.
    let flow = world.define("a; w ? paid < a; b").await;
    let run = world.start(&flow).await;
    world.signal(&run, "paid").await;
    let batch = world.claim_all().await;
    let mut hints = look(world);
    world.complete(batch.of("a")).await;
    assert!(is_given(&mut hints, Hint::Timers));
    let mut hints = look(world);
    world.waits_for(batch.of("b"), "sent").await;
    assert!(is_given(&mut hints, Hint::Timers));
}

pub(super) async fn a_look_and_a_time_out_hint_at_what_follows(world: &World) {
    let flow = world.define("a; w ? paid/1h < a; b < w").await;
    let (paid, late) = (world.start(&flow).await, world.start(&flow).await);
    world.signal(&paid, "paid").await;
    world.complete_together(&world.claim_all().await).await;
    let mut hints = look(world);
    world.fire_all().await;
    assert!(is_given(&mut hints, Hint::Ready));
    assert_eq!(world.drain().await, "b");
    assert_eq!(world.states(&late).await, "a COMPLETED, w WAITING, b PENDING");
    world.pass(Duration::from_hours(1));
    let mut hints = look(world);
    world.fire_all().await;
    assert!(is_given(&mut hints, Hint::Ready));
}

pub(super) async fn a_deadline_hints_at_its_timer_and_at_what_it_ends(world: &World) {
    let flow = world.define(Sketch::from("a").on_failure()).await;
    let mut hints = look(world);
    world.start_within(&flow, Duration::from_secs(1)).await;
    assert!(is_given(&mut hints, Hint::Timers));
    world.claim_one().await;
    world.pass(Duration::from_secs(1));
    let mut hints = look(world);
    world.fire().await;
    assert!(is_given(&mut hints, Hint::Claims));
    assert!(is_given(&mut hints, Hint::Ready), "its failure handler");
    let handler = world.claim_one().await;
    let mut hints = look(world);
    world.complete(&handler).await;
    assert!(is_given(&mut hints, Hint::Ended));
}

pub(super) async fn a_forced_end_is_hinted_at(world: &World) {
    // L12
    let flow = world.define(Sketch::from("a").on_failure()).await;
    let run = world.start(&flow).await;
    world.fail(&world.claim_one().await).await;
    world.claim_one().await;
    let mut hints = look(world);
    world.force(&run).await;
    assert!(is_given(&mut hints, Hint::Claims) && is_given(&mut hints, Hint::Ended));
}
