//! Deadlines of runs: fixed at the start, and once one has passed nothing of its run starts and the
//! run fails, failure handler included.

use std::time::Duration;

use stepwell_core::decide::{CancelAnswer, SignalAnswer};
use stepwell_core::failure::FailureKind;
use stepwell_core::id::Node;
use stepwell_core::limits::SPAN_MAX;
use stepwell_core::run::{EventKind, RunStatus};

use super::world::{
    CRASH_LIMIT, Run, Sketch, TENANT, WORKER, World, completed, failed, failed_for_good, run_of,
    waiting, worker,
};
use crate::ports::{Clock, CommitAnswer, CommitItem, Outcome, StartAnswer};

const HOUR: Duration = Duration::from_hours(1);

const TICK: Duration = Duration::from_micros(1);

async fn trail_ends_with(world: &World, run: &Run, end: &str) {
    let trail = world.trail(run).await;
    assert!(trail.ends_with(end), "{trail}");
}

pub(super) async fn a_run_fails_when_its_deadline_passes(world: &World) {
    let flow = world.define("a; b < a").await;
    let run = world.start_within(&flow, HOUR).await;
    assert_eq!(world.step().await, "a");
    world.pass(HOUR.saturating_sub(TICK));
    let fired = world.unchanged_by(world.fire()).await;
    assert_eq!((fired.n_fired, fired.next_due), (0, Some(TICK)));
    world.pass(TICK);
    let fired = world.fire().await;
    assert_eq!((fired.n_fired, fired.next_due), (1, None));
    assert_eq!(world.states(&run).await, "a COMPLETED, b CANCELLED");
    let row = world.row(&run).await;
    assert_eq!((row.status, row.cancelled), (RunStatus::Failed, false));
    let failure = row.failure.expect("the run says why");
    assert_eq!((failure.node, failure.step.as_str()), (Node::DEADLINE, ""));
    assert_eq!(failure.failure.kind, FailureKind::Deadline);
    trail_ends_with(world, &run, "b QUEUED, DEADLINE_PASSED, b CANCELLED, RUN_ENDED FAILED").await;
    let event = world.last_event(&run, "DEADLINE_PASSED").await;
    assert_eq!((event.kind, event.node), (EventKind::DeadlinePassed, None));
}

pub(super) async fn a_deadline_is_fixed_at_the_start(world: &World) {
    let flow = world.define(Sketch::from("a").named("timed").deadline(HOUR)).await;
    world.pass(Duration::from_secs(5));
    let run = world.start(&flow).await;
    let deadline = world.row(&run).await.deadline;
    assert_eq!(deadline, Some(world.clock().now().after(HOUR)));
    world.pass(Duration::from_mins(10));
    world.define(Sketch::from("a").named("timed").deadline(HOUR * 9)).await;
    assert_eq!(world.row(&run).await.deadline, deadline);
    assert_eq!(world.fire().await.next_due, Some(Duration::from_mins(50)));
    let later = world.start(&flow).await;
    assert_eq!(world.row(&later).await.deadline, Some(world.clock().now().after(HOUR * 9)));
    world.define(Sketch::from("a").named("timed")).await;
    let free = world.start(&flow).await;
    assert_eq!(world.row(&free).await.deadline, None);
}

pub(super) async fn a_deadline_of_the_start_goes_before_the_workflows(world: &World) {
    let flow = world.define(Sketch::from("a").deadline(HOUR)).await;
    for span in [Duration::from_secs(1), HOUR * 2, SPAN_MAX] {
        let run = world.start_within(&flow, span).await;
        let expected = Some(world.clock().now().after(span));
        assert_eq!(world.row(&run).await.deadline, expected);
        assert_eq!(world.dump().await.timers.get(&(run.key, Node::DEADLINE)).copied(), expected);
    }
}

pub(super) async fn a_deadline_is_no_part_of_what_a_start_is_told_by(world: &World) {
    let flow = world.define("a").await;
    let mut request = world.request(TENANT, "order", &flow, b"input");
    request.seed.deadline = Some(HOUR);
    let run = run_of(&request, &flow);
    world.try_start(request).await;
    for deadline in [None, Some(HOUR), Some(HOUR * 2)] {
        let mut again = world.request(TENANT, "order", &flow, b"input");
        again.seed.deadline = deadline;
        let answer = world.unchanged_by(world.try_start(again)).await;
        assert!(matches!(answer, StartAnswer::AlreadyStarted(key) if key == run.key));
    }
    assert_eq!(world.fire().await.next_due, Some(HOUR));
}

pub(super) async fn a_deadline_cancels_tasks_in_every_state(world: &World) {
    let text = "done; late * 1/2h; wait; run; queue; s ~ 2h; w ? paid/2h; v ? paid; c < run, s";
    let flow = world.define(text).await;
    let run = world.start_within(&flow, HOUR).await;
    let roots = world.claim_all().await;
    world.complete(roots.of("done")).await;
    world.fail(roots.of("late")).await;
    world.waits_for(roots.of("wait"), "paid/2h").await;
    world.release(roots.of("queue")).await;
    world.signal(&run, "other").await;
    world.pass(HOUR);
    assert_eq!(world.fire().await.n_fired, 1);
    let expected = "done COMPLETED, late CANCELLED, wait CANCELLED, run CANCELLED, \
                    queue CANCELLED, s CANCELLED, w CANCELLED, v CANCELLED, c CANCELLED";
    assert_eq!(world.states(&run).await, expected);
    assert_eq!(world.open_waits(&run).await, "");
    assert_eq!(world.inbox(&run).await, "1 other");
    let dump = world.dump().await;
    assert!(dump.timers.is_empty() && dump.places.is_empty());
    let late = world.unchanged_by(world.commit_one(roots.of("run"), completed())).await;
    assert_eq!(late, CommitAnswer::NotMine);
    let lost = world.beat(&worker(WORKER), &[roots.of("run").claim]).await;
    assert_eq!(lost, [roots.of("run").claim]);
}

pub(super) async fn the_failure_handler_runs_when_the_deadline_passed(world: &World) {
    // R20
    let flow = world.define(Sketch::from("w ? paid").on_failure().deadline(HOUR)).await;
    let run = world.start(&flow).await;
    world.pass(HOUR);
    assert_eq!(world.fire().await.n_fired, 1);
    assert_eq!(world.status(&run).await, RunStatus::Ending);
    assert_eq!(world.states(&run).await, "w CANCELLED, on_failure QUEUED");
    let handler = world.claim_one().await;
    let failure = world.inputs(&handler).await.failure.expect("it is told why");
    assert_eq!(failure.failure.kind, FailureKind::Deadline);
    world.complete(&handler).await;
    assert_eq!(world.status(&run).await, RunStatus::Failed);
    let end = "DEADLINE_PASSED, w CANCELLED, RUN_ENDING FAILED, on_failure QUEUED, \
               on_failure STARTED, on_failure COMPLETED, RUN_ENDED FAILED";
    trail_ends_with(world, &run, end).await;
}

pub(super) async fn a_deadline_does_nothing_to_a_run_that_is_ending(world: &World) {
    let flow = world.define(Sketch::from("a").on_failure()).await;
    let run = world.start_within(&flow, HOUR).await;
    world.settle(&world.claim_one().await, failed_for_good("first")).await;
    assert_eq!(world.status(&run).await, RunStatus::Ending);
    assert!(world.dump().await.timers.is_empty());
    world.pass(HOUR * 2);
    world.unchanged_by(world.fire()).await;
    assert_eq!(world.drain().await, "on_failure", "its handler may start at any time");
    let failure = world.row(&run).await.failure.expect("the run says why");
    assert_eq!(failure.failure.message, "first");
}

pub(super) async fn the_handler_of_a_late_run_starts_however_it_comes_to_a_worker(world: &World) {
    // Handed over or claimed, after a release and after a loss.
    let flow = world.define(Sketch::from("a").on_failure()).await;
    let run = world.start_within(&flow, HOUR).await;
    let task = world.claim_one().await;
    world.pass(HOUR);
    let items = vec![CommitItem { claim: task.claim, outcome: failed("boom") }];
    let committed = world.commit_for(items, &worker(WORKER), 5).await;
    for handler in &committed.handed_over.tasks {
        world.release(handler).await;
    }
    for n in 1..CRASH_LIMIT {
        let unlucky = world.hire(&format!("unlucky-{n}")).await;
        assert_eq!(world.claim(&unlucky, 1).await.steps(), "on_failure");
        world.lose(&unlucky).await;
    }
    assert_eq!(world.drain().await, "on_failure");
    assert_eq!(world.status(&run).await, RunStatus::Failed);
}

pub(super) async fn a_deadline_that_passes_after_a_failure_keeps_the_failure(world: &World) {
    let flow = world.define("a; b").await;
    let run = world.start_within(&flow, HOUR).await;
    let roots = world.claim_all().await;
    world.settle(roots.of("a"), failed_for_good("first")).await;
    world.pass(HOUR);
    world.fire().await;
    assert_eq!(world.states(&run).await, "a FAILED, b CANCELLED");
    let failure = world.row(&run).await.failure.expect("the run says why");
    assert_eq!(failure.failure.message, "first");
    world.last_event(&run, "DEADLINE_PASSED").await;
}

pub(super) async fn a_run_that_ended_in_time_has_no_timer_left(world: &World) {
    let flow = world.define("a").await;
    let runs = [world.start_within(&flow, HOUR).await, world.start_within(&flow, HOUR).await];
    let gone = world.start_within(&flow, HOUR).await;
    world.cancel(&gone).await;
    let batch = world.claim_all().await;
    world.complete(&batch[0]).await;
    world.fail(&batch[1]).await;
    assert!(world.dump().await.timers.is_empty());
    world.pass(HOUR);
    let fired = world.unchanged_by(world.fire()).await;
    assert_eq!((fired.n_fired, fired.next_due), (0, None));
    for (run, end) in runs.iter().zip([RunStatus::Completed, RunStatus::Failed]) {
        assert_eq!(world.status(run).await, end);
    }
}

pub(super) async fn nothing_starts_once_the_deadline_has_passed(world: &World) {
    // The leader may be late: whoever claims looks at the deadline as well.
    let flow = world.define("a; b @ slow; c").await;
    let run = world.start_within(&flow, HOUR).await;
    world.pass(HOUR.saturating_sub(TICK));
    let first = world.claim(&worker(WORKER), 1).await;
    assert_eq!(first.len(), 1, "it is in time");
    world.pass(TICK);
    let free = world.start_for("zeta", &flow).await;
    let batch = world.claim_all().await;
    assert!(batch.iter().all(|task| task.claim.run == free.key), "{}", batch.tenants());
    assert_eq!(batch.len(), 3, "others go on past it");
    assert_eq!(world.status(&run).await, RunStatus::Running);
    world.fire().await;
    assert_eq!(world.states(&run).await, "a CANCELLED, b CANCELLED, c CANCELLED");
}

pub(super) async fn late_tasks_do_not_hold_up_those_behind_them(world: &World) {
    let flow = world.define("a").await;
    for _ in 0..50 {
        world.start_within(&flow, HOUR).await;
    }
    let run = world.start(&flow).await;
    world.pass(HOUR);
    let batch = world.claim(&worker(WORKER), 1).await;
    assert_eq!(batch.iter().map(|task| task.claim.run).collect::<Vec<_>>(), [run.key]);
}

pub(super) async fn nothing_is_handed_over_once_the_deadline_has_passed(world: &World) {
    let flow = world.define("a; b < a").await;
    world.start_within(&flow, HOUR).await;
    let task = world.claim_one().await;
    world.pass(HOUR);
    let handed_over = world.complete_for(&[task], &worker(WORKER), 5).await;
    assert!(handed_over.is_empty(), "{}", handed_over.steps());
    assert!(world.claim_all().await.is_empty());
    let mut request = world.request(TENANT, "", &flow, b"input");
    request.seed.deadline = Some(Duration::ZERO);
    let started = world.start_and_claim(vec![request], &worker(WORKER), 5).await;
    assert!(started.handed_over.tasks.is_empty());
    assert_eq!(world.fire_all().await, 2);
}

pub(super) async fn what_runs_may_still_end_before_the_leader_comes(world: &World) {
    let flow = world.define("a").await;
    let (done, waits) =
        (world.start_within(&flow, HOUR).await, world.start_within(&flow, HOUR).await);
    let batch = world.claim_all().await;
    world.pass(HOUR);
    for task in batch.iter() {
        let outcome = if task.claim.run == done.key { completed() } else { waiting("paid/1h") };
        world.settle(task, outcome).await;
    }
    assert_eq!(world.status(&done).await, RunStatus::Completed);
    assert_eq!(world.signal(&waits, "paid").await, consumed(1));
    assert!(world.claim_all().await.is_empty());
    assert_eq!(world.fire_all().await, 1);
    assert_eq!(world.status(&done).await, RunStatus::Completed);
    assert_eq!(world.states(&waits).await, "a CANCELLED");
}

const fn consumed(number: u64) -> SignalAnswer {
    SignalAnswer::Stored { number, is_consumed: true }
}

pub(super) async fn a_task_that_comes_back_after_the_deadline_does_not_start(world: &World) {
    // However it comes back: by a retry, a signal, its worker's hand or its death.
    let flow = world.define("retry * 1; wait; back; lost; w ? paid; b < w").await;
    let run = world.start_within(&flow, HOUR).await;
    let second = world.hire("second").await;
    let roots = world.claim(&second, 4).await;
    world.waits_for(roots.of("wait"), "sent").await;
    world.pass(HOUR);
    world.fail(roots.of("retry")).await;
    world.settle(roots.of("back"), Outcome::Released).await;
    world.signal(&run, "sent").await;
    world.signal(&run, "paid").await;
    world.lose(&second).await;
    let expected = "retry QUEUED, wait QUEUED, back QUEUED, lost QUEUED, w COMPLETED, b QUEUED";
    assert_eq!(world.states(&run).await, expected);
    assert!(world.claim_all().await.is_empty());
    assert_eq!(world.fire_all().await, 1);
    assert_eq!(world.status(&run).await, RunStatus::Failed);
}

pub(super) async fn a_deadline_of_no_length_passes_at_once(world: &World) {
    let flow = world.define("a; w ? paid").await;
    let run = world.start_within(&flow, Duration::ZERO).await;
    assert!(world.claim_all().await.is_empty());
    assert_eq!(world.fire_all().await, 1);
    assert_eq!(world.states(&run).await, "a CANCELLED, w CANCELLED");
}

pub(super) async fn late_runs_fail_in_bounded_batches(world: &World) {
    // FC4
    let flow = world.define(Sketch::from("a; w ? paid/9h; b < a").deadline(HOUR)).await;
    let runs = world.start_many_for(TENANT, &flow, 25).await;
    world.pass(HOUR);
    for n_fired in [10, 10, 5, 0] {
        assert_eq!(world.fire_up_to(10).await.n_fired, n_fired);
    }
    for run in &runs {
        assert_eq!(world.status(run).await, RunStatus::Failed);
    }
    assert_eq!(world.cancel(&runs[0]).await, CancelAnswer::AlreadyEnded(RunStatus::Failed));
}

pub(super) async fn late_tasks_give_their_places_back(world: &World) {
    // R26: a task that may not start counts as ready until its run has failed.
    let flow = world.define("a").await;
    world.limit(TENANT, 1).await;
    world.start_within(&flow, HOUR).await;
    let run = world.start(&flow).await;
    world.pass(HOUR);
    world.fire().await;
    assert_eq!(world.claim_one().await.claim.run, run.key);
}
