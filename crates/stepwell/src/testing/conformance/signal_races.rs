//! Signals at the same moment as each other, as commits, cancellations and timers: there is one
//! order, nothing is lost, and nothing is given twice.

use std::time::Duration;

use futures_util::future::{join, join_all};
use stepwell_core::decide::{CancelAnswer, CancelRequest, SignalAnswer};
use stepwell_core::run::{Resumed, RunStatus, TaskState};

use super::check_invariants;
use super::world::{LEASE, Run, Sending, TENANT, WORKER, World, completed, waiting, worker};
use crate::ports::{CommitAnswer, CommitItem, SignalRequest};

const ROUNDS: usize = 10;

/// Sends signals in a call of their own, beside others.
async fn send(world: &World, sendings: Vec<Sending>) -> Vec<Option<SignalAnswer>> {
    let requests = sendings.into_iter().map(SignalRequest::from).collect();
    world.store().signal(requests).await.expect("send signals")
}

async fn send_one(world: &World, sending: Sending) -> SignalAnswer {
    send(world, vec![sending]).await.remove(0).expect("the run exists")
}

pub(super) async fn of_two_signals_at_the_same_moment_a_wait_gets_the_first(world: &World) {
    let flow = world.define("a").await;
    for _ in 0..ROUNDS {
        let run = world.start(&flow).await;
        world.waits_for(&world.claim_one().await, "paid").await;
        let (one, two) = (world.to(&run, "paid"), world.to(&run, "paid"));
        let (one, two) = join(send_one(world, one), send_one(world, two)).await;
        world.check().await;
        let mut answers = [one, two].map(|answer| match answer {
            SignalAnswer::Stored { number, is_consumed } => (number, is_consumed),
            answer => panic!("{answer:?}"),
        });
        answers.sort_unstable();
        assert_eq!(answers, [(1, true), (2, false)]);
        let task = world.claim_one().await;
        assert_eq!(task.resumed, Some(Resumed::Signal(1)));
        world.complete(&task).await;
    }
}

pub(super) async fn one_signal_sent_at_the_same_moment_is_stored_once(world: &World) {
    // L10
    let flow = world.define("w ? paid; v ? paid").await;
    for _ in 0..ROUNDS {
        let run = world.start(&flow).await;
        let paid = world.to(&run, "paid");
        let answers = join_all((0..4).map(|_| send_one(world, paid.clone()))).await;
        world.check().await;
        let is_first = |answer: &&SignalAnswer| {
            **answer == SignalAnswer::Stored { number: 1, is_consumed: true }
        };
        let is_known =
            |answer: &&SignalAnswer| **answer == SignalAnswer::AlreadyStored { number: 1 };
        assert_eq!(answers.iter().filter(is_first).count(), 1, "{answers:?}");
        assert_eq!(answers.iter().filter(is_known).count(), 3, "{answers:?}");
        assert_eq!(world.waits(&run).await.len(), 1);
    }
}

pub(super) async fn batches_that_share_runs_are_sent_at_the_same_moment(world: &World) {
    // Whatever order each names the runs in, none waits for another in a circle.
    let flow = world.define("w ? paid; v ? paid; b < v").await;
    let runs = world.start_many_for(TENANT, &flow, 12).await;
    let batch = |n: usize| {
        let mut runs: Vec<&Run> = runs.iter().collect();
        if n.is_multiple_of(2) {
            runs.reverse();
        }
        runs.rotate_left(n * 3);
        runs.iter().map(|run| world.to(run, "paid")).collect::<Vec<_>>()
    };
    let answers = join_all((0..4).map(|n| send(world, batch(n)))).await;
    world.check().await;
    let is_consumed = |answer: &&Option<SignalAnswer>| {
        matches!(answer, Some(SignalAnswer::Stored { is_consumed: true, .. }))
    };
    assert_eq!(answers.iter().flatten().filter(is_consumed).count(), 2 * runs.len());
    for run in &runs {
        assert_eq!(world.inbox(run).await, "1 paid to w, 2 paid to v, 3 paid, 4 paid");
    }
    assert_eq!(world.claim_all().await.len(), runs.len());
}

pub(super) async fn a_race_of_a_signal_and_a_cancellation_has_one_winner(world: &World) {
    // L12: the answers say which.
    let flow = world.define("w ? paid").await;
    for _ in 0..ROUNDS {
        let run = world.start(&flow).await;
        let cancel = world.store().cancel(run.key, CancelRequest::by("a test"));
        let (answer, cancelled) = join(send_one(world, world.to(&run, "paid")), cancel).await;
        world.check().await;
        let cancelled = cancelled.expect("cancel").expect("the run exists");
        let (status, inbox) = match (answer, cancelled) {
            (
                SignalAnswer::Stored { is_consumed: true, .. },
                CancelAnswer::AlreadyEnded(RunStatus::Completed),
            ) => (RunStatus::Completed, "1 paid to w"),
            (SignalAnswer::AlreadyEnded(RunStatus::Cancelled), CancelAnswer::Cancelled) => {
                (RunStatus::Cancelled, "")
            }
            both => panic!("{both:?}"),
        };
        assert_eq!(world.status(&run).await, status);
        assert_eq!(world.inbox(&run).await, inbox);
    }
}

pub(super) async fn a_signal_at_the_same_moment_as_the_wait_is_given_once(world: &World) {
    // L9: whoever commits second binds them.
    let flow = world.define("a; w ? sent < a").await;
    for _ in 0..ROUNDS {
        let run = world.start(&flow).await;
        let task = world.claim_one().await;
        let items = vec![CommitItem { claim: task.claim, outcome: waiting("paid/1h") }];
        let (answer, committed) =
            join(send_one(world, world.to(&run, "paid")), world.store().commit(items)).await;
        world.check().await;
        assert_eq!(committed.expect("commit"), [CommitAnswer::Accepted]);
        check_given(world, &run, answer, ("a", TaskState::Queued)).await;
        let task = world.claim_one().await;
        assert_eq!(task.resumed, Some(Resumed::Signal(1)));
        let items = vec![CommitItem { claim: task.claim, outcome: completed() }];
        let (answer, committed) =
            join(send_one(world, world.to(&run, "sent")), world.store().commit(items)).await;
        world.check().await;
        assert_eq!(committed.expect("commit"), [CommitAnswer::Accepted]);
        check_given(world, &run, answer, ("w", TaskState::Completed)).await;
        assert_eq!(world.inbox(&run).await, "1 paid to a, 2 sent to w");
        assert_eq!(world.status(&run).await, RunStatus::Completed);
    }
}

/// A signal that was consumed at once has moved its task on; one that was kept does so when the
/// timer looks.
async fn check_given(
    world: &World,
    run: &Run,
    answer: SignalAnswer,
    (step, moved): (&str, TaskState),
) {
    let SignalAnswer::Stored { is_consumed, .. } = answer else { panic!("{answer:?}") };
    let expected = if is_consumed { moved } else { TaskState::Waiting };
    assert_eq!(world.task(run, step).await.state(), expected);
    world.fire_all().await;
    assert_eq!(world.task(run, step).await.state(), moved);
}

pub(super) async fn a_signal_at_the_same_moment_as_a_look_is_given_once(world: &World) {
    let flow = world.define("a; w ? paid < a").await;
    for _ in 0..ROUNDS {
        let run = world.start(&flow).await;
        world.signal(&run, "other").await;
        world.step().await;
        let epoch = world.lead().await;
        let (_, fired) =
            join(send_one(world, world.to(&run, "paid")), world.store().fire_timers(epoch, 10))
                .await;
        world.check().await;
        fired.expect("fire timers");
        world.fire_all().await;
        assert_eq!(world.inbox(&run).await, "1 other, 2 paid to w");
        assert_eq!(world.status(&run).await, RunStatus::Completed);
    }
}

pub(super) async fn a_wait_that_is_over_times_out_once_among_late_signals(world: &World) {
    // L8
    let flow = world.define("w ? paid/1h; b < w").await;
    for _ in 0..ROUNDS {
        let run = world.start(&flow).await;
        world.pass(Duration::from_hours(1));
        let epoch = world.lead().await;
        let (fire, look) =
            (world.store().fire_timers(epoch, 10), world.store().fire_timers(epoch, 10));
        let late = send_one(world, world.to(&run, "paid"));
        let (answer, fired) = join(late, join(fire, look)).await;
        world.check().await;
        assert_eq!(answer, SignalAnswer::Stored { number: 1, is_consumed: false });
        let n_fired = [fired.0, fired.1].map(|fired| fired.expect("fire timers").n_fired);
        assert_eq!(n_fired.iter().sum::<usize>(), 1);
        assert_eq!(world.inbox(&run).await, "1 paid");
        assert_eq!(world.step().await, "b");
    }
}

pub(super) async fn a_signal_at_the_same_moment_as_a_reaping_is_given_once(world: &World) {
    let flow = world.define("a; w ? paid").await;
    for round in 0..ROUNDS {
        let run = world.start(&flow).await;
        let unlucky = world.hire(&format!("unlucky-{round}")).await;
        world.claim(&unlucky, 1).await;
        world.pass(LEASE);
        world.beat(&worker(WORKER), &[]).await;
        world.pass(Duration::from_millis(1));
        let epoch = world.lead().await;
        let request = world.reap_request().await;
        let (answer, reaped) =
            join(send_one(world, world.to(&run, "paid")), world.store().reap(epoch, request)).await;
        world.check().await;
        assert_eq!(answer, SignalAnswer::Stored { number: 1, is_consumed: true });
        assert_eq!(reaped.expect("reap").n_tasks, 1);
        assert_eq!(world.step().await, "a");
        assert_eq!(world.status(&run).await, RunStatus::Completed);
    }
}

pub(super) async fn a_deadline_at_the_same_moment_as_a_signal_leaves_one_order(world: &World) {
    let flow = world.define("w ? paid; b < w").await;
    for _ in 0..ROUNDS {
        let run = world.start_within(&flow, Duration::from_secs(1)).await;
        world.pass(Duration::from_secs(1));
        let epoch = world.lead().await;
        let (answer, fired) =
            join(send_one(world, world.to(&run, "paid")), world.store().fire_timers(epoch, 10))
                .await;
        world.check().await;
        fired.expect("fire timers");
        world.fire_all().await;
        let expected = match answer {
            SignalAnswer::Stored { is_consumed: true, .. } => "w COMPLETED, b CANCELLED",
            SignalAnswer::AlreadyEnded(RunStatus::Failed) => "w CANCELLED, b CANCELLED",
            answer => panic!("{answer:?}"),
        };
        assert_eq!(world.states(&run).await, expected);
        assert_eq!(world.status(&run).await, RunStatus::Failed);
    }
}

pub(super) async fn a_look_never_shows_half_a_signal(world: &World) {
    // A batch of signals is one transaction, and a dump is one snapshot.
    let flow = world.define("w ? paid; b < w; v ? paid/1h < w").await;
    let runs = world.start_many_for(TENANT, &flow, 10).await;
    for _ in 0..2 {
        let sendings = runs.iter().map(|run| world.to(run, "paid")).collect();
        let looks = join_all((0..4).map(|_| check_invariants(&**world.store())));
        join(send(world, sendings), looks).await;
    }
    world.check().await;
    for run in &runs {
        assert_eq!(world.inbox(run).await, "1 paid to w, 2 paid to v");
    }
}
