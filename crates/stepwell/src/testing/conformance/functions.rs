//! Functions: an execution ends SUSPENDED when nothing of it is left to do but wait, and the next
//! one hears of what ended, one thing at a time. A function that runs on hears of signals when it
//! looks for them.

use std::time::Duration;

use stepwell_core::decide::SignalAnswer;
use stepwell_core::run::{MemoOutcome, Resumed, RunStatus, TaskState, WaitKind};

use super::world::{CRASH_LIMIT, Run, WORKER, World, payload, words, worker};
use crate::ports::{
    ClaimedTask, Clock, CommitAnswer, Heard, Hint, ListenAnswer, Payload, StoredMemo,
};

const HOUR: Duration = Duration::from_hours(1);

/// A run whose function waits for what a text says.
async fn suspended(world: &World, waits: &str) -> Run {
    let flow = world.define("f").await;
    let run = world.start(&flow).await;
    world.suspend(&world.claim_one().await, 1, waits).await;
    run
}

async fn state(world: &World, run: &Run) -> TaskState {
    world.task(run, "f").await.state()
}

/// The memos that a claimed task finds.
async fn memos(world: &World, task: &ClaimedTask) -> Vec<StoredMemo> {
    world.history(task).await.memos
}

fn heard(place: u32, payload: Option<Payload>, world: &World) -> ListenAnswer {
    ListenAnswer::Listening(Some(Heard { place, payload, at: world.clock().now() }))
}

pub(super) async fn a_function_that_sleeps_goes_on_when_the_time_is_up(world: &World) {
    // D12, R4
    let run = suspended(world, "nap~24h").await;
    assert_eq!(state(world, &run).await, TaskState::Sleeping);
    assert!(world.claim_all().await.is_empty(), "it holds no worker");
    world.pass(23 * HOUR);
    assert_eq!(world.fire().await.n_fired, 0);
    world.pass(HOUR);
    assert_eq!(world.fire().await.n_fired, 1);
    let task = world.claim_one().await;
    assert_eq!((task.attempt, task.failures), (2, 0));
    assert_eq!(words(&memos(world, &task).await), "nap@1 SLEPT");
    assert!(world.history(&task).await.has_suspended);
    world.complete(&task).await;
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

pub(super) async fn a_signal_wakes_a_function_that_waits(world: &World) {
    // D12, L7
    let run = suspended(world, "ok?paid/3h").await;
    assert_eq!(state(world, &run).await, TaskState::Waiting);
    world.send(world.to(&run, "paid").carrying(b"10 EUR")).await;
    let task = world.claim_one().await;
    let memos = memos(world, &task).await;
    assert_eq!(words(&memos), "ok@1 SIGNALLED");
    let got = memos[0].payload.clone().expect("it is told what came");
    assert_eq!((&*got.bytes, got.signal_name()), (&b"10 EUR"[..], Some("paid")));
    assert_eq!(world.inbox(&run).await, "1 paid to f");
    assert_eq!(world.open_waits(&run).await, "");
    world.complete(&task).await;
}

pub(super) async fn a_wait_of_a_function_that_times_out_says_so(world: &World) {
    // L8
    let run = suspended(world, "ok?paid/3h").await;
    world.pass(3 * HOUR);
    assert_eq!(world.fire().await.n_fired, 1);
    let task = world.claim_one().await;
    let memos = memos(world, &task).await;
    assert_eq!(memos[0].row.outcome, MemoOutcome::Ended(Resumed::TimedOut));
    assert_eq!(memos[0].payload, Some(Payload::timed_out()));
    let kept = SignalAnswer::Stored { number: 1, is_consumed: false };
    assert_eq!(world.signal(&run, "paid").await, kept);
    world.complete(&task).await;
}

pub(super) async fn a_function_hears_of_one_thing_and_the_rest_stays_open(world: &World) {
    let run = suspended(world, "ok?paid/5h nap~2h save*90m").await;
    assert_eq!(state(world, &run).await, TaskState::Waiting);
    world.pass(HOUR);
    world.signal(&run, "paid").await;
    let task = world.claim_one().await;
    let history = world.history(&task).await;
    assert_eq!(words(&history.memos), "ok@1 SIGNALLED");
    let open: Vec<(&str, WaitKind)> =
        history.waits.iter().map(|wait| (wait.key.as_str(), wait.kind)).collect();
    assert_eq!(open, [("nap", WaitKind::Sleep), ("save", WaitKind::Retry)]);
    // What stays open keeps its deadline, whatever is asked for again.
    world.suspend(&task, 2, "nap~2h save*90m").await;
    assert_eq!(state(world, &run).await, TaskState::Sleeping);
    world.pass(HOUR / 2);
    assert_eq!(world.fire().await.n_fired, 1, "the step is tried again");
    let task = world.claim_one().await;
    assert_eq!(words(&memos(world, &task).await), "ok@1 SIGNALLED", "which is no news by itself");
    world.suspend(&task, 2, "nap~2h").await;
    world.pass(HOUR / 2);
    assert_eq!(world.fire().await.n_fired, 1);
    let task = world.claim_one().await;
    assert_eq!(words(&memos(world, &task).await), "nap@2 SLEPT, ok@1 SIGNALLED");
    assert!(world.history(&task).await.waits.is_empty());
    world.complete(&task).await;
}

pub(super) async fn a_signal_that_came_before_is_heard_of_at_once(world: &World) {
    // L9
    let flow = world.define("f").await;
    for wait in ["ok?paid/0s", "ok?paid/3h", "ok?paid"] {
        let run = world.start(&flow).await;
        let task = world.claim_one().await;
        world.send(world.to(&run, "paid").carrying(b"early")).await;
        world.suspend(&task, 1, wait).await;
        assert_eq!(world.fire().await.n_fired, 1, "{wait}");
        let task = world.claim_one().await;
        let got = memos(world, &task).await[0].payload.clone().expect("it is told what came");
        assert_eq!(&*got.bytes, b"early", "{wait}");
        world.complete(&task).await;
    }
}

pub(super) async fn a_signal_to_a_function_that_was_woken_is_kept_for_its_other_wait(
    world: &World,
) {
    let run = suspended(world, "ok?paid no?refused").await;
    world.signal(&run, "paid").await;
    world.signal(&run, "refused").await;
    assert_eq!(world.inbox(&run).await, "1 paid to f, 2 refused");
    let task = world.claim_one().await;
    assert!(world.history(&task).await.has_signals);
    let answer = world.listen(&task, 2, "no?refused").await;
    let brought = payload(b"payload-2").of_signal("refused");
    // By its place in this execution, which may be another than it had before.
    assert_eq!(answer, heard(0, Some(brought), world), "in the same execution");
    assert_eq!(world.memos(&run).await, "no@2 SIGNALLED, ok@1 SIGNALLED");
    world.complete(&task).await;
}

pub(super) async fn a_running_function_hears_of_a_signal_when_it_listens(world: &World) {
    let flow = world.define("f").await;
    let run = world.start(&flow).await;
    let task = world.claim_one().await;
    let mut hints = world.store().hints();
    let nothing = ListenAnswer::Listening(None);
    assert_eq!(world.listen(&task, 1, "nap~1h ok?paid&order=7").await, nothing);
    assert_eq!(world.open_waits(&run).await, "f for , f for paid");
    world.signal(&run, "paid").await;
    assert_eq!(world.listen(&task, 1, "nap~1h ok?paid&order=7").await, nothing);
    hints.look(Hint::Received);
    world.send(world.to(&run, "paid").with("order", "7").carrying(b"7 EUR")).await;
    hints.given(Hint::Received).await;
    let answer = world.listen(&task, 1, "nap~1h ok?paid&order=7").await;
    assert_eq!(answer, heard(1, Some(payload(b"7 EUR").of_signal("paid")), world));
    assert_eq!(state(world, &run).await, TaskState::Running);
    assert_eq!(world.inbox(&run).await, "1 paid, 2 paid to f");
    assert_eq!(world.memos(&run).await, "ok@1 SIGNALLED");
    world.pass(HOUR);
    assert_eq!(world.listen(&task, 2, "nap~1h").await, heard(0, None, world));
    assert_eq!(world.memos(&run).await, "nap@2 SLEPT, ok@1 SIGNALLED");
    world.complete(&task).await;
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

pub(super) async fn a_running_function_hears_of_a_deadline_when_it_listens(world: &World) {
    let flow = world.define("f").await;
    let run = world.start(&flow).await;
    let task = world.claim_one().await;
    world.listen(&task, 1, "ok?paid/1h").await;
    world.pass(HOUR);
    let kept = SignalAnswer::Stored { number: 1, is_consumed: false };
    assert_eq!(world.signal(&run, "paid").await, kept, "it came too late");
    let answer = world.listen(&task, 1, "ok?paid/1h").await;
    assert_eq!(answer, heard(0, Some(Payload::timed_out()), world));
    assert_eq!(world.memos(&run).await, "ok@1 TIMED_OUT");
    world.complete(&task).await;
}

pub(super) async fn what_was_left_to_a_wait_that_is_given_up_goes_to_another(world: &World) {
    // S14
    let flow = world.define("f; w ? paid").await;
    let run = world.start(&flow).await;
    let task = world.claim_one().await;
    world.listen(&task, 1, "ok?late").await;
    let older = world.start(&world.define("f; g").await).await;
    let tasks = world.claim_all().await;
    world.listen(tasks.of("f"), 1, "ok?paid").await;
    world.suspend(tasks.of("g"), 1, "ok?paid").await;
    world.signal(&older, "paid").await;
    world.fire().await;
    assert_eq!(world.inbox(&older).await, "1 paid", "the older wait has a right to it");
    world.listen(tasks.of("f"), 1, "").await;
    // The leader lets the other wait look, and that finds it.
    world.fire().await;
    world.fire().await;
    assert_eq!(world.inbox(&older).await, "1 paid to g");
    // A function that ends takes its waits along, and the leader looks for others.
    world.signal(&run, "late").await;
    world.complete(&task).await;
    world.fire().await;
    assert_eq!(world.inbox(&run).await, "1 late");
    assert_eq!(world.open_waits(&run).await, "w for paid");
}

pub(super) async fn whatever_ends_a_function_takes_its_waits_along(world: &World) {
    // L12, S16
    let asleep = suspended(world, "nap~24h ok?paid").await;
    world.cancel(&asleep).await;
    assert_eq!(world.open_waits(&asleep).await, "");
    assert_eq!(world.status(&asleep).await, RunStatus::Cancelled);
    let flow = world.define("f").await;
    for ends in ["cancel", "fail", "complete"] {
        let run = world.start(&flow).await;
        let task = world.claim_one().await;
        world.listen(&task, 1, "ok?paid nap~1h").await;
        match ends {
            "cancel" => drop(world.cancel(&run).await),
            "fail" => world.fail(&task).await,
            _ => world.complete(&task).await,
        }
        assert_eq!(world.open_waits(&run).await, "", "{ends}");
    }
}

pub(super) async fn a_late_worker_can_neither_suspend_nor_listen(world: &World) {
    // S6
    let flow = world.define("f").await;
    let run = world.start(&flow).await;
    let task = world.claim_one().await;
    world.lose(&worker(WORKER)).await;
    let heir = world.hire("heir").await;
    let again = world.claim(&heir, 1).await.0.remove(0);
    let outcome = world.suspended(&task, 1, "nap~1h");
    assert_eq!(world.commit_one(&task, outcome).await, CommitAnswer::NotMine);
    assert_eq!(world.listen(&task, 1, "ok?paid").await, ListenAnswer::NotMine);
    assert_eq!(world.open_waits(&run).await, "");
    world.complete(&again).await;
}

pub(super) async fn a_repeated_suspension_counts_once(world: &World) {
    let flow = world.define("f").await;
    let run = world.start(&flow).await;
    let task = world.claim_one().await;
    for _ in 0..2 {
        let outcome = world.suspended(&task, 1, "nap~1h");
        assert_eq!(world.commit_one(&task, outcome).await, CommitAnswer::Accepted);
    }
    assert_eq!(world.waits(&run).await.len(), 1);
    assert_eq!(world.task(&run, "f").await.attempt, 1);
}

pub(super) async fn a_suspension_clears_a_task_of_its_losses(world: &World) {
    let flow = world.define("f").await;
    let run = world.start(&flow).await;
    for n in 1..CRASH_LIMIT {
        let unlucky = world.hire(&format!("unlucky-{n}")).await;
        world.claim(&unlucky, 1).await;
        world.lose(&unlucky).await;
    }
    world.suspend(&world.claim_one().await, 1, "nap~1h").await;
    assert_eq!(world.task(&run, "f").await.losses, 0);
}

pub(super) async fn memos_and_waits_go_on_across_suspensions(world: &World) {
    // D2, D12
    let flow = world.define("f").await;
    let run = world.start(&flow).await;
    let mut task = world.claim_one().await;
    let mut number = 1;
    for round in 0..5 {
        world.remember(&task, &format!("step-{round}@{number}=done")).await;
        world.suspend(&task, number + 1, &format!("nap-{round}~1h")).await;
        world.pass(HOUR);
        assert_eq!(world.fire().await.n_fired, 1);
        task = world.claim_one().await;
        number += 2;
        let memos = memos(world, &task).await;
        let numbers: std::collections::BTreeSet<u64> =
            memos.iter().map(|memo| memo.row.number).collect();
        assert!(numbers.into_iter().eq(1..number), "each has a number of its own");
    }
    world.complete(&task).await;
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}
