//! Cancelling: once it is answered, nothing of the run starts and no outcome is accepted.

use std::time::Duration;

use futures_util::future::join;
use stepwell_core::decide::{CancelAnswer, CancelRequest};
use stepwell_core::id::RunKey;
use stepwell_core::limits::REASON_BYTES_MAX;
use stepwell_core::run::{EventKind, RunStatus};

use super::world::{Run, Sketch, TENANT, World, completed, failed, waiting};
use crate::ports::{CommitAnswer, CommitItem, Outcome};

pub(super) async fn a_cancelled_run_has_no_open_task_left(world: &World) {
    // L12, S16
    let flow = world.define("done; late * 1/1h; run < done; s ~ 1h; c < run, s").await;
    let run = world.start(&flow).await;
    let roots = world.claim_all().await;
    world.complete(roots.of("done")).await;
    world.fail(roots.of("late")).await;
    world.claim_one().await;
    let before = "done COMPLETED, late QUEUED, run RUNNING, s SLEEPING, c PENDING";
    assert_eq!(world.states(&run).await, before);
    assert_eq!(world.cancel(&run).await, CancelAnswer::Cancelled);
    let after = "done COMPLETED, late CANCELLED, run CANCELLED, s CANCELLED, c CANCELLED";
    assert_eq!(world.states(&run).await, after);
    let row = world.row(&run).await;
    assert_eq!((row.status, row.n_open, row.n_cancelled), (RunStatus::Cancelled, 0, 4));
}

pub(super) async fn nothing_of_a_cancelled_run_starts(world: &World) {
    // S12, L12
    let flow = world.define("a; late * 1/1s; s ~ 1s; b < a, s").await;
    let run = world.start(&flow).await;
    let roots = world.claim_all().await;
    world.fail(roots.of("late")).await;
    world.cancel(&run).await;
    world.pass(Duration::from_mins(1));
    assert_eq!(world.fire().await.n_fired, 0);
    assert!(world.claim_all().await.is_empty());
}

pub(super) async fn a_queued_run_is_cancelled_before_it_starts(world: &World) {
    // S12
    let flow = world.define("a; b < a").await;
    let runs = world.start_many_for(TENANT, &flow, 2).await;
    world.cancel(&runs[0]).await;
    let batch = world.claim_all().await;
    assert_eq!(batch.iter().map(|task| task.claim.run).collect::<Vec<_>>(), [runs[1].key]);
}

pub(super) async fn no_outcome_of_a_cancelled_run_is_accepted(world: &World) {
    // S12, FB6
    let flow = world.define("a * 3; b < a").await;
    let run = world.start(&flow).await;
    let task = world.claim_one().await;
    world.cancel(&run).await;
    let waits = waiting("paid/1h");
    for outcome in [completed(), failed("late"), Outcome::Skipped, Outcome::Released, waits] {
        let answer = world.unchanged_by(world.commit_one(&task, outcome)).await;
        assert_eq!(answer, CommitAnswer::NotMine);
    }
    assert_eq!(world.output(&run, "a").await, None);
}

pub(super) async fn a_run_is_cancelled_once(world: &World) {
    // FB6, S8
    let flow = world.define("a").await;
    let run = world.start(&flow).await;
    world.cancel(&run).await;
    let again = world.unchanged_by(world.cancel(&run)).await;
    assert_eq!(again, CancelAnswer::AlreadyEnded(RunStatus::Cancelled));
}

pub(super) async fn a_run_that_ended_is_not_cancelled(world: &World) {
    // FB6, S8
    let flow = world.define("a").await;
    let (good, bad) = (world.start(&flow).await, world.start(&flow).await);
    let batch = world.claim_all().await;
    world.complete(&batch[0]).await;
    world.fail(&batch[1]).await;
    for (run, status) in [(good, RunStatus::Completed), (bad, RunStatus::Failed)] {
        let answer = world.unchanged_by(world.cancel(&run)).await;
        assert_eq!(answer, CancelAnswer::AlreadyEnded(status));
    }
}

pub(super) async fn a_run_that_is_ending_is_not_cancelled(world: &World) {
    // FB6, R20
    let flow = world.define(Sketch::from("a").on_failure()).await;
    let run = world.start(&flow).await;
    world.fail(&world.claim_one().await).await;
    assert_eq!(world.status(&run).await, RunStatus::Ending);
    let answer = world.unchanged_by(world.cancel(&run)).await;
    assert_eq!(answer, CancelAnswer::AlreadyEnding(RunStatus::Failed));
    assert_eq!(world.drain().await, "on_failure");
    assert_eq!(world.status(&run).await, RunStatus::Failed);
}

pub(super) async fn a_run_that_does_not_exist_cannot_be_cancelled(world: &World) {
    let answer =
        world.store().cancel(RunKey(77), CancelRequest::by("a test")).await.expect("cancel");
    assert_eq!(answer, None);
}

pub(super) async fn a_run_with_a_failed_task_is_failed_even_if_cancelled(world: &World) {
    let flow = world.define("a; b").await;
    let run = world.start(&flow).await;
    let roots = world.claim_all().await;
    world.fail(roots.of("a")).await;
    assert_eq!(world.cancel(&run).await, CancelAnswer::Cancelled);
    assert_eq!(world.states(&run).await, "a FAILED, b CANCELLED");
    assert_eq!(world.status(&run).await, RunStatus::Failed);
}

pub(super) async fn cancelling_touches_no_other_run(world: &World) {
    // S18
    let flow = world.define("a; b < a").await;
    let (gone, kept) = (world.start(&flow).await, world.start_for("zeta", &flow).await);
    let batch = world.claim_all().await;
    world.cancel(&gone).await;
    let task = batch.iter().find(|task| task.claim.run == kept.key).expect("both were claimed");
    world.complete(task).await;
    assert_eq!(world.drain().await, "b");
    assert_eq!(world.status(&kept).await, RunStatus::Completed);
}

pub(super) async fn a_race_of_cancelling_and_completing_has_one_winner(world: &World) {
    // FB6
    let flow = world.define("a").await;
    for _ in 0..10 {
        let run = world.start(&flow).await;
        let task = world.claim_one().await;
        let items = vec![CommitItem { claim: task.claim, outcome: completed() }];
        let (cancelled, committed) = join(
            world.store().cancel(run.key, CancelRequest::by("a test")),
            world.store().commit(items),
        )
        .await;
        world.check().await;
        let cancelled = cancelled.expect("cancel").expect("the run exists");
        let committed = committed.expect("commit")[0];
        let (status, expected) = match cancelled {
            CancelAnswer::Cancelled => (RunStatus::Cancelled, CommitAnswer::NotMine),
            _ => (RunStatus::Completed, CommitAnswer::Accepted),
        };
        assert_eq!((world.status(&run).await, committed), (status, expected), "{cancelled:?}");
    }
}

pub(super) async fn a_cancelled_wide_run_leaves_nothing_behind(world: &World) {
    // S16
    let steps: Vec<String> = (0..100).map(|n| format!("s{n}")).collect();
    let flow = world.define(steps.join("; ")).await;
    world.limit(TENANT, 40).await;
    let run = world.start(&flow).await;
    world.claim(&super::world::worker(super::world::WORKER), 10).await;
    world.cancel(&run).await;
    let dump = world.dump().await;
    assert!(dump.places.is_empty() && dump.timers.is_empty());
    assert!(dump.claims.values().all(Vec::is_empty));
    let view = world.tenant_view(TENANT).await;
    assert_eq!((view.n_ready, view.n_running, view.n_throttled, view.n_parked), (0, 0, 0, 0));
}

pub(super) async fn the_log_tells_who_cancelled_a_run_and_why(world: &World) {
    // L12, R17
    let flow = world.define("a").await;
    let long = "\u{1f422}".repeat(REASON_BYTES_MAX / 4);
    let told = [
        ("worker-7", None),
        ("ann@desk", Some("customer called")),
        ("'; drop table run; --", Some("$1 \"quoted\" \\ {} \n null")),
        ("", Some("")),
        ("ann@desk", Some(long.as_str())),
    ];
    for (by, reason) in told {
        let run = world.start(&flow).await;
        let (by, reason) = (by.to_owned(), reason.map(str::to_owned));
        let request = CancelRequest { by: by.clone(), reason: reason.clone(), force: false };
        assert_eq!(world.cancel_with(&run, request).await, CancelAnswer::Cancelled);
        let event = world.last_event(&run, "RUN_CANCELLED").await;
        assert_eq!(event.kind, EventKind::RunCancelled { by, reason, forced: false });
        let other = CancelRequest { reason: Some("again".to_owned()), ..CancelRequest::by("bob") };
        world.unchanged_by(world.cancel_with(&run, other)).await;
    }
}

pub(super) async fn a_cancelled_run_waits_for_nothing(world: &World) {
    // L12: waits and timers go, signals stay.
    let flow = world.define("a; w ? paid/1h; v ? paid; u ?? paid; b < w").await;
    let run = world.start_within(&flow, Duration::from_hours(2)).await;
    world.signal(&run, "other").await;
    let roots = world.claim_all().await;
    world.waits_for(roots.of("a"), "paid/1h").await;
    world.waits_for(roots.of("u"), "paid").await;
    assert_eq!(world.waits(&run).await.len(), 4);
    assert_eq!(world.cancel(&run).await, CancelAnswer::Cancelled);
    check_waits_for_nothing(world, &run).await;
    assert_eq!(world.status(&run).await, RunStatus::Cancelled);
}

pub(super) async fn a_run_that_fails_fast_waits_for_nothing(world: &World) {
    let flow = world.define(Sketch::from("a; w ? paid/1h; v ? paid; bad; b < w").fail_fast()).await;
    let run = world.start_within(&flow, Duration::from_hours(2)).await;
    world.signal(&run, "other").await;
    let roots = world.claim_all().await;
    world.waits_for(roots.of("a"), "paid/1h").await;
    world.fail(roots.of("bad")).await;
    check_waits_for_nothing(world, &run).await;
    assert_eq!(world.status(&run).await, RunStatus::Failed);
}

async fn check_waits_for_nothing(world: &World, run: &Run) {
    assert_eq!(world.waits(run).await, []);
    assert_eq!(world.inbox(run).await, "1 other");
    assert!(world.dump().await.timers.is_empty());
    world.pass(Duration::from_hours(3));
    let fired = world.unchanged_by(world.fire()).await;
    assert_eq!((fired.n_fired, fired.next_due), (0, None));
    assert!(world.claim_all().await.is_empty());
}

pub(super) async fn a_failed_step_leaves_waits_beside_it_alone(world: &World) {
    // L6
    let flow = world.define("bad; w ? paid; b < bad; c < w").await;
    let run = world.start(&flow).await;
    world.fail(&world.claim_one().await).await;
    assert_eq!(world.states(&run).await, "bad FAILED, w WAITING, b CANCELLED, c PENDING");
    world.signal(&run, "paid").await;
    assert_eq!(world.drain().await, "c");
    assert_eq!(world.status(&run).await, RunStatus::Failed);
}

pub(super) async fn force_ends_a_run_without_its_failure_handler(world: &World) {
    let flow = world.define(Sketch::from("a; b; w ? paid").on_failure()).await;
    let (gone, bad) = (world.start(&flow).await, world.start_for("zeta", &flow).await);
    let batch = world.claim_all().await;
    let of_bad = |step: &str| {
        let mut tasks = batch.iter().filter(|task| task.claim.run == bad.key);
        tasks.find(|task| task.claim.node == bad.node(step)).expect("it was claimed")
    };
    world.fail(of_bad("a")).await;
    for (run, end) in [(&gone, RunStatus::Cancelled), (&bad, RunStatus::Failed)] {
        assert_eq!(world.force(run).await, CancelAnswer::Cancelled);
        assert_eq!(world.status(run).await, end);
        let EventKind::RunCancelled { forced, .. } =
            world.last_event(run, "RUN_CANCELLED").await.kind
        else {
            panic!("it was cancelled")
        };
        assert!(forced);
    }
    assert_eq!(world.states(&bad).await, "a FAILED, b CANCELLED, w CANCELLED");
    let late = world.unchanged_by(world.commit_one(of_bad("b"), completed())).await;
    assert_eq!(late, CommitAnswer::NotMine);
    assert!(world.claim_all().await.is_empty());
}

pub(super) async fn force_ends_a_run_whose_failure_handler_hangs(world: &World) {
    // L12, R20
    let flow = world.define(Sketch::from("a").on_failure()).await;
    for is_claimed in [true, false] {
        let run = world.start_within(&flow, Duration::from_hours(2)).await;
        world.fail(&world.claim_one().await).await;
        let handler = if is_claimed { Some(world.claim_one().await) } else { None };
        assert_eq!(world.force(&run).await, CancelAnswer::ForcedToEnd(RunStatus::Failed));
        assert_eq!(world.states(&run).await, "a FAILED, on_failure CANCELLED");
        let row = world.row(&run).await;
        assert_eq!((row.status, row.cancelled), (RunStatus::Failed, false));
        if let Some(handler) = handler {
            let late = world.unchanged_by(world.commit_one(&handler, completed())).await;
            assert_eq!(late, CommitAnswer::NotMine);
        }
        assert!(world.claim_all().await.is_empty());
        let again = world.unchanged_by(world.force(&run)).await;
        assert_eq!(again, CancelAnswer::AlreadyEnded(RunStatus::Failed));
    }
}

pub(super) async fn force_changes_nothing_in_a_run_that_has_ended(world: &World) {
    // S8
    let flow = world.define("a").await;
    let run = world.start(&flow).await;
    world.step().await;
    let answer = world.unchanged_by(world.force(&run)).await;
    assert_eq!(answer, CancelAnswer::AlreadyEnded(RunStatus::Completed));
}

pub(super) async fn a_race_of_force_and_the_failure_handler_has_one_winner(world: &World) {
    // FB6
    let flow = world.define(Sketch::from("a").on_failure()).await;
    for _ in 0..10 {
        let run = world.start(&flow).await;
        world.fail(&world.claim_one().await).await;
        let handler = world.claim_one().await;
        let request = CancelRequest { force: true, ..CancelRequest::by("a test") };
        let items = vec![CommitItem { claim: handler.claim, outcome: completed() }];
        let (cancelled, committed) =
            join(world.store().cancel(run.key, request), world.store().commit(items)).await;
        world.check().await;
        let cancelled = cancelled.expect("cancel").expect("the run exists");
        let expected = match cancelled {
            CancelAnswer::ForcedToEnd(RunStatus::Failed) => CommitAnswer::NotMine,
            CancelAnswer::AlreadyEnded(RunStatus::Failed) => CommitAnswer::Accepted,
            answer => panic!("{answer:?}"),
        };
        assert_eq!(committed.expect("commit"), [expected]);
        assert_eq!(world.status(&run).await, RunStatus::Failed);
    }
}
