//! Commits: outcomes with all that follows, in one transaction, and each only once.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use stepwell_core::failure::{Failure, FailureKind};
use stepwell_core::run::{AttemptState, EventKind, RunStatus};

use super::world::{
    Sketch, TENANT, WORKER, World, completed, completed_with, failed, failed_for_good, payload,
    worker,
};
use crate::ports::{ClaimedTask, CommitAnswer, CommitItem, Outcome};

/// Commits an outcome twice: the second time is accepted and changes nothing.
async fn check_repeated(world: &World, text: &str, outcome: Outcome) {
    let flow = world.define(text).await;
    world.start(&flow).await;
    let task = world.claim_one().await;
    world.settle(&task, outcome.clone()).await;
    for _ in 0..2 {
        let answer = world.unchanged_by(world.commit_one(&task, outcome.clone())).await;
        assert_eq!(answer, CommitAnswer::Accepted);
    }
}

pub(super) async fn a_repeated_completion_counts_once(world: &World) {
    // FB1, S4, S10
    check_repeated(world, "a; b < a; c < a, b", completed()).await;
}

pub(super) async fn a_repeated_failure_is_charged_once(world: &World) {
    // FB1, S9
    check_repeated(world, "a * 2/10s", failed("once")).await;
}

pub(super) async fn a_repeated_final_failure_counts_once(world: &World) {
    // FB1
    check_repeated(world, "a; b < a", failed_for_good("once")).await;
}

pub(super) async fn a_repeated_release_counts_once(world: &World) {
    // FB1
    check_repeated(world, "a", Outcome::Released).await;
}

pub(super) async fn a_repeated_commit_is_known_after_the_task_was_claimed_again(world: &World) {
    // FB1, FA2
    let flow = world.define("a * 5; b < a").await;
    world.start(&flow).await;
    let first = world.claim_one().await;
    world.fail(&first).await;
    let second = world.claim_one().await;
    let answer = world.unchanged_by(world.commit_one(&first, failed("again"))).await;
    assert_eq!(answer, CommitAnswer::Accepted);
    world.complete(&second).await;
    let answer = world.unchanged_by(world.commit_one(&first, failed("again"))).await;
    assert_eq!(answer, CommitAnswer::Accepted);
}

pub(super) async fn a_repeated_skip_changes_nothing(world: &World) {
    // FB1: a skipped task has no attempt to be known by, so the answer is not prescribed.
    let flow = world.define("a; b < a; c; d < c, b").await;
    world.start(&flow).await;
    let roots = world.claim_all().await;
    world.skip(roots.of("a")).await;
    world.unchanged_by(world.commit_one(roots.of("a"), Outcome::Skipped)).await;
}

pub(super) async fn the_same_item_twice_in_one_batch_counts_once(world: &World) {
    // FB1
    let flow = world.define("a; b < a").await;
    let run = world.start(&flow).await;
    let task = world.claim_one().await;
    let item = CommitItem { claim: task.claim, outcome: completed() };
    let answers = world.commit(vec![item.clone(), item]).await;
    assert_eq!(answers, [CommitAnswer::Accepted; 2]);
    assert_eq!(world.states(&run).await, "a COMPLETED, b QUEUED");
}

pub(super) async fn commits_of_one_claim_at_the_same_moment_count_once(world: &World) {
    // FB1, S10
    let flow = world.define("a; b < a").await;
    let run = world.start(&flow).await;
    let task = world.claim_one().await;
    let item = CommitItem { claim: task.claim, outcome: completed() };
    let commits = (0..5).map(|_| world.store().commit(vec![item.clone()]));
    for answers in join_all(commits).await {
        assert_eq!(answers.expect("commit"), [CommitAnswer::Accepted]);
    }
    world.check().await;
    assert_eq!(world.states(&run).await, "a COMPLETED, b QUEUED");
}

pub(super) async fn a_second_outcome_under_one_token_changes_nothing(world: &World) {
    // S7, S8
    let flow = world.define("a; b < a").await;
    let run = world.start(&flow).await;
    let task = world.claim_one().await;
    world.settle(&task, completed_with(b"first")).await;
    for outcome in [completed_with(b"second"), failed("second"), Outcome::Released] {
        world.unchanged_by(world.commit_one(&task, outcome)).await;
    }
    let output = world.output(&run, "a").await.expect("it completed");
    assert_eq!(&*output.bytes, b"first");
}

pub(super) async fn one_stale_item_does_not_touch_the_others(world: &World) {
    // S6
    let flow = world.define("a; b; c").await;
    let (cancelled, run) = (world.start(&flow).await, world.start(&flow).await);
    let batch = world.claim_all().await;
    world.cancel(&cancelled).await;
    let item = |task: &ClaimedTask| CommitItem { claim: task.claim, outcome: completed() };
    let answers = world.commit(batch.iter().map(item).collect()).await;
    for (task, answer) in batch.iter().zip(answers) {
        let is_stale = task.claim.run == cancelled.key;
        let expected = if is_stale { CommitAnswer::NotMine } else { CommitAnswer::Accepted };
        assert_eq!(answer, expected);
    }
    assert_eq!(world.status(&run).await, RunStatus::Completed);
    assert_eq!(world.status(&cancelled).await, RunStatus::Cancelled);
}

pub(super) async fn an_empty_batch_is_committed(world: &World) {
    let flow = world.define("a").await;
    world.start(&flow).await;
    assert!(world.unchanged_by(world.commit(Vec::new())).await.is_empty());
}

pub(super) async fn outcomes_of_many_runs_go_in_one_batch(world: &World) {
    let flow = world.define("a * 1; b < a").await;
    let runs = world.start_many_for(TENANT, &flow, 4).await;
    let batch = world.claim_all().await;
    let outcomes = [completed(), failed("once"), failed_for_good("for good"), Outcome::Skipped];
    let items = batch.iter().zip(outcomes);
    let items = items.map(|(task, outcome)| CommitItem { claim: task.claim, outcome });
    assert_eq!(world.commit(items.collect()).await, [CommitAnswer::Accepted; 4]);
    let expected = [
        "a COMPLETED, b QUEUED",
        "a QUEUED, b PENDING",
        "a FAILED, b CANCELLED",
        "a SKIPPED, b SKIPPED",
    ];
    for (run, expected) in runs.iter().zip(expected) {
        assert_eq!(world.states(run).await, expected);
    }
}

pub(super) async fn a_failure_that_cancels_the_rest_of_its_run_does_so_within_a_batch(
    world: &World,
) {
    let flow = world.define(Sketch::from("a; b; c").fail_fast()).await;
    let run = world.start(&flow).await;
    let batch = world.claim_all().await;
    let items = vec![
        CommitItem { claim: batch.of("a").claim, outcome: completed() },
        CommitItem { claim: batch.of("b").claim, outcome: failed("boom") },
        CommitItem { claim: batch.of("c").claim, outcome: completed() },
    ];
    let answers = world.commit(items).await;
    assert_eq!(answers[..2], [CommitAnswer::Accepted; 2]);
    // A store may decide the whole batch before the failure: then c was completed in time.
    let c = if answers[2] == CommitAnswer::Accepted { "COMPLETED" } else { "CANCELLED" };
    assert_eq!(world.states(&run).await, format!("a COMPLETED, b FAILED, c {c}"));
    assert_eq!(world.status(&run).await, RunStatus::Failed);
}

pub(super) async fn an_attempt_keeps_its_worker_its_times_and_its_notes(world: &World) {
    // G10, R3
    let flow = world.define("a").await;
    let run = world.start(&flow).await;
    world.pass(Duration::from_secs(1));
    let task = world.claim_one().await;
    world.pass(Duration::from_secs(2));
    let notes = BTreeMap::from([("rows".to_owned(), "7".to_owned()), ("ü".into(), "'".into())]);
    let output = payload(b"output");
    world.settle(&task, Outcome::Completed { output, notes: notes.clone() }).await;
    let log = world.store().log(run.key).await.expect("read a log").expect("the run exists");
    let [attempt] = log.attempts.as_slice() else { panic!("{:?}", log.attempts) };
    assert_eq!((attempt.attempt, attempt.state), (1, AttemptState::Completed));
    assert_eq!(attempt.claim.worker, worker(WORKER));
    assert_eq!(attempt.claim.token, task.claim.token);
    assert_eq!(attempt.claim.started_at.since(attempt.claim.queued_at), Duration::from_secs(1));
    assert_eq!(attempt.ended_at.since(attempt.claim.started_at), Duration::from_secs(2));
    assert_eq!(attempt.notes, notes);
    let event = world.last_event(&run, "COMPLETED").await;
    assert_eq!(event.kind, EventKind::Completed { notes });
}

pub(super) async fn a_failed_attempt_keeps_its_error(world: &World) {
    // G10
    let flow = world.define("a").await;
    let run = world.start(&flow).await;
    let task = world.claim_one().await;
    let failure = Failure::new(FailureKind::TimedOut, "app::Late", "it's too \"late\" — \u{1f422}")
        .caused_by("first cause")
        .caused_by("second\ncause");
    let notes = BTreeMap::from([("host".to_owned(), "one".to_owned())]);
    let outcome = Outcome::Failed {
        failure: failure.clone(),
        notes: notes.clone(),
        chance: 0,
        failures: 0,
        forgets: Vec::new(),
    };
    world.settle(&task, outcome).await;
    let log = world.store().log(run.key).await.expect("read a log").expect("the run exists");
    let attempt = &log.attempts[0];
    assert_eq!((attempt.state, &attempt.notes), (AttemptState::TimedOut, &notes));
    assert_eq!(attempt.failure.as_ref(), Some(&failure));
    let of_run = world.row(&run).await.failure.expect("the run failed");
    assert_eq!((of_run.step.as_str(), of_run.attempt, of_run.failure), ("a", 1, failure));
}

pub(super) async fn of_two_outcomes_of_one_claim_in_a_batch_the_first_counts(world: &World) {
    // FB1
    let flow = world.define("a; b").await;
    let run = world.start(&flow).await;
    let batch = world.claim_all().await;
    let item = |step: &str, outcome| CommitItem { claim: batch.of(step).claim, outcome };
    let failed_first = vec![item("a", failed_for_good("boom")), item("a", completed())];
    assert_eq!(world.commit(failed_first).await, [CommitAnswer::Accepted; 2]);
    assert!(world.store().outputs(run.key).await.expect("read outputs").is_empty());
    // A skip leaves no attempt by which a second outcome could be known.
    let skipped_first = vec![item("b", Outcome::Skipped), item("b", completed())];
    let answers = world.commit(skipped_first).await;
    assert_eq!(answers, [CommitAnswer::Accepted, CommitAnswer::NotMine]);
    assert!(world.store().outputs(run.key).await.expect("read outputs").is_empty());
    assert_eq!(world.states(&run).await, "a FAILED, b SKIPPED");
}
