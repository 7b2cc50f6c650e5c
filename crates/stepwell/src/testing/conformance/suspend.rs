//! Steps that wait: an attempt ends SUSPENDED and is charged nothing, and the step runs again when
//! a signal came or the wait timed out. What ended the wait stays until it is done or waits again.

use std::collections::BTreeMap;
use std::time::Duration;

use stepwell_core::decide::SignalAnswer;
use stepwell_core::run::{AttemptState, Attributes, EventKind, Resumed, RunStatus, TaskState};

use super::world::{
    CRASH_LIMIT, Run, Sketch, TENANT, WORKER, World, completed, completed_with, failed,
    failed_until, wait_for, waiting, worker,
};
use crate::ports::{ClaimedTask, Clock, CommitAnswer, CommitItem, Outcome, Payload, TaskPlace};

/// A run whose step `a` waits for `paid`, an hour at most.
async fn suspended(world: &World, text: &str) -> Run {
    let flow = world.define(text).await;
    let run = world.start(&flow).await;
    world.waits_for(&world.claim_one().await, "paid/1h").await;
    run
}

const fn kept(number: u64) -> SignalAnswer {
    SignalAnswer::Stored { number, is_consumed: false }
}

async fn attempts(world: &World, run: &Run) -> Vec<AttemptState> {
    let log = world.store().log(run.key).await.expect("read a log").expect("the run exists");
    let mut attempts = log.attempts;
    attempts.sort_by_key(|attempt| attempt.attempt);
    attempts.into_iter().map(|attempt| attempt.state).collect()
}

/// What a claimed task is resumed with, as bytes.
async fn heard(world: &World, task: &ClaimedTask) -> Option<Vec<u8>> {
    world.inputs(task).await.resumed.map(|payload| payload.bytes.to_vec())
}

pub(super) async fn a_step_that_waits_runs_again_with_the_signal(world: &World) {
    // L5, L7
    let run = suspended(world, "a; b < a").await;
    assert_eq!(world.states(&run).await, "a WAITING, b PENDING");
    assert!(world.claim_all().await.is_empty());
    world.send(world.to(&run, "paid").carrying(b"10 EUR")).await;
    assert_eq!(world.states(&run).await, "a QUEUED, b PENDING");
    let task = world.claim_one().await;
    assert_eq!((task.attempt, task.failures, task.resumed), (2, 0, Some(Resumed::Signal(1))));
    let resumed = world.inputs(&task).await.resumed.expect("it is told");
    assert_eq!((&*resumed.bytes, resumed.signal_name()), (&b"10 EUR"[..], Some("paid")));
    world.settle(&task, completed_with(b"done")).await;
    assert_eq!(&*world.output(&run, "a").await.expect("it completed").bytes, b"done");
    assert_eq!(world.task(&run, "a").await.resumed, None);
    assert_eq!(world.drain().await, "b");
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

pub(super) async fn a_step_whose_wait_timed_out_is_told_so(world: &World) {
    // L8
    let run = suspended(world, "a").await;
    world.pass(Duration::from_hours(1));
    assert_eq!(world.fire().await.n_fired, 1);
    assert_eq!(world.open_waits(&run).await, "");
    let task = world.claim_one().await;
    assert_eq!(task.resumed, Some(Resumed::TimedOut));
    assert_eq!(world.inputs(&task).await.resumed, Some(Payload::timed_out()));
    assert_eq!(world.signal(&run, "paid").await, kept(1));
    world.complete(&task).await;
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

pub(super) async fn a_step_that_never_waited_is_told_nothing(world: &World) {
    let flow = world.define("w ? paid; a < w").await;
    let run = world.start(&flow).await;
    world.signal(&run, "paid").await;
    let task = world.claim_one().await;
    assert_eq!(task.resumed, None);
    assert_eq!(world.inputs(&task).await.resumed, None);
}

pub(super) async fn a_wait_is_charged_nothing(world: &World) {
    // L5: neither as a failure nor as an attempt that its retries count.
    let run = suspended(world, "a * 1").await;
    for _ in 0..3 {
        world.signal(&run, "paid").await;
        world.waits_for(&world.claim_one().await, "paid").await;
    }
    world.signal(&run, "paid").await;
    let task = world.claim_one().await;
    assert_eq!((task.attempt, task.failures), (5, 0));
    world.fail(&task).await;
    assert_eq!(world.states(&run).await, "a QUEUED", "it has a retry left");
    world.fail(&world.claim_one().await).await;
    assert_eq!(world.states(&run).await, "a FAILED");
    let mut expected = vec![AttemptState::Suspended; 4];
    expected.extend([AttemptState::Failed; 2]);
    assert_eq!(attempts(world, &run).await, expected);
}

pub(super) async fn a_wait_clears_a_task_of_its_losses(world: &World) {
    // Whatever took its workers down, the task came further than that.
    let flow = world.define("a").await;
    let run = world.start(&flow).await;
    for round in 0..3 {
        for n in 1..CRASH_LIMIT {
            let unlucky = world.hire(&format!("unlucky-{round}-{n}")).await;
            world.claim(&unlucky, 1).await;
            world.lose(&unlucky).await;
        }
        let task = world.claim_one().await;
        assert!(task.is_suspect);
        world.waits_for(&task, "paid").await;
        assert_eq!(world.task(&run, "a").await.losses, 0);
        world.signal(&run, "paid").await;
    }
    let task = world.claim_one().await;
    assert!(!task.is_suspect);
    world.complete(&task).await;
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

pub(super) async fn a_step_may_wait_again_and_again(world: &World) {
    let run = suspended(world, "a; b < a").await;
    world.send(world.to(&run, "paid").carrying(b"first")).await;
    let task = world.claim_one().await;
    assert_eq!(heard(world, &task).await.as_deref(), Some(&b"first"[..]));
    world.waits_for(&task, "sent&order=7/2h").await;
    assert_eq!(world.open_waits(&run).await, "a for sent");
    assert_eq!(world.task(&run, "a").await.resumed, None, "the next wait ends it");
    assert_eq!(world.signal(&run, "paid").await, kept(2));
    world.pass(Duration::from_hours(2));
    world.fire().await;
    let task = world.claim_one().await;
    assert_eq!(task.resumed, Some(Resumed::TimedOut));
    world.waits_for(&task, "done").await;
    world.fire_all().await;
    world.send(world.to(&run, "done").carrying(b"third")).await;
    let task = world.claim_one().await;
    assert_eq!((task.resumed, task.attempt), (Some(Resumed::Signal(3)), 4));
    assert_eq!(heard(world, &task).await.as_deref(), Some(&b"third"[..]));
    world.complete(&task).await;
    assert_eq!(world.inbox(&run).await, "1 paid to a, 2 paid, 3 done to a");
}

pub(super) async fn what_ended_a_wait_stays_through_retries_losses_and_releases(world: &World) {
    // L7
    let run = suspended(world, "a * 5/10s").await;
    world.send(world.to(&run, "paid").carrying(b"once")).await;
    let expected = (Some(Resumed::Signal(1)), Some(b"once".to_vec()));
    let check = async |task: &ClaimedTask| {
        assert_eq!((task.resumed, heard(world, task).await), expected);
    };
    let task = world.claim_one().await;
    check(&task).await;
    world.fail(&task).await;
    world.pass(Duration::from_secs(10));
    world.fire().await;
    let task = world.claim_one().await;
    check(&task).await;
    world.release(&task).await;
    let second = world.hire("second").await;
    let batch = world.claim(&second, 1).await;
    check(&batch[0]).await;
    world.lose(&second).await;
    let task = world.claim_one().await;
    check(&task).await;
    world.settle(&task, failed_until(Duration::from_hours(1))).await;
    world.pass(Duration::from_hours(1));
    world.fire().await;
    check(&world.claim_one().await).await;
    assert_eq!(world.inbox(&run).await, "1 paid to a");
}

pub(super) async fn that_a_wait_timed_out_stays_through_a_retry(world: &World) {
    // L8
    let run = suspended(world, "a * 1").await;
    world.pass(Duration::from_hours(1));
    world.fire().await;
    world.fail(&world.claim_one().await).await;
    assert_eq!(world.signal(&run, "paid").await, kept(1));
    let task = world.claim_one().await;
    assert_eq!(world.inputs(&task).await.resumed, Some(Payload::timed_out()));
    world.fail(&task).await;
    assert_eq!(world.status(&run).await, RunStatus::Failed);
}

pub(super) async fn inputs_of_resumed_tasks_come_in_the_order_asked_for(world: &World) {
    let flow = world.define("a; b; c; d").await;
    let (one, two) = (world.start(&flow).await, world.start(&flow).await);
    for run in [&one, &two] {
        let batch = world.claim_all().await;
        for task in batch.iter().filter(|task| task.claim.run == run.key) {
            let name = task.definition.definition.name(task.claim.node).to_owned();
            world.waits_for(task, &format!("{name}/1h")).await;
        }
        for task in batch.iter().filter(|task| task.claim.run != run.key) {
            world.release(task).await;
        }
    }
    for (run, name) in [(&one, "c"), (&two, "a"), (&one, "a"), (&two, "c"), (&two, "d")] {
        let bytes = format!("{name} of {}", run.id.as_str());
        world.send(world.to(run, name).carrying(bytes.as_bytes())).await;
    }
    world.pass(Duration::from_hours(1));
    world.fire_all().await;
    let mut tasks = world.claim_all().await.0;
    tasks.sort_by_key(|task| (task.claim.node, std::cmp::Reverse(task.claim.run)));
    let asked: Vec<_> = tasks.iter().map(ClaimedTask::inputs_of).collect();
    let inputs = world.store().inputs(&asked).await.expect("read inputs");
    let text = |payload: &Payload| String::from_utf8_lossy(&payload.bytes).into_owned();
    let told: Vec<String> = inputs.iter().flat_map(|inputs| &inputs.resumed).map(text).collect();
    let (one, two) = (one.id.as_str(), two.id.as_str());
    let expected = [
        format!("a of {two}"),
        format!("a of {one}"),
        String::new(),
        String::new(),
        format!("c of {two}"),
        format!("c of {one}"),
        format!("d of {two}"),
        String::new(),
    ];
    assert_eq!(told, expected);
}

pub(super) async fn an_attempt_that_waits_is_kept_with_its_notes(world: &World) {
    // R17
    let flow = world.define("a").await;
    let run = world.start(&flow).await;
    let task = world.claim_one().await;
    world.pass(Duration::from_secs(7));
    let notes = BTreeMap::from([("asked".to_owned(), "the bank".to_owned())]);
    let outcome = Outcome::Waits { wait_for: wait_for("paid/1h"), notes: notes.clone() };
    world.settle(&task, outcome).await;
    let log = world.store().log(run.key).await.expect("read a log").expect("the run exists");
    let [attempt] = log.attempts.as_slice() else { panic!("{:?}", log.attempts) };
    assert_eq!((attempt.state, attempt.attempt), (AttemptState::Suspended, 1));
    assert_eq!((&attempt.notes, attempt.ended_at), (&notes, world.clock().now()));
    assert!(attempt.failure.is_none() && attempt.retry.is_none());
    let until = Some(world.clock().now().after(Duration::from_hours(1)));
    let (signals, matching) = (vec!["paid".to_owned()], Attributes::new());
    let event = world.last_event(&run, "WAITING").await;
    assert_eq!(event.kind, EventKind::Waiting { signals, matching, until, keys: Vec::new() });
    assert_eq!((event.attempt, event.node), (1, Some(run.node("a"))));
}

pub(super) async fn the_log_of_a_step_that_waits(world: &World) {
    // R17
    let run = suspended(world, "a").await;
    world.signal(&run, "paid").await;
    let so_far = "RUN_STARTED, a QUEUED, a STARTED, a SUSPENDED, a WAITING, a SIGNALLED";
    assert_eq!(world.trail(&run).await, so_far);
    let event = world.last_event(&run, "SIGNALLED").await;
    let into = TaskState::Queued;
    let expected =
        EventKind::Signalled { signal: "paid".to_owned(), number: 1, into, key: String::new() };
    assert_eq!((event.kind, event.attempt), (expected, 1));
    world.waits_for(&world.claim_one().await, "sent/1h").await;
    world.pass(Duration::from_hours(1));
    world.fire_all().await;
    let event = world.last_event(&run, "TIMED_OUT").await;
    assert_eq!((event.kind, event.attempt), (EventKind::TimedOut { into, key: String::new() }, 2));
    world.drain().await;
    let expected = format!(
        "{so_far}, a STARTED, a SUSPENDED, a WAITING, a TIMED_OUT, a STARTED, a COMPLETED, \
         RUN_ENDED COMPLETED"
    );
    assert_eq!(world.trail(&run).await, expected);
}

pub(super) async fn a_repeated_wait_opens_no_second_one(world: &World) {
    // FB1
    let flow = world.define("a").await;
    let run = world.start(&flow).await;
    let task = world.claim_one().await;
    world.waits_for(&task, "paid/1h").await;
    world.pass(Duration::from_mins(10));
    let again = || world.unchanged_by(world.commit_one(&task, waiting("paid/1h")));
    assert_eq!(again().await, CommitAnswer::Accepted);
    world.signal(&run, "paid").await;
    assert_eq!(again().await, CommitAnswer::Accepted);
    world.claim_one().await;
    assert_eq!(again().await, CommitAnswer::Accepted);
}

pub(super) async fn a_late_worker_cannot_let_a_reclaimed_task_wait(world: &World) {
    // S6
    let flow = world.define("a").await;
    let run = world.start(&flow).await;
    let second = world.hire("second").await;
    let lost = world.claim(&second, 1).await;
    world.lose(&second).await;
    let late = || world.unchanged_by(world.commit_one(&lost[0], waiting("paid/1h")));
    assert_eq!(late().await, CommitAnswer::NotMine);
    world.claim_one().await;
    assert_eq!(late().await, CommitAnswer::NotMine);
    world.cancel(&run).await;
    assert_eq!(late().await, CommitAnswer::NotMine);
}

pub(super) async fn a_batch_may_hold_waits_beside_other_outcomes(world: &World) {
    let flow = world.define("a; b; c < b; w ? sent < b; x").await;
    let (one, two) = (world.start(&flow).await, world.start(&flow).await);
    let batch = world.claim_all().await;
    let outcome = |task: &ClaimedTask| match task.claim.node {
        node if node == one.node("a") => waiting("paid/1h"),
        node if node == one.node("b") => completed(),
        _ => failed("boom"),
    };
    let item = |task: &ClaimedTask| CommitItem { claim: task.claim, outcome: outcome(task) };
    let answers = world.commit(batch.iter().map(item).collect()).await;
    assert_eq!(answers, vec![CommitAnswer::Accepted; 6]);
    for run in [&one, &two] {
        let expected = "a WAITING, b COMPLETED, c QUEUED, w WAITING, x FAILED";
        assert_eq!(world.states(run).await, expected);
        world.send_all(vec![world.to(run, "paid"), world.to(run, "sent")]).await;
    }
    world.drain().await;
    for run in [&one, &two] {
        assert_eq!(world.status(run).await, RunStatus::Failed);
    }
}

pub(super) async fn a_run_that_fails_fast_within_a_batch_closes_waits_of_that_batch(world: &World) {
    let flow = world.define(Sketch::from("a; b; c").fail_fast()).await;
    let run = world.start(&flow).await;
    let batch = world.claim_all().await;
    let item = |step, outcome| CommitItem { claim: batch.of(step).claim, outcome };
    let items = vec![
        item("a", waiting("paid/1h")),
        item("b", failed("boom")),
        item("c", waiting("paid/1h")),
    ];
    let answers = world.commit(items).await;
    assert_eq!(answers[..2], [CommitAnswer::Accepted; 2]);
    assert_eq!(answers[2], CommitAnswer::NotMine);
    assert_eq!(world.states(&run).await, "a CANCELLED, b FAILED, c CANCELLED");
    assert_eq!(world.fire().await.next_due, None);
}

pub(super) async fn a_step_that_waits_frees_its_slot_and_comes_back_through_the_limit(
    world: &World,
) {
    // R26
    let flow = world.define("a").await;
    world.limit(TENANT, 1).await;
    let runs = world.start_many_for(TENANT, &flow, 3).await;
    world.waits_for(&world.claim_one().await, "paid").await;
    let second = world.claim_one().await;
    assert_eq!(second.claim.run, runs[1].key);
    world.signal(&runs[0], "paid").await;
    assert_eq!(world.place(&runs[0], "a").await, Some(TaskPlace::Throttled));
    assert!(world.claim_all().await.is_empty());
    world.complete(&second).await;
    let third = world.claim_one().await;
    assert_eq!(third.claim.run, runs[2].key, "who was held back before goes first");
    world.complete(&third).await;
    assert_eq!(world.claim_one().await.resumed, Some(Resumed::Signal(1)));
}

pub(super) async fn a_resumed_step_that_nobody_serves_is_parked(world: &World) {
    // FE3
    let run = suspended(world, "a").await;
    world.dismiss(&worker(WORKER)).await;
    world.signal(&run, "paid").await;
    assert_eq!(world.place(&run, "a").await, Some(TaskPlace::Parked));
    world.serve(&run.flow).await;
    let task = world.claim_one().await;
    assert_eq!(task.resumed, Some(Resumed::Signal(1)));
    assert!(heard(world, &task).await.is_some());
}

pub(super) async fn a_step_that_waits_holds_no_claim(world: &World) {
    let flow = world.define("a").await;
    let run = world.start(&flow).await;
    let second = world.hire("second").await;
    let claim = world.claim(&second, 1).await.0.remove(0);
    world.waits_for(&claim, "paid").await;
    assert_eq!(world.beat(&second, &[claim.claim]).await, [claim.claim]);
    world.lose(&second).await;
    assert_eq!(world.states(&run).await, "a WAITING");
    assert_eq!(world.task(&run, "a").await.losses, 0);
}
