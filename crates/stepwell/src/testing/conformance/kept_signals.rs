//! Signals that nobody waited for: they are kept, and the wait that comes later gets the first that
//! is for it. A timer that is due at once looks, so that a commit never runs through many waits.

use std::time::Duration;

use stepwell_core::decide::SignalAnswer;
use stepwell_core::limits::UNCONSUMED_SIGNALS_MAX;
use stepwell_core::run::{Phase, Resumed, RunStatus};

use super::world::{Run, Sending, World, completed, failed};
use crate::ports::{Clock, Payload};

/// How many signals are sent in one call to fill a run.
const BATCH: usize = 1_000;

const fn stored(number: u64, is_consumed: bool) -> SignalAnswer {
    SignalAnswer::Stored { number, is_consumed }
}

/// Whether a waiting task has a timer that fires at once, to look at what was sent.
async fn is_to_look(world: &World, run: &Run, step: &str) -> bool {
    let due = world.dump().await.timers.get(&(run.key, run.node(step))).copied();
    due.is_some_and(|due| due <= world.clock().now())
}

pub(super) async fn a_signal_before_the_wait_is_kept_for_it(world: &World) {
    // L9
    let flow = world.define("a; w ? paid < a; b < w").await;
    let run = world.start(&flow).await;
    assert_eq!(world.send(world.to(&run, "paid").carrying(b"early")).await, stored(1, false));
    let row = world.row(&run).await;
    assert_eq!((row.n_signals, row.n_unconsumed), (1, 1));
    world.pass(Duration::from_hours(1));
    assert_eq!(world.step().await, "a");
    assert_eq!(world.states(&run).await, "a COMPLETED, w WAITING, b PENDING");
    assert!(is_to_look(world, &run, "w").await);
    assert_eq!(world.fire_all().await, 1);
    assert_eq!(world.states(&run).await, "a COMPLETED, w COMPLETED, b QUEUED");
    assert_eq!(&*world.output(&run, "w").await.expect("it completed").bytes, b"early");
    assert_eq!(world.inbox(&run).await, "1 paid to w");
    assert_eq!(world.row(&run).await.n_unconsumed, 0);
}

pub(super) async fn a_step_that_goes_waiting_gets_what_was_kept(world: &World) {
    // L9
    let flow = world.define("a").await;
    let run = world.start(&flow).await;
    let task = world.claim_one().await;
    world.signal(&run, "paid").await;
    world.waits_for(&task, "paid/1h").await;
    assert_eq!(world.states(&run).await, "a WAITING");
    assert!(is_to_look(world, &run, "a").await);
    assert_eq!(world.fire_all().await, 1);
    assert_eq!(world.claim_one().await.resumed, Some(Resumed::Signal(1)));
}

pub(super) async fn a_wait_of_no_length_gets_what_was_kept(world: &World) {
    let flow = world.define("a; w ? paid/0s < a").await;
    for late in [Duration::ZERO, Duration::from_hours(1)] {
        let run = world.start(&flow).await;
        world.signal(&run, "paid").await;
        world.pass(Duration::from_secs(1));
        world.step().await;
        world.pass(late);
        world.fire_all().await;
        assert_eq!(world.inbox(&run).await, "1 paid to w");
        assert_eq!(world.status(&run).await, RunStatus::Completed);
    }
}

pub(super) async fn a_wait_of_no_length_is_over_at_the_next_firing(world: &World) {
    let flow = world.define("w ? paid/0s; b < w").await;
    let run = world.start(&flow).await;
    assert_eq!(world.states(&run).await, "w WAITING, b PENDING");
    assert_eq!(world.signal(&run, "paid").await, stored(1, false), "it came after the wait");
    assert_eq!(world.fire_all().await, 1);
    assert_eq!(world.output(&run, "w").await, Some(Payload::timed_out()));
    assert_eq!(world.inbox(&run).await, "1 paid");
}

pub(super) async fn what_was_kept_is_in_time_however_late_the_timer_fires(world: &World) {
    // L8, L9
    let flow = world.define("a; w ? paid/1h < a").await;
    let run = world.start(&flow).await;
    world.signal(&run, "paid").await;
    world.step().await;
    world.pass(Duration::from_hours(9));
    world.signal(&run, "paid").await;
    world.fire_all().await;
    assert_eq!(world.inbox(&run).await, "1 paid to w, 2 paid");
}

pub(super) async fn a_look_that_finds_nothing_ends_no_wait(world: &World) {
    let flow = world.define("a; w ? paid/3h < a; v ? paid&order=1 < a").await;
    let run = world.start(&flow).await;
    world.signal(&run, "other").await;
    world.step().await;
    assert!(is_to_look(world, &run, "w").await && is_to_look(world, &run, "v").await);
    world.pass(Duration::from_hours(1));
    assert_eq!(world.fire_all().await, 2);
    assert_eq!(world.states(&run).await, "a COMPLETED, w WAITING, v WAITING");
    assert_eq!(world.fire().await.next_due, Some(Duration::from_hours(2)));
    let phase = world.task(&run, "v").await.phase;
    assert_eq!(phase, Phase::Waiting { due: None }, "it waits for ever");
    assert_eq!(world.signal(&run, "paid").await, stored(2, true), "it has looked");
    assert_eq!(world.send(world.to(&run, "paid").with("order", "1")).await, stored(3, true));
    assert_eq!(world.inbox(&run).await, "1 other, 2 paid to w, 3 paid to v");
}

pub(super) async fn a_look_after_the_deadline_ends_the_wait(world: &World) {
    let flow = world.define("a; w ? paid/3h < a").await;
    let run = world.start(&flow).await;
    world.signal(&run, "other").await;
    world.step().await;
    world.pass(Duration::from_hours(3));
    assert_eq!(world.fire_all().await, 1);
    assert_eq!(world.output(&run, "w").await, Some(Payload::timed_out()));
}

pub(super) async fn who_goes_waiting_looks_at_nothing_if_nothing_is_kept(world: &World) {
    // The run's own counter says so; what was consumed does not count.
    let flow = world.define("w ? paid; a < w; v ? paid < a; u ? paid/1h < a").await;
    let run = world.start(&flow).await;
    assert!(!world.dump().await.timers.contains_key(&(run.key, run.node("w"))));
    world.signal(&run, "paid").await;
    world.step().await;
    assert_eq!(world.task(&run, "v").await.phase, Phase::Waiting { due: None });
    let due = world.clock().now().after(Duration::from_hours(1));
    assert_eq!(world.task(&run, "u").await.phase, Phase::Waiting { due: Some(due) });
}

pub(super) async fn kept_signals_are_given_in_their_order(world: &World) {
    let flow = world.define("a; w ? x|paid < a; v ? paid < w; u ? paid < v").await;
    let run = world.start(&flow).await;
    for (number, bytes) in (1..).zip([b"one", b"two", b"six"]) {
        let paid = world.to(&run, "paid").carrying(bytes);
        assert_eq!(world.send(paid).await, stored(number, false));
    }
    world.step().await;
    assert_eq!(world.fire_all().await, 3);
    assert_eq!(world.inbox(&run).await, "1 paid to w, 2 paid to v, 3 paid to u");
    let outputs = world.store().outputs(run.key).await.expect("read outputs");
    let bytes: Vec<&[u8]> = outputs.iter().skip(1).map(|(_, output)| &*output.bytes).collect();
    assert_eq!(bytes, [b"one", b"two", b"six"]);
}

pub(super) async fn a_signal_does_not_overtake_what_is_yet_to_be_looked_at(world: &World) {
    // L9: in order per run and type.
    let flow = world.define("a").await;
    let run = world.start(&flow).await;
    let task = world.claim_one().await;
    world.signal(&run, "paid").await;
    world.waits_for(&task, "paid").await;
    assert_eq!(world.signal(&run, "paid").await, stored(2, false));
    world.fire_all().await;
    assert_eq!(world.inbox(&run).await, "1 paid to a, 2 paid");
    world.waits_for(&world.claim_one().await, "paid").await;
    world.fire_all().await;
    assert_eq!(world.claim_one().await.resumed, Some(Resumed::Signal(2)));
}

pub(super) async fn waits_that_look_together_get_one_signal_each(world: &World) {
    let flow = world.define("a; w ? paid < a; v ? paid < a; u ? paid < a").await;
    let run = world.start(&flow).await;
    world.signal(&run, "paid").await;
    world.signal(&run, "paid").await;
    world.step().await;
    world.fire_all().await;
    let given: Vec<_> =
        world.signals(&run).await.iter().filter_map(|signal| signal.row.consumed_by).collect();
    assert_eq!(given.len(), 2);
    assert_ne!(given[0], given[1]);
    assert_eq!(world.waits(&run).await.len(), 1);
    assert_eq!(world.signal(&run, "paid").await, stored(3, true));
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

pub(super) async fn what_an_older_wait_did_not_take_goes_to_the_next(world: &World) {
    // The older one has yet to look when both signals come, the younger one has nothing to look at.
    let flow = world.define("a; b; c; first ? x < a; old ? y|s < b; young ? s < c").await;
    let run = world.start(&flow).await;
    let batch = world.claim_all().await;
    world.signal(&run, "x").await;
    world.complete(batch.of("a")).await;
    world.pass(Duration::from_secs(1));
    world.complete(batch.of("b")).await;
    assert_eq!(world.fire_up_to(1).await.n_fired, 1);
    assert_eq!(world.inbox(&run).await, "1 x to first");
    world.complete(batch.of("c")).await;
    world.signal(&run, "y").await;
    world.signal(&run, "s").await;
    world.fire_all().await;
    assert_eq!(world.inbox(&run).await, "1 x to first, 2 y to old, 3 s to young");
}

pub(super) async fn a_signal_to_a_task_that_is_queued_or_runs_is_kept(world: &World) {
    let flow = world.define("a").await;
    let run = world.start(&flow).await;
    world.waits_for(&world.claim_one().await, "paid").await;
    assert_eq!(world.signal(&run, "paid").await, stored(1, true));
    assert_eq!(world.signal(&run, "paid").await, stored(2, false));
    let task = world.claim_one().await;
    assert_eq!(world.signal(&run, "paid").await, stored(3, false));
    world.complete(&task).await;
    assert_eq!(world.inbox(&run).await, "1 paid to a, 2 paid, 3 paid");
    let row = world.row(&run).await;
    assert_eq!((row.status, row.n_unconsumed), (RunStatus::Completed, 2));
}

pub(super) async fn kept_signals_outlive_the_run(world: &World) {
    let flow = world.define("a").await;
    for end in [completed(), failed("boom")] {
        let run = world.start(&flow).await;
        world.send(world.to(&run, "paid").carrying(b"unread")).await;
        world.settle(&world.claim_one().await, end).await;
        assert!(world.status(&run).await.is_terminal());
        assert_eq!(world.inbox(&run).await, "1 paid");
        assert_eq!(&*world.signals(&run).await[0].payload.bytes, b"unread");
    }
}

/// Sends so many signals that nobody waits for, under the keys `0`, `1` and so on.
async fn fill(world: &World, run: &Run, n_signals: usize) {
    let other = |number: usize| world.to(run, "other").key(&number.to_string());
    let all: Vec<Sending> = (0..n_signals).map(other).collect();
    for (batch, numbers) in all.chunks(BATCH).zip((1..=n_signals as u64).step_by(BATCH)) {
        let answers = world.send_all(batch.to_vec()).await;
        let expected = (numbers..).map(|number| Some(stored(number, false)));
        assert!(answers.into_iter().eq(expected.take(batch.len())));
    }
}

pub(super) async fn a_run_keeps_so_many_signals_and_no_more(world: &World) {
    let flow = world.define("a; w ? paid").await;
    let run = world.start(&flow).await;
    let most = UNCONSUMED_SIGNALS_MAX as usize;
    fill(world, &run, most).await;
    let other = world.to(&run, "other");
    assert_eq!(world.unchanged_by(world.send(other)).await, SignalAnswer::TooMany);
    let known = world.to(&run, "other").key("77").carrying(b"another payload");
    assert_eq!(world.send(known).await, SignalAnswer::KeyTaken);
    let next = u64::from(UNCONSUMED_SIGNALS_MAX) + 1;
    assert_eq!(world.signal(&run, "paid").await, stored(next, true), "it takes no room");
    world.waits_for(&world.claim_one().await, "other").await;
    assert_eq!(world.fire_all().await, 1);
    assert_eq!(world.claim_one().await.resumed, Some(Resumed::Signal(1)));
    assert_eq!(world.signal(&run, "other").await, stored(next + 1, false), "there is room");
    assert_eq!(world.signal(&run, "other").await, SignalAnswer::TooMany);
    let elsewhere = world.start(&flow).await;
    assert_eq!(world.signal(&elsewhere, "other").await, stored(1, false));
}

pub(super) async fn a_batch_over_the_limit_is_kept_as_far_as_there_is_room(world: &World) {
    let flow = world.define("a").await;
    let run = world.start(&flow).await;
    let most = UNCONSUMED_SIGNALS_MAX as usize;
    fill(world, &run, most - 2).await;
    let answers = world.send_all((0..4).map(|_| world.to(&run, "other")).collect()).await;
    let room = u64::from(UNCONSUMED_SIGNALS_MAX) - 2;
    let expected = [
        stored(room + 1, false),
        stored(room + 2, false),
        SignalAnswer::TooMany,
        SignalAnswer::TooMany,
    ];
    assert_eq!(answers, expected.map(Some));
}
