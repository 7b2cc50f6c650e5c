//! Clocks that jump and processes that stand still: who lives is not taken for dead, and who is
//! dead is found in time.

use std::time::Duration;

use futures_util::FutureExt;
use stepwell::core::lease::Life;
use stepwell::ports::Workers;
use stepwell::testing::{TestEngine, TestEngineBuilder};
use stepwell::{Config, Retry, RunStatus, StepError, Workflow};

use crate::support::{DAY, HOUR, MINUTE, SECOND, World, beside, builder, trail};

/// A step that waits at the gate.
fn gated() -> Workflow<(), (), World> {
    let mut w = Workflow::define::<(), World>("gated");
    w.step("a").run(async |ctx| {
        ctx.state().journal.write(format!("a {}", ctx.attempt()));
        ctx.state().gate.pass().await;
        Ok(())
    });
    w.no_output()
}

/// With the leases of production.
fn engine(world: &World, builder: TestEngineBuilder<()>) -> TestEngine {
    let mut builder = builder
        .configure(|config| {
            let Config { lease, heartbeat_interval, leader_ttl, .. } = Config::default();
            (config.lease, config.heartbeat_interval) = (lease, heartbeat_interval);
            config.leader_ttl = leader_ttl;
        })
        .state(world.clone());
    builder.workflow(gated());
    builder.start().unwrap()
}

/// Two engines; the first of them leads and executes a step.
fn fleet(world: &World) -> (TestEngine, TestEngine) {
    let first = engine(world, builder());
    first.start_by_name("gated", &()).id("g").now().unwrap();
    first.run_until_idle();
    assert_eq!(first.as_async().n_running(), 1);
    let second = engine(world, beside(&first));
    (first, second)
}

fn lives(test: &TestEngine) -> Vec<Life> {
    test.store().lives().now_or_never().expect("it is answered at once").unwrap()
}

/// Something goes wrong with time, again and again, and everybody lives on.
fn nobody_is_reaped(disturb: impl Fn(&TestEngine)) {
    let world = World::default();
    let (first, second) = fleet(&world);
    for _ in 0..3 {
        first.advance(MINUTE);
        disturb(&first);
        first.run_until_idle();
        first.advance(7 * SECOND);
        disturb(&first);
        first.advance(MINUTE);
    }
    assert_eq!(lives(&first).len(), 2);
    assert_eq!(world.journal.lines(), ["a 1"]);
    world.gate.let_pass(1);
    let run = second.run_handle("test", "g").unwrap();
    run.ended().unwrap();
    assert_eq!(run.status().unwrap(), RunStatus::Completed);
    assert_eq!(trail(&run, "a"), "QUEUED STARTED COMPLETED");
}

#[test]
fn a_time_of_day_that_jumps_ahead_reaps_nobody() {
    nobody_is_reaped(|test| test.clock().jump(DAY));
}

#[test]
fn a_time_of_day_that_jumps_back_reaps_nobody() {
    nobody_is_reaped(|test| test.clock().jump_back(DAY));
}

#[test]
fn a_time_of_day_that_jumps_to_and_fro_reaps_nobody() {
    nobody_is_reaped(|test| {
        test.clock().jump(HOUR);
        test.run_until_idle();
        test.clock().jump_back(2 * HOUR);
    });
}

#[test]
fn processes_that_stood_still_together_are_not_taken_for_dead() {
    // As all virtual machines of a host do while it is moved: time is over when they wake.
    for span in [10 * SECOND, 15 * SECOND, 29 * SECOND, MINUTE, DAY] {
        nobody_is_reaped(|test| test.clock().advance(span));
    }
}

#[test]
fn a_worker_whose_time_of_day_jumped_beats_at_once() {
    let world = World::default();
    let test = engine(&world, builder());
    test.advance(SECOND);
    let n_beats = || lives(&test)[0].last_beat.n_beats;
    let before = n_beats();
    test.clock().jump(MINUTE);
    test.run_until_idle();
    let after = n_beats();
    assert!(after > before, "the machine was suspended");
    test.clock().jump_back(MINUTE);
    test.run_until_idle();
    assert!(n_beats() > after, "and again");
}

#[test]
fn a_clock_that_once_was_ahead_stops_neither_sleeps_nor_retries() {
    let world = World::default();
    let mut w = Workflow::define::<(), World>("patient");
    let nap = w.sleep("nap", MINUTE).from_start();
    let retry = Retry::fixed(1, MINUTE);
    w.step("flaky").after(nap).retry(retry).run(async |ctx, ()| match ctx.attempt() {
        1 => Err(StepError::new("not yet")),
        _ => Ok(()),
    });
    let (test, patient) = world.engine(w.no_output());
    test.clock().jump(3_650 * DAY);
    let ahead = test.start(&patient, ()).now().unwrap();
    test.run_until_idle();
    test.clock().jump_back(3_650 * DAY);
    let after = test.start(&patient, ()).now().unwrap();
    for run in [ahead, after] {
        test.run_to_end();
        assert_eq!(run.status().unwrap(), RunStatus::Completed);
        assert_eq!(trail(&run, "flaky"), "QUEUED STARTED RETRYING STARTED COMPLETED");
    }
    test.clock().jump(HOUR);
    test.clock().jump_back(HOUR);
    let before = test.now();
    let last = test.start(&patient, ()).now().unwrap();
    test.run_to_end();
    last.result().unwrap();
    assert!(test.now().since(before) <= 3 * MINUTE, "two minutes, and not an hour");
}

/// Kills the worker that executes a step and leads, and holds the restart of the step to its bound
/// (T2).
fn work_restarts_in_time(kill: impl Fn(&TestEngine)) {
    let Config { lease, heartbeat_interval, leader_ttl, .. } = Config::default();
    for phase in [0, 700, 3_300, 9_900] {
        let world = World::default();
        let (first, second) = fleet(&world);
        second.advance(MINUTE + Duration::from_millis(phase));
        kill(&first);
        let before = lease - heartbeat_interval - SECOND;
        second.advance(before);
        assert_eq!(world.journal.lines(), ["a 1"], "it may have beaten a moment ago");
        second.advance(lease - before + leader_ttl + 2 * SECOND);
        assert_eq!(world.journal.lines(), ["a 1", "a 2"], "phase {phase}");
    }
}

#[test]
fn work_of_a_dead_worker_restarts_within_the_bound_also_if_it_led() {
    work_restarts_in_time(TestEngine::crash);
}

#[test]
fn work_of_a_dead_worker_restarts_within_the_bound_while_the_time_of_day_jumps() {
    work_restarts_in_time(|test| {
        test.clock().jump(DAY);
        test.crash();
        test.clock().jump_back(HOUR);
    });
}

#[test]
fn a_take_over_does_not_begin_the_observation_of_workers_anew() {
    // T2: the third has followed all the while, and leads when two leaders have died.
    let world = World::default();
    let Config { lease, leader_ttl, .. } = Config::default();
    let (first, second) = fleet(&world);
    let third = engine(&world, beside(&first));
    third.advance(MINUTE);
    first.crash();
    third.advance(lease / 2);
    second.crash();
    third.advance(lease / 2 + leader_ttl + 2 * SECOND);
    assert_eq!(world.journal.lines(), ["a 1", "a 2"]);
}

on_every_store![
    a_time_of_day_that_jumps_ahead_reaps_nobody,
    a_time_of_day_that_jumps_back_reaps_nobody,
    a_time_of_day_that_jumps_to_and_fro_reaps_nobody,
    processes_that_stood_still_together_are_not_taken_for_dead,
    a_worker_whose_time_of_day_jumped_beats_at_once,
    work_of_a_dead_worker_restarts_within_the_bound_also_if_it_led,
    work_of_a_dead_worker_restarts_within_the_bound_while_the_time_of_day_jumps,
    a_take_over_does_not_begin_the_observation_of_workers_anew,
];

not_on_postgres!("there the database's own clock is the time":
    a_clock_that_once_was_ahead_stops_neither_sleeps_nor_retries,
);
