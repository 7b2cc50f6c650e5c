//! Memos: what a function has done is stored under its claim, in an order of its own, and read by
//! the next execution.

use std::collections::BTreeMap;
use std::time::Duration;

use stepwell_core::run::{MemoOutcome, ROUND_KEY, RunStatus, read_log};

use super::world::{CRASH_LIMIT, Run, WORKER, World, failed_forgetting, payload, words, worker};
use crate::ports::{ClaimedTask, Clock, CommitAnswer, MemoAnswer, Outcome};

/// A run with a claimed task.
async fn running(world: &World, text: &str) -> (Run, ClaimedTask) {
    let flow = world.define(text).await;
    let run = world.start(&flow).await;
    (run, world.claim_one().await)
}

/// The task again, after its worker died.
async fn lost(world: &World) -> ClaimedTask {
    world.lose(&worker(WORKER)).await;
    let heir = world.hire("heir").await;
    world.claim(&heir, 1).await.0.remove(0)
}

pub(super) async fn what_a_function_has_done_is_read_by_its_next_execution(world: &World) {
    // D1, D2
    let (run, task) = running(world, "a").await;
    let began_at = world.clock().now();
    world.pass(Duration::from_secs(3));
    let stored = world.clock().now();
    let answer = world.remember(&task, "charge@1=42 notify@2! nap@3~ ship+60s").await;
    assert_eq!(answer, MemoAnswer::Stored(stored));
    assert_eq!(
        world.memos(&run).await,
        "charge@1 GIVEN, nap@3 SLEPT, notify@2 FAILED, ship@0 BEGUN"
    );
    let history = world.history(&lost(world).await).await;
    assert_eq!(history.began_at, began_at);
    assert_eq!(words(&history.memos), "charge@1 GIVEN, nap@3 SLEPT, notify@2 FAILED, ship@0 BEGUN");
    assert_eq!(history.memos[0].payload, Some(payload(b"42")));
    assert_eq!(history.memos[0].row.at, stored);
    let MemoOutcome::Failed(failure) = &history.memos[2].row.outcome else { panic!("it failed") };
    assert_eq!(failure.message, "boom");
    let due = Some(stored.after(Duration::from_mins(1)));
    assert_eq!(history.memos[3].row.outcome, MemoOutcome::Begun { due, failure: None });
    assert!(history.has_losses && !history.has_suspended && !history.has_signals);
    assert!(history.waits.is_empty());
    world.lose(&worker("heir")).await;
    let third = world.hire("third").await;
    let again = world.claim(&third, 1).await.0.remove(0);
    assert_eq!(world.history(&again).await.began_at, began_at, "when the first execution began");
}

pub(super) async fn a_first_execution_finds_nothing_of_earlier_ones(world: &World) {
    let (_run, task) = running(world, "a").await;
    assert_eq!(world.inputs(&task).await.history, None);
    world.remember(&task, "charge@1=42").await;
    assert_eq!(world.inputs(&task).await.history, None, "it knows what it has done itself");
}

pub(super) async fn memos_of_one_task_are_no_others(world: &World) {
    let flow = world.define("a; b").await;
    let run = world.start(&flow).await;
    let tasks = world.claim_all().await;
    world.remember(tasks.of("a"), "step@1=1").await;
    world.remember(tasks.of("b"), "step@1=2").await;
    world.release(tasks.of("b")).await;
    let again = world.claim_one().await;
    assert_eq!(world.history(&again).await.memos[0].payload, Some(payload(b"2")));
    assert_eq!(world.memos(&run).await, "step@1 GIVEN, step@1 GIVEN");
}

pub(super) async fn a_late_worker_cannot_store_a_memo(world: &World) {
    // D5, S6
    let (run, task) = running(world, "a").await;
    let heir = lost(world).await;
    assert_eq!(world.remember(&task, "charge@1=42").await, MemoAnswer::NotMine);
    assert_eq!(world.memos(&run).await, "");
    assert_eq!(world.task(&run, "a").await.losses, 1, "and nothing is forgiven for it");
    world.remember(&heir, "charge@1=43").await;
    assert_eq!(world.remember(&task, "charge@1=42").await, MemoAnswer::NotMine);
    assert_eq!(world.memos(&run).await, "charge@1 GIVEN");
    world.complete(&heir).await;
    assert_eq!(world.remember(&heir, "late@2=1").await, MemoAnswer::NotMine);
    assert_eq!(world.memos(&run).await, "charge@1 GIVEN");
}

pub(super) async fn a_memo_of_a_cancelled_run_is_refused(world: &World) {
    // D9
    let (run, task) = running(world, "a").await;
    world.cancel(&run).await;
    assert_eq!(world.remember(&task, "charge@1=42").await, MemoAnswer::NotMine);
    assert_eq!(world.memos(&run).await, "");
}

pub(super) async fn a_memo_repeated_after_a_lost_reply_is_acknowledged(world: &World) {
    // FB1
    let (run, task) = running(world, "a").await;
    let first = world.remember(&task, "charge@1=42 ship@2=1").await;
    world.pass(Duration::from_secs(1));
    let again = world.remember(&task, "charge@1=42 ship@2=1").await;
    assert_eq!(again, first, "the function hears of it as the next execution will");
    world.complete(&task).await;
    assert_eq!(world.remember(&task, "charge@1=42 ship@2=1").await, first, "it is there");
    let partly = world.remember(&task, "charge@1=42 never@3=1").await;
    assert_eq!(partly, MemoAnswer::NotMine);
    assert_eq!(world.memos(&run).await, "charge@1 GIVEN, ship@2 GIVEN");
}

pub(super) async fn a_later_memo_is_not_taken_for_the_one_before_it(world: &World) {
    // D5, FB1: a step was begun under this claim, and what it gave came too late.
    let (run, task) = running(world, "a").await;
    world.remember(&task, "flaky+5s done@1=1").await;
    world.cancel(&run).await;
    assert_eq!(world.remember(&task, "flaky@2=42").await, MemoAnswer::NotMine);
    assert_eq!(world.remember(&task, "done@1=1 flaky@2=42").await, MemoAnswer::NotMine);
    let mut again = world.memo_request(&task, "flaky+5s");
    again.memos[0].row.tries += 1;
    assert_eq!(world.remember_all(vec![again]).await, [MemoAnswer::NotMine], "another try");
    assert!(matches!(world.remember(&task, "flaky+5s").await, MemoAnswer::Stored(_)));
    assert_eq!(world.memos(&run).await, "done@1 GIVEN, flaky@0 BEGUN");
}

pub(super) async fn what_a_function_may_have_heard_of_is_never_replaced(world: &World) {
    let (run, task) = running(world, "a").await;
    world.remember(&task, "nap+60s").await;
    world.remember(&task, "nap+90s").await;
    assert_eq!(world.memos(&run).await, "nap@0 BEGUN");
    world.remember(&task, "nap@1~").await;
    assert_eq!(world.memos(&run).await, "nap@1 SLEPT");
    world.remember(&task, "nap+60s").await;
    assert_eq!(world.memos(&run).await, "nap@1 SLEPT");
}

pub(super) async fn one_stale_request_does_not_touch_the_others(world: &World) {
    let flow = world.define("a").await;
    let (one, other) = (world.start(&flow).await, world.start(&flow).await);
    let tasks = world.claim_all().await;
    world.cancel(&one).await;
    let (stale, held) = (&tasks[0], &tasks[1]);
    let requests = ["charge@1=1", "ship@2=2", "ship@2=2"];
    let requests = [stale, held, held].into_iter().zip(requests);
    let requests = requests.map(|(task, text)| world.memo_request(task, text)).collect();
    let answers = world.remember_all(requests).await;
    assert_eq!(answers[0], MemoAnswer::NotMine);
    assert!(answers[1..].iter().all(|answer| matches!(answer, MemoAnswer::Stored(_))));
    assert_eq!(
        (world.memos(&one).await, world.memos(&other).await),
        (String::new(), "ship@2 GIVEN".to_owned())
    );
}

pub(super) async fn requests_of_a_claim_that_is_gone_are_answered_one_by_one(world: &World) {
    // FB1
    let (run, task) = running(world, "a").await;
    let first = world.remember(&task, "charge@1=42").await;
    world.complete(&task).await;
    let answers = async |texts: &[&str]| {
        let requests = texts.iter().map(|text| world.memo_request(&task, text)).collect();
        world.remember_all(requests).await
    };
    assert_eq!(answers(&["charge@1=42", "never@2=1"]).await, [first, MemoAnswer::NotMine]);
    assert_eq!(answers(&["never@2=1", "charge@1=42"]).await, [MemoAnswer::NotMine, first]);
    assert_eq!(answers(&["charge@1=42", "charge@1=42"]).await, [first, first]);
    assert_eq!(world.memos(&run).await, "charge@1 GIVEN");
}

pub(super) async fn of_two_claims_of_a_task_the_one_that_holds_it_stores(world: &World) {
    // D5, S6: a process may write for both at once.
    let (run, lost_task) = running(world, "a").await;
    world.remember(&lost_task, "before@1=1").await;
    let task = lost(world).await;
    for (number, is_first) in [(2, true), (3, false)] {
        let held = world.memo_request(&task, &format!("held@{number}=1 step-{number}@9{number}=1"));
        let late = world.memo_request(&lost_task, &format!("held@{number}=2 late@{number}=2"));
        let repeated = world.memo_request(&lost_task, "before@1=1");
        let requests = if is_first { [held, late, repeated] } else { [repeated, late, held] };
        let mut answers = world.remember_all(requests.to_vec()).await;
        if !is_first {
            answers.reverse();
        }
        assert!(matches!(answers[0], MemoAnswer::Stored(_)), "{number}: {answers:?}");
        assert_eq!(answers[1], MemoAnswer::NotMine, "{number}");
        assert!(matches!(answers[2], MemoAnswer::Stored(_)), "{number}: it was stored in time");
    }
    let memos = "before@1 GIVEN, held@2 GIVEN, step-2@92 GIVEN, step-3@93 GIVEN";
    assert_eq!(world.memos(&run).await, memos);
    world.complete(&task).await;
}

pub(super) async fn storing_a_memo_changes_neither_the_run_nor_its_log(world: &World) {
    let (run, task) = running(world, "a; b").await;
    let look = async || {
        let log = world.store().log(run.key).await.expect("read a log").expect("the run exists");
        (world.row(&run).await, read_log(&log), world.task(&run, "a").await)
    };
    let before = look().await;
    world.remember(&task, "charge@1=42").await;
    assert_eq!(before, look().await);
}

pub(super) async fn a_memo_clears_a_task_of_its_losses(world: &World) {
    // Whatever took its workers down, the task came further than that.
    let flow = world.define("a").await;
    let run = world.start(&flow).await;
    for n in 1..CRASH_LIMIT {
        let unlucky = world.hire(&format!("unlucky-{n}")).await;
        world.claim(&unlucky, 1).await;
        world.lose(&unlucky).await;
    }
    let task = world.claim_one().await;
    assert!(task.is_suspect);
    assert!(world.history(&task).await.has_losses);
    world.remember(&task, "charge@1=42").await;
    assert_eq!(world.task(&run, "a").await.losses, 0);
    world.complete(&task).await;
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

pub(super) async fn values_come_back_as_they_were_stored(world: &World) {
    let (_run, task) = running(world, "a").await;
    let large = "x".repeat(300_000);
    let key = format!("eu/tax[{}]", "k".repeat(900));
    let texts = [format!("{key}@1={large}"), "ünï@2=ö".to_owned(), "empty@3=".to_owned()];
    for text in &texts {
        world.remember(&task, text).await;
    }
    let memos = world.history(&lost(world).await).await.memos;
    let value = |key: &str| {
        let memo = memos.iter().find(|memo| memo.row.key == key).expect("it was stored");
        memo.payload.clone().expect("it has a value").bytes.to_vec()
    };
    assert_eq!(value(&key), large.as_bytes());
    assert_eq!(value("ünï"), "ö".as_bytes());
    assert_eq!(value("empty"), b"");
}

pub(super) async fn an_attempt_that_is_tried_again_forgets_the_failures_it_names(world: &World) {
    let (run, task) = running(world, "a * 1/0s").await;
    world.remember(&task, "charge@1=42 ship@2! notify@3!").await;
    world.settle(&task, failed_forgetting(&["ship", "notify"])).await;
    assert_eq!(world.memos(&run).await, "charge@1 GIVEN");
    let task = world.claim_one().await;
    world.remember(&task, "ship@4!").await;
    world.settle(&task, failed_forgetting(&["ship"])).await;
    assert_eq!(world.states(&run).await, "a FAILED");
    assert_eq!(world.memos(&run).await, "charge@1 GIVEN, ship@4 FAILED", "it ended by that");
}

pub(super) async fn another_round_begins_with_its_input_and_nothing_else(world: &World) {
    let (run, task) = running(world, "a * 3/0s; b < a").await;
    world.fail(&task).await;
    let task = world.claim_one().await;
    world.remember(&task, "charge@1=42 ship+60s").await;
    let again = |round, input: &[u8]| {
        let (input, notes) = (payload(input), BTreeMap::new());
        Outcome::Continued { round, input, notes }
    };
    world.settle(&task, again(1, b"next")).await;
    assert_eq!(world.states(&run).await, "a QUEUED, b PENDING");
    let task = world.claim_one().await;
    assert_eq!((task.attempt, task.failures), (3, 0), "what failed before is forgiven");
    let history = world.history(&task).await;
    let [round] = &history.memos[..] else { panic!("{:?}", words(&history.memos)) };
    assert_eq!((&*round.row.key, &round.row.outcome), (ROUND_KEY, &MemoOutcome::Round(1)));
    assert_eq!(round.payload, Some(payload(b"next")));
    assert!(history.has_suspended);
    let answer = world.commit_one(&task, again(2, b"last")).await;
    assert_eq!(answer, CommitAnswer::Accepted);
    assert_eq!(world.commit_one(&task, again(2, b"last")).await, CommitAnswer::Accepted);
    let task = world.claim_one().await;
    assert_eq!(world.history(&task).await.memos[0].payload, Some(payload(b"last")));
    world.complete(&task).await;
    assert_eq!(world.drain().await, "b");
    assert_eq!(world.status(&run).await, RunStatus::Completed);
    assert_eq!(world.output(&run, "a").await, Some(payload(b"output")));
}
