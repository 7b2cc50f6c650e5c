//! Timers: they fire once, in order, in bounded batches, and never early.

use std::time::Duration;

use stepwell_core::id::Epoch;
use stepwell_core::limits::SPAN_MAX;
use stepwell_core::run::{Phase, RunStatus};

use super::world::{TENANT, World, worker};
use crate::ports::{Clock, Outcome, StoreError};

const TICK: Duration = Duration::from_micros(1);

pub(super) async fn a_sleep_never_ends_early(world: &World) {
    // S11, R6
    let flow = world.define("s ~ 24h; b < s").await;
    let run = world.start(&flow).await;
    world.pass(Duration::from_hours(24).saturating_sub(TICK));
    let fired = world.unchanged_by(world.fire()).await;
    assert_eq!((fired.n_fired, fired.next_due), (0, Some(TICK)));
    world.pass(TICK);
    assert_eq!(world.fire().await.n_fired, 1);
    assert_eq!(world.states(&run).await, "s COMPLETED, b QUEUED");
}

pub(super) async fn a_timer_fires_once(world: &World) {
    let flow = world.define("s ~ 1s; b < s").await;
    world.start(&flow).await;
    world.pass(Duration::from_secs(1));
    assert_eq!(world.fire().await.n_fired, 1);
    let fired = world.unchanged_by(world.fire()).await;
    assert_eq!((fired.n_fired, fired.next_due), (0, None));
}

pub(super) async fn timers_fire_in_bounded_batches(world: &World) {
    // FC4
    let flow = world.define("s ~ 1s").await;
    let runs = world.start_many_for(TENANT, &flow, 25).await;
    world.pass(Duration::from_mins(1));
    for (n_fired, next_due) in [(10, Some(Duration::ZERO)), (10, Some(Duration::ZERO)), (5, None)] {
        let fired = world.fire_up_to(10).await;
        assert_eq!((fired.n_fired, fired.next_due), (n_fired, next_due));
    }
    for run in &runs {
        assert_eq!(world.status(run).await, RunStatus::Completed);
    }
}

pub(super) async fn the_earliest_timers_fire_first(world: &World) {
    let flow = world.define("late ~ 3s; early ~ 1s; middle ~ 2s").await;
    let run = world.start(&flow).await;
    world.pass(Duration::from_secs(3));
    for expected in [
        "late SLEEPING, early COMPLETED, middle SLEEPING",
        "late SLEEPING, early COMPLETED, middle COMPLETED",
        "late COMPLETED, early COMPLETED, middle COMPLETED",
    ] {
        assert_eq!(world.fire_up_to(1).await.n_fired, 1);
        assert_eq!(world.states(&run).await, expected);
    }
}

pub(super) async fn firing_tells_how_long_until_the_next_timer(world: &World) {
    let flow = world.define("one ~ 1s; two ~ 60s").await;
    assert_eq!(world.fire().await.next_due, None);
    world.start(&flow).await;
    assert_eq!(world.fire().await.next_due, Some(Duration::from_secs(1)));
    world.pass(Duration::from_secs(2));
    let fired = world.fire().await;
    assert_eq!((fired.n_fired, fired.next_due), (1, Some(Duration::from_secs(58))));
}

pub(super) async fn a_sleep_needs_no_worker(world: &World) {
    // R4, L1: the leader moves a run whose code nobody has.
    let flow = world.define_unserved("s ~ 1h; t ~ 1h < s").await;
    let run = world.start(&flow).await;
    for _ in 0..2 {
        world.pass(Duration::from_hours(1));
        world.fire().await;
    }
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

pub(super) async fn a_sleep_takes_no_slot_of_its_tenant(world: &World) {
    // R4
    let sleep = world.define("s ~ 1h").await;
    let flow = world.define("a").await;
    world.limit(TENANT, 1).await;
    world.start_many_for(TENANT, &sleep, 5).await;
    world.start(&flow).await;
    assert_eq!(world.claim_all().await.steps(), "a");
}

pub(super) async fn sleeps_follow_each_other_from_when_the_first_ended(world: &World) {
    let flow = world.define("s ~ 1h; t ~ 2h < s").await;
    let run = world.start(&flow).await;
    world.pass(Duration::from_hours(5));
    world.fire().await;
    assert_eq!(world.states(&run).await, "s COMPLETED, t SLEEPING");
    let Phase::Sleeping { until } = world.task(&run, "t").await.phase else { panic!() };
    assert_eq!(until, world.clock().now().after(Duration::from_hours(2)));
}

pub(super) async fn a_sleep_of_no_length_ends_at_the_next_firing(world: &World) {
    let flow = world.define("s ~ 0s; b < s").await;
    let run = world.start(&flow).await;
    assert_eq!(world.states(&run).await, "s SLEEPING, b PENDING");
    assert_eq!(world.fire().await.n_fired, 1);
    assert_eq!(world.drain().await, "b");
}

pub(super) async fn a_sleep_of_a_hundred_years_does_not_overflow(world: &World) {
    // FC5
    let years = format!("s ~ {}h", SPAN_MAX.as_secs() / 3_600);
    let flow = world.define(years).await;
    let run = world.start(&flow).await;
    assert_eq!(world.fire().await.next_due, Some(SPAN_MAX));
    world.pass(SPAN_MAX);
    assert_eq!(world.fire().await.n_fired, 1);
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

pub(super) async fn a_conditional_sleep_begins_when_its_condition_was_met(world: &World) {
    let flow = world.define("s ~? 1h; b < s").await;
    let run = world.start(&flow).await;
    assert_eq!(world.states(&run).await, "s QUEUED, b PENDING");
    world.pass(Duration::from_mins(30));
    let task = world.claim_one().await;
    world.settle(&task, Outcome::Slept).await;
    assert_eq!(world.states(&run).await, "s SLEEPING, b PENDING");
    assert_eq!(world.task(&run, "s").await.attempt, 0);
    assert_eq!(world.fire().await.next_due, Some(Duration::from_hours(1)));
    world.pass(Duration::from_hours(1));
    world.fire().await;
    assert_eq!(world.drain().await, "b");
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

pub(super) async fn a_repeated_falling_asleep_sets_no_second_timer(world: &World) {
    // FB1
    let flow = world.define("s ~? 1h; b < s").await;
    world.start(&flow).await;
    let task = world.claim_one().await;
    world.settle(&task, Outcome::Slept).await;
    world.pass(Duration::from_mins(10));
    world.unchanged_by(world.commit_one(&task, Outcome::Slept)).await;
}

pub(super) async fn timers_survive_a_change_of_leader(world: &World) {
    // R4, R13
    let flow = world.define("s ~ 1h").await;
    let run = world.start(&flow).await;
    let epoch = world.lead().await;
    world.store().resign(epoch).await.expect("resign");
    world.pass(Duration::from_hours(1));
    let ttl = Duration::from_secs(10);
    let lead = world.store().lead(&worker("successor"), ttl).await.expect("lead");
    let crate::ports::Lead::Leading(epoch) = lead else { panic!("nobody else leads") };
    let fired = world.store().fire_timers(epoch, 10).await.expect("fire timers");
    assert_eq!(fired.n_fired, 1);
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

pub(super) async fn timers_of_a_cancelled_run_do_not_fire(world: &World) {
    // L12, S16
    let flow = world.define("s ~ 1h; a * 3/10s").await;
    let run = world.start(&flow).await;
    world.fail(&world.claim_one().await).await;
    world.cancel(&run).await;
    world.pass(Duration::from_hours(2));
    let fired = world.unchanged_by(world.fire()).await;
    assert_eq!((fired.n_fired, fired.next_due), (0, None));
}

pub(super) async fn a_thousand_timers_of_one_moment_all_fire(world: &World) {
    // FC4
    let flow = world.define("s ~ 1h").await;
    world.start_many_for(TENANT, &flow, 1_000).await;
    world.pass(Duration::from_hours(1));
    for n_fired in [300, 300, 300, 100, 0] {
        assert_eq!(world.fire_up_to(300).await.n_fired, n_fired);
    }
}

pub(super) async fn a_timer_that_is_put_off_fires_later_and_holds_up_nobody(world: &World) {
    let flow = world.define("s ~ 1h").await;
    let (first, second) = (world.start(&flow).await, world.start(&flow).await);
    let epoch = world.lead().await;
    let (store, minute) = (world.store(), Duration::from_mins(1));
    assert_eq!(store.put_off_timer(epoch, minute).await.expect("it answers"), None);
    world.pass(Duration::from_hours(1));
    let whose = store.put_off_timer(epoch, minute).await.expect("it answers");
    assert_eq!(whose.map(|(run, _)| run), Some(first.key), "the first one that is due");
    let fired = store.fire_timers(epoch, 10).await.expect("it answers");
    assert_eq!((fired.n_fired, fired.next_due), (1, Some(minute)));
    assert_eq!(world.status(&second).await, RunStatus::Completed);
    world.pass(minute);
    assert_eq!(world.fire().await.n_fired, 1);
    assert_eq!(world.status(&first).await, RunStatus::Completed);
    let refused = store.put_off_timer(Epoch(epoch.0 + 1), minute).await;
    assert!(matches!(refused, Err(StoreError::NotLeader)), "{refused:?}");
}
