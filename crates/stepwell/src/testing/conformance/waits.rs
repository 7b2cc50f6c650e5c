//! Wait nodes: a signal completes them, or the deadline of their wait. No worker is needed.

use std::time::Duration;

use stepwell_core::decide::SignalAnswer;
use stepwell_core::limits::SPAN_MAX;
use stepwell_core::run::{Attributes, EventKind, Phase, RunStatus, TaskState, WaitKind, WaitRow};

use super::world::{Run, TENANT, World, waiting};
use crate::ports::{Clock, Outcome, Payload};

const TICK: Duration = Duration::from_micros(1);

const fn stored(number: u64, is_consumed: bool) -> SignalAnswer {
    SignalAnswer::Stored { number, is_consumed }
}

/// When a task's timer fires.
async fn due(world: &World, run: &Run, step: &str) -> Option<Duration> {
    let due = world.dump().await.timers.get(&(run.key, run.node(step))).copied();
    due.map(|due| due.since(world.clock().now()))
}

pub(super) async fn a_wait_at_the_root_opens_with_the_start(world: &World) {
    // L7
    let flow = world.define("w ? paid|refused&order=4711/3h; b < w").await;
    world.pass(Duration::from_secs(5));
    let run = world.start(&flow).await;
    assert_eq!(world.states(&run).await, "w WAITING, b PENDING");
    let now = world.clock().now();
    let expected = WaitRow {
        node: run.node("w"),
        key: String::new(),
        number: 2,
        place: 0,
        kind: WaitKind::Signal,
        signals: vec!["paid".to_owned(), "refused".to_owned()],
        matching: Attributes::from([("order".to_owned(), "4711".to_owned())]),
        n_signals_before: 0,
        opened_at: now,
        deadline: Some(now.after(Duration::from_hours(3))),
    };
    assert_eq!(world.waits(&run).await, [expected]);
    assert_eq!(due(world, &run, "w").await, Some(Duration::from_hours(3)));
}

pub(super) async fn a_wait_opens_when_its_last_parent_is_done(world: &World) {
    // L7
    let flow = world.define("a; x; w ? paid < a, x; b < w").await;
    let run = world.start(&flow).await;
    let roots = world.claim_all().await;
    world.complete(roots.of("a")).await;
    assert_eq!(world.open_waits(&run).await, "");
    world.skip(roots.of("x")).await;
    assert_eq!(world.states(&run).await, "a COMPLETED, x SKIPPED, w WAITING, b PENDING");
    assert_eq!(world.open_waits(&run).await, "w for paid");
    assert_eq!(world.signal(&run, "paid").await, stored(1, true));
    assert_eq!(world.states(&run).await, "a COMPLETED, x SKIPPED, w COMPLETED, b QUEUED");
    assert_eq!(world.open_waits(&run).await, "");
    assert_eq!(world.drain().await, "b");
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

pub(super) async fn a_wait_that_is_skipped_never_opens(world: &World) {
    let flow = world.define("a; w ? paid/1h < a; v ?? paid < a; b < w, v").await;
    let run = world.start(&flow).await;
    world.skip(&world.claim_one().await).await;
    assert_eq!(world.states(&run).await, "a SKIPPED, w SKIPPED, v SKIPPED, b SKIPPED");
    assert_eq!(world.fire().await.next_due, None);
}

pub(super) async fn a_wait_that_is_the_last_node_ends_the_run(world: &World) {
    let flow = world.define("w ? paid/1h").await;
    let (paid, late) = (world.start(&flow).await, world.start(&flow).await);
    world.pass(Duration::from_mins(30));
    world.signal(&paid, "paid").await;
    let row = world.row(&paid).await;
    assert_eq!((row.status, row.ended_at), (RunStatus::Completed, Some(world.clock().now())));
    world.pass(Duration::from_mins(30));
    assert_eq!(world.fire().await.n_fired, 1);
    assert_eq!(world.status(&late).await, RunStatus::Completed);
}

pub(super) async fn a_run_of_waits_needs_no_worker(world: &World) {
    // L7, L8: a signal or the leader moves a run whose code nobody has.
    let flow = world.define_unserved("w ? paid; v ? sent/1h < w; s ~ 1h < v").await;
    let run = world.start(&flow).await;
    world.signal(&run, "paid").await;
    assert_eq!(world.states(&run).await, "w COMPLETED, v WAITING, s PENDING");
    for _ in 0..2 {
        world.pass(Duration::from_hours(1));
        world.fire_all().await;
    }
    assert_eq!(world.states(&run).await, "w COMPLETED, v COMPLETED, s COMPLETED");
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

pub(super) async fn whoever_waits_for_ever_stands_in_no_line(world: &World) {
    let wait = world.define("w ? paid").await;
    let flow = world.define("a").await;
    world.limit(TENANT, 1).await;
    world.start_many_for(TENANT, &wait, 20).await;
    let dump = world.dump().await;
    assert!(dump.places.is_empty() && dump.timers.is_empty());
    let view = world.tenant_view(TENANT).await;
    assert_eq!((view.n_ready, view.n_running, view.n_throttled, view.n_parked), (0, 0, 0, 0));
    let fired = world.unchanged_by(world.fire()).await;
    assert_eq!((fired.n_fired, fired.next_due), (0, None));
    world.start(&flow).await;
    assert_eq!(world.claim_all().await.steps(), "a");
}

pub(super) async fn a_wait_without_a_time_out_waits_for_ever(world: &World) {
    let flow = world.define("w ? paid").await;
    let run = world.start(&flow).await;
    world.pass(SPAN_MAX);
    world.unchanged_by(world.fire()).await;
    assert_eq!(world.signal(&run, "paid").await, stored(1, true));
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

pub(super) async fn a_wait_never_times_out_early(world: &World) {
    // L8, S11
    let flow = world.define("w ? paid/24h; b < w").await;
    let run = world.start(&flow).await;
    world.pass(Duration::from_hours(24).saturating_sub(TICK));
    let fired = world.unchanged_by(world.fire()).await;
    assert_eq!((fired.n_fired, fired.next_due), (0, Some(TICK)));
    world.pass(TICK);
    let fired = world.fire().await;
    assert_eq!((fired.n_fired, fired.next_due), (1, None));
    assert_eq!(world.states(&run).await, "w COMPLETED, b QUEUED");
    let child = world.claim_one().await;
    let parents = world.inputs(&child).await.parents;
    assert_eq!(parents[0].state, TaskState::Completed);
    assert_eq!(parents[0].output, Some(Payload::timed_out()));
    assert_eq!(world.output(&run, "w").await, Some(Payload::timed_out()));
}

pub(super) async fn a_wait_of_a_hundred_years_does_not_overflow(world: &World) {
    // FC5
    let flow = world.define(format!("w ? paid/{}h", SPAN_MAX.as_secs() / 3_600)).await;
    let run = world.start(&flow).await;
    assert_eq!(world.fire().await.next_due, Some(SPAN_MAX));
    world.pass(SPAN_MAX);
    assert_eq!(world.fire().await.n_fired, 1);
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

pub(super) async fn any_of_several_signals_ends_a_wait(world: &World) {
    let flow = world.define("w ? paid|refused").await;
    for name in ["paid", "refused"] {
        let run = world.start(&flow).await;
        assert_eq!(world.signal(&run, name).await, stored(1, true));
        let output = world.output(&run, "w").await.expect("it completed");
        assert_eq!(output.signal_name(), Some(name));
    }
}

pub(super) async fn a_wait_gets_only_signals_it_is_for(world: &World) {
    // Names are compared as they are, down to the last byte.
    let flow = world.define("w ? paid").await;
    let run = world.start(&flow).await;
    for (number, name) in (1..).zip(["refused", "Paid", "paid ", "pai", "paidd", "pa\u{301}id"]) {
        assert_eq!(world.signal(&run, name).await, stored(number, false), "{name}");
    }
    assert_eq!(world.signal(&run, "paid").await, stored(7, true));
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

pub(super) async fn a_wait_gets_only_signals_that_carry_its_attributes(world: &World) {
    let flow = world.define("w ? paid&order=4711&region=").await;
    let run = world.start(&flow).await;
    let paid = || world.to(&run, "paid");
    let others = [
        paid(),
        paid().with("order", "4711"),
        paid().with("order", "4712").with("region", ""),
        paid().with("order", "4711 ").with("region", ""),
        paid().with("Order", "4711").with("region", ""),
        paid().with("region", "4711").with("order", ""),
        world.to(&run, "refused").with("order", "4711").with("region", ""),
    ];
    for (number, other) in (1..).zip(others) {
        assert_eq!(world.send(other).await, stored(number, false), "{number}");
    }
    let fits = paid().with("order", "4711").with("region", "").with("more", "does no harm");
    assert_eq!(world.send(fits).await, stored(8, true));
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

pub(super) async fn the_oldest_wait_gets_the_signal(world: &World) {
    // The younger one has the smaller number and is listed first.
    let flow = world.define("young ? paid < a; a; old ? paid").await;
    let run = world.start(&flow).await;
    world.step().await;
    assert_eq!(world.open_waits(&run).await, "old for paid, young for paid");
    assert_eq!(world.signal(&run, "paid").await, stored(1, true));
    assert_eq!(world.states(&run).await, "young WAITING, a COMPLETED, old COMPLETED");
    assert_eq!(world.signal(&run, "paid").await, stored(2, true));
    assert_eq!(world.inbox(&run).await, "1 paid to old, 2 paid to young");
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

pub(super) async fn a_signal_passes_by_older_waits_that_are_not_for_it(world: &World) {
    let flow = world.define("a ? x; b ? paid&order=1; c ? paid|x; d ? paid").await;
    let run = world.start(&flow).await;
    world.send(world.to(&run, "paid").with("order", "2")).await;
    assert_eq!(world.states(&run).await, "a WAITING, b WAITING, c COMPLETED, d WAITING");
    world.send(world.to(&run, "paid").with("order", "1")).await;
    world.signal(&run, "x").await;
    assert_eq!(world.states(&run).await, "a COMPLETED, b COMPLETED, c COMPLETED, d WAITING");
    assert_eq!(world.inbox(&run).await, "1 paid to c, 2 paid to b, 3 x to a");
}

pub(super) async fn a_signal_passes_by_a_wait_that_is_over(world: &World) {
    let flow = world.define("w ? paid/1h; v ? paid").await;
    let run = world.start(&flow).await;
    world.pass(Duration::from_hours(1));
    assert_eq!(world.signal(&run, "paid").await, stored(1, true));
    assert_eq!(world.states(&run).await, "w WAITING, v COMPLETED");
    world.fire().await;
    assert_eq!(world.output(&run, "w").await, Some(Payload::timed_out()));
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

pub(super) async fn a_signal_one_moment_before_the_deadline_is_in_time(world: &World) {
    let flow = world.define("w ? paid/1h").await;
    let run = world.start(&flow).await;
    world.pass(Duration::from_hours(1).saturating_sub(TICK));
    assert_eq!(world.signal(&run, "paid").await, stored(1, true));
    let output = world.output(&run, "w").await.expect("it completed");
    assert_eq!(output.signal_name(), Some("paid"));
    world.pass(TICK);
    assert_eq!(world.fire().await.n_fired, 0);
}

pub(super) async fn a_signal_after_the_deadline_is_late_before_the_timer_fires_too(world: &World) {
    // L8
    let flow = world.define("w ? paid/1h; b < w").await;
    for late in [Duration::ZERO, TICK, Duration::from_hours(1)] {
        let run = world.start(&flow).await;
        world.pass(Duration::from_hours(1) + late);
        assert_eq!(world.signal(&run, "paid").await, stored(1, false));
        assert_eq!(world.states(&run).await, "w WAITING, b PENDING");
        world.fire().await;
        assert_eq!(world.states(&run).await, "w COMPLETED, b QUEUED");
        assert_eq!(world.output(&run, "w").await, Some(Payload::timed_out()));
        assert_eq!(world.inbox(&run).await, "1 paid");
    }
}

pub(super) async fn a_late_signal_goes_to_the_wait_after_it(world: &World) {
    let flow = world.define("w ? paid/1h; a < w; v ? paid/1h < a").await;
    let run = world.start(&flow).await;
    world.pass(Duration::from_hours(1));
    world.signal(&run, "paid").await;
    world.fire_all().await;
    assert_eq!(world.step().await, "a");
    world.fire_all().await;
    assert_eq!(world.inbox(&run).await, "1 paid to v");
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

pub(super) async fn a_conditional_wait_opens_when_a_worker_says_what_it_waits_for(world: &World) {
    let flow = world.define("w ?? paid/1h; b < w").await;
    let run = world.start(&flow).await;
    assert_eq!(world.states(&run).await, "w QUEUED, b PENDING");
    world.pass(Duration::from_mins(30));
    let task = world.claim_one().await;
    assert_eq!(task.resumed, None);
    world.settle(&task, waiting("paid&order=7/2h")).await;
    assert_eq!(world.states(&run).await, "w WAITING, b PENDING");
    assert_eq!(world.task(&run, "w").await.attempt, 0, "nothing was executed");
    assert_eq!(world.fire().await.next_due, Some(Duration::from_hours(2)));
    world.signal(&run, "paid").await;
    assert_eq!(world.states(&run).await, "w WAITING, b PENDING");
    world.send(world.to(&run, "paid").with("order", "7")).await;
    assert_eq!(world.drain().await, "b");
    let expected = "RUN_STARTED, w QUEUED, w WAITING, w SIGNALLED, b QUEUED, b STARTED, \
                    b COMPLETED, RUN_ENDED COMPLETED";
    assert_eq!(world.trail(&run).await, expected);
}

pub(super) async fn a_conditional_wait_can_be_skipped_failed_released_and_lost(world: &World) {
    let flow = world.define("w ?? paid * 1; b < w!").await;
    let run = world.start(&flow).await;
    world.fail(&world.claim_one().await).await;
    world.release(&world.claim_one().await).await;
    let second = world.hire("second").await;
    world.claim(&second, 1).await;
    world.lose(&second).await;
    world.skip(&world.claim_one().await).await;
    assert_eq!(world.states(&run).await, "w SKIPPED, b SKIPPED");
    let run = world.start(&flow).await;
    world.fail(&world.claim_one().await).await;
    world.waits_for(&world.claim_one().await, "paid").await;
    world.signal(&run, "paid").await;
    assert_eq!(world.states(&run).await, "w COMPLETED, b QUEUED");
    assert_eq!(world.task(&run, "w").await.attempt, 1, "the one that failed");
}

pub(super) async fn a_repeated_opening_opens_no_second_wait(world: &World) {
    // FB1
    let flow = world.define("w ?? paid/1h; b < w").await;
    let run = world.start(&flow).await;
    let task = world.claim_one().await;
    world.waits_for(&task, "paid/1h").await;
    world.pass(Duration::from_mins(10));
    world.unchanged_by(world.commit_one(&task, waiting("paid/1h"))).await;
    world.signal(&run, "paid").await;
    world.unchanged_by(world.commit_one(&task, waiting("paid/1h"))).await;
}

pub(super) async fn what_is_waited_for_is_taken_when_the_wait_opens(world: &World) {
    // A deploy strands nobody: new policies hold for waits that open from now on.
    let named = |text: &str| super::world::Sketch::from(text).named("deployed");
    let flow = world.define(named("w ? paid/1h; v ? paid < w")).await;
    let run = world.start(&flow).await;
    world.pass(Duration::from_mins(10));
    world.define(named("w ? settled/9h; v ? settled|paid&order=1/2h < w")).await;
    assert_eq!(due(world, &run, "w").await, Some(Duration::from_mins(50)));
    assert_eq!(world.signal(&run, "settled").await, stored(1, false));
    assert_eq!(world.signal(&run, "paid").await, stored(2, true));
    assert_eq!(world.open_waits(&run).await, "v for settled|paid");
    world.fire_all().await;
    assert_eq!(due(world, &run, "v").await, Some(Duration::from_hours(2)));
    assert_eq!(world.send(world.to(&run, "paid").with("order", "1")).await, stored(3, true));
    assert_eq!(world.inbox(&run).await, "1 settled, 2 paid to w, 3 paid to v");
    let fresh = world.start(&flow).await;
    assert_eq!(world.open_waits(&fresh).await, "w for settled");
}

pub(super) async fn the_log_tells_what_was_waited_for_and_what_came(world: &World) {
    // R17
    let flow = world.define("w ? paid&order=7/1h; v ? sent/1h < w").await;
    let run = world.start(&flow).await;
    let until = Some(world.clock().now().after(Duration::from_hours(1)));
    let matching = Attributes::from([("order".to_owned(), "7".to_owned())]);
    let expected =
        EventKind::Waiting { signals: vec!["paid".to_owned()], matching, until, keys: Vec::new() };
    assert_eq!(world.last_event(&run, "WAITING").await.kind, expected);
    world.signal(&run, "other").await;
    world.pass(Duration::from_mins(1));
    world.send(world.to(&run, "paid").with("order", "7")).await;
    let event = world.last_event(&run, "SIGNALLED").await;
    let into = TaskState::Completed;
    let expected =
        EventKind::Signalled { signal: "paid".to_owned(), number: 2, into, key: String::new() };
    assert_eq!((event.kind, event.at, event.attempt), (expected, world.clock().now(), 0));
    world.pass(Duration::from_hours(1));
    world.fire_all().await;
    let event = world.last_event(&run, "TIMED_OUT").await;
    assert_eq!(
        (event.kind, event.node),
        (EventKind::TimedOut { into, key: String::new() }, Some(run.node("v")))
    );
    let expected = "RUN_STARTED, w WAITING, w SIGNALLED, v WAITING, v TIMED_OUT, \
                    RUN_ENDED COMPLETED";
    assert_eq!(world.trail(&run).await, expected);
}

pub(super) async fn a_waiting_task_is_no_workers(world: &World) {
    let flow = world.define("w ?? paid").await;
    let run = world.start(&flow).await;
    let task = world.claim_one().await;
    world.waits_for(&task, "paid").await;
    for outcome in [Outcome::Skipped, Outcome::Released, waiting("x"), Outcome::Slept] {
        world.unchanged_by(world.commit_one(&task, outcome)).await;
    }
    assert!(matches!(world.task(&run, "w").await.phase, Phase::Waiting { due: None }));
    assert!(world.claim_all().await.is_empty());
}
