//! Time-outs of steps, by the clock and by silence. Blocking steps are in `real_time`.

use stepwell::{AttemptState, Code, FailureKind, Retry, StepError, Workflow};

use crate::support::{HOUR, MINUTE, SECOND, World, refused, starts_secs, states, trail};

/// A step that takes as many minutes as the input says and may take ten.
fn ten_minutes(retry: Retry) -> Workflow<u32, u32, World> {
    let mut w = Workflow::define::<u32, World>("ten-minutes");
    let slow = w.step("slow").timeout(10 * MINUTE).retry(retry).run(async |ctx| {
        let _dropped = ctx.state().journal.write_on_drop("dropped");
        ctx.note("attempt", ctx.attempt());
        // Each attempt is quicker than the one before.
        ctx.state().takes(MINUTE * (ctx.input() / ctx.attempt())).await;
        Ok(ctx.attempt())
    });
    w.output(slow)
}

#[test]
fn a_step_over_its_time_is_dropped_and_fails() {
    // R11
    let world = World::default();
    let (test, slow) = world.engine(ten_minutes(Retry::never()));
    let run = test.start(&slow, 60).now().unwrap();
    test.advance(10 * MINUTE - SECOND);
    assert_eq!(states(&run), "slow RUNNING");
    assert_eq!(world.journal.count("dropped"), 0);
    test.advance(SECOND);
    assert_eq!(world.journal.count("dropped"), 1);
    refused(run.result(), Code::RunFailed, &["\"slow\"", "600s"]);
    let (_, attempt) = run.attempts().unwrap().remove(0);
    assert_eq!(attempt.state, AttemptState::TimedOut);
    assert_eq!(attempt.failure.unwrap().kind, FailureKind::TimedOut);
    assert_eq!(attempt.notes["attempt"], "1", "what it noted before is kept");
    assert_eq!(trail(&run, "slow"), "QUEUED STARTED FAILED");
    assert_eq!(test.as_async().n_running(), 0, "the slot is free");
}

#[test]
fn each_attempt_has_the_whole_time_out_and_is_retried_by_the_policy() {
    // R11
    let world = World::default();
    let (test, slow) = world.engine(ten_minutes(Retry::exponential(2)));
    let run = test.start(&slow, 27).now().unwrap();
    test.advance(HOUR);
    assert_eq!(run.result().unwrap(), 3);
    assert_eq!(trail(&run, "slow"), "QUEUED STARTED RETRYING STARTED RETRYING STARTED COMPLETED");
    assert_eq!(starts_secs(&run, "slow"), [0, 601, 1203]);
}

#[test]
fn a_step_that_ends_in_time_is_left_alone() {
    let world = World::default();
    let (test, slow) = world.engine(ten_minutes(Retry::never()));
    let run = test.start(&slow, 9).now().unwrap();
    test.advance(HOUR);
    assert_eq!(run.result().unwrap(), 1);
}

/// Ten minutes of work in steps of one minute, with a heartbeat after each of the first
/// `n_beats`, under a heartbeat time-out of ninety seconds.
fn beating() -> Workflow<u32, (), World> {
    let mut w = Workflow::define::<u32, World>("beating");
    w.step("work").heartbeat_timeout(90 * SECOND).run(async |ctx| {
        for minute in 0..10 {
            ctx.state().takes(MINUTE).await;
            if minute < *ctx.input() {
                assert_eq!(ctx.silent_for(), MINUTE);
                ctx.heartbeat()?;
            }
        }
        Ok::<_, StepError>(())
    });
    w.no_output()
}

#[test]
fn a_step_that_beats_may_take_as_long_as_it_likes() {
    // R14
    let world = World::default();
    let (test, beating) = world.engine(beating());
    let run = test.start(&beating, 10).now().unwrap();
    test.advance(HOUR);
    run.result().unwrap();
}

#[test]
fn a_step_that_goes_silent_is_found_on_a_live_worker() {
    // R14
    let world = World::default();
    let (test, beating) = world.engine(beating());
    let run = test.start(&beating, 3).now().unwrap();
    test.advance(3 * MINUTE + 89 * SECOND);
    assert_eq!(states(&run), "work RUNNING");
    test.advance(SECOND);
    refused(run.result(), Code::RunFailed, &["\"work\"", "heartbeat", "90s"]);
    assert_eq!(run.attempts().unwrap()[0].1.state, AttemptState::TimedOut);
}

/// Panics when it is dropped.
struct Sore;

impl Drop for Sore {
    fn drop(&mut self) {
        panic!("while it is dropped");
    }
}

#[test]
fn a_step_that_panics_while_it_is_dropped_costs_neither_worker_nor_slot() {
    // R3
    let mut w = Workflow::define::<(), World>("sore");
    w.step("sore").timeout(MINUTE).run(async |ctx| {
        let _sore = Sore;
        ctx.state().takes(HOUR).await;
        Ok(())
    });
    let world = World::default();
    let (test, sore) = world.engine(w.no_output());
    let timed_out = test.start(&sore, ()).now().unwrap();
    let cancelled = test.start(&sore, ()).now().unwrap();
    cancelled.cancel().wait().unwrap();
    test.advance(MINUTE);
    refused(timed_out.result(), Code::RunFailed, &["time-out"]);
    assert_eq!(states(&cancelled), "sore CANCELLED");
    assert_eq!(test.as_async().n_running(), 0);
}

on_every_store![
    a_step_over_its_time_is_dropped_and_fails,
    each_attempt_has_the_whole_time_out_and_is_retried_by_the_policy,
    a_step_that_ends_in_time_is_left_alone,
    a_step_that_beats_may_take_as_long_as_it_likes,
    a_step_that_goes_silent_is_found_on_a_live_worker,
    a_step_that_panics_while_it_is_dropped_costs_neither_worker_nor_slot,
];
