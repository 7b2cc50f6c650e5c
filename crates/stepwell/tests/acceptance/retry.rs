//! Retries: how often, how long in between, and what ends them.

use std::time::Duration;

use stepwell::{AttemptState, Code, Error, EventKind, Retry, RunStatus, StepError, TaskState};
use stepwell::{Workflow, WorkflowRef};

use crate::support::{
    DAY, HOUR, SECOND, World, beside, builder, engine_with, refused, starts_secs, state, states,
    trail,
};

/// A workflow of one step that fails until its `n_failures`th attempt, which is the input.
fn flaky(retry: Retry) -> Workflow<u32, u32> {
    let mut w = Workflow::define::<u32, ()>("flaky");
    let step = w.step("flaky").retry(retry).run(async |ctx| {
        let n = ctx.attempt();
        if n <= *ctx.input() { Err(StepError::new(format!("failure {n}"))) } else { Ok(n) }
    });
    w.output(step)
}

#[test]
fn a_flaky_step_succeeds_on_its_third_attempt() {
    // R11
    let (test, flaky) = engine_with((), flaky(Retry::exponential(3)));
    let run = test.start(&flaky, 2).now().unwrap();
    test.run_to_end();
    assert_eq!(run.result().unwrap(), 3);
    assert_eq!(trail(&run, "flaky"), "QUEUED STARTED RETRYING STARTED RETRYING STARTED COMPLETED");
    let task = &run.tasks().unwrap()[0];
    assert_eq!((task.attempt, task.failures, task.losses), (3, 2, 0));
}

#[test]
fn retries_exhausted_fail_the_step_and_the_run() {
    // R11, L6
    let (test, flaky) = engine_with((), flaky(Retry::exponential(2)));
    let run = test.start(&flaky, 99).now().unwrap();
    test.run_to_end();
    refused(run.result(), Code::RunFailed, &["\"flaky\"", "failure 3"]);
    assert_eq!(run.status().unwrap(), RunStatus::Failed);
    assert_eq!(trail(&run, "flaky"), "QUEUED STARTED RETRYING STARTED RETRYING STARTED FAILED");
    let Err(Error::RunFailed { failure, .. }) = run.result() else { panic!("it failed") };
    assert_eq!((failure.step.as_str(), failure.attempt), ("flaky", 3));
}

#[test]
fn without_a_policy_the_first_failure_is_final() {
    // R11
    let (test, flaky) = engine_with((), flaky(Retry::default()));
    let run = test.start(&flaky, 1).now().unwrap();
    refused(run.result(), Code::RunFailed, &["failure 1"]);
    assert_eq!(trail(&run, "flaky"), "QUEUED STARTED FAILED");
}

#[test]
fn a_permanent_error_is_never_retried() {
    // R11, L5
    let mut w = Workflow::define::<bool, ()>("hopeless");
    w.step("hopeless").retry(Retry::exponential(9)).run(async |ctx| match ctx.input() {
        true => Err::<(), _>(StepError::permanent("no such account")),
        false => Err(StepError::new("later marked").into_permanent()),
    });
    let (test, hopeless) = engine_with((), w.no_output());
    for (input, words) in [(true, "no such account"), (false, "later marked")] {
        let run = test.start(&hopeless, input).now().unwrap();
        refused(run.result(), Code::RunFailed, &[words]);
        assert_eq!(trail(&run, "hopeless"), "QUEUED STARTED FAILED");
    }
}

/// What RETRYING events say: count, delay and due time since the start, in seconds.
fn retries(run: &stepwell::blocking::Run<u32>) -> Vec<(u32, u64, u64)> {
    let events = run.events().unwrap();
    let start = events[0].at;
    let plan = |kind: &EventKind| match kind {
        EventKind::Retrying { count, delay, due, failure } => {
            assert_eq!(failure.message, format!("failure {count}"));
            Some((*count, delay.as_secs(), due.since(start).as_secs()))
        }
        _ => None,
    };
    events.iter().filter_map(|event| plan(&event.kind)).collect()
}

#[test]
fn delays_double_from_one_second_up_to_a_minute() {
    // R11, R17
    let (test, flaky) = engine_with((), flaky(Retry::exponential(8)));
    let run = test.start(&flaky, 8).now().unwrap();
    test.run_to_end();
    let expected = [
        (1, 1, 1),
        (2, 2, 3),
        (3, 4, 7),
        (4, 8, 15),
        (5, 16, 31),
        (6, 32, 63),
        (7, 60, 123),
        (8, 60, 183),
    ];
    assert_eq!(retries(&run), expected);
    assert_eq!(starts_secs(&run, "flaky"), [0, 1, 3, 7, 15, 31, 63, 123, 183]);
}

#[test]
fn initial_delay_factor_and_cap_can_be_set() {
    // R11
    let retry = Retry::exponential(4).initial(10 * SECOND).factor(3.0).cap(50 * SECOND);
    let (test, flaky) = engine_with((), flaky(retry));
    let run = test.start(&flaky, 4).now().unwrap();
    test.run_to_end();
    assert_eq!(starts_secs(&run, "flaky"), [0, 10, 40, 90, 140]);
    let (test, flaky) = engine_with((), self::flaky(Retry::fixed(3, 5 * SECOND)));
    let run = test.start(&flaky, 3).now().unwrap();
    test.run_to_end();
    assert_eq!(starts_secs(&run, "flaky"), [0, 5, 10, 15]);
}

#[test]
fn jitter_spreads_delays_over_their_upper_half() {
    // R11
    let retry = Retry::fixed(1, 100 * SECOND).jitter();
    let (test, flaky) = engine_with((), flaky(retry));
    let runs: Vec<_> = (0..50).map(|_| test.start(&flaky, 1).now().unwrap()).collect();
    test.run_to_end();
    let mut delays: Vec<u64> = runs.iter().map(|run| retries(run)[0].1).collect();
    assert!(delays.iter().all(|delay| (50..=100).contains(delay)), "{delays:?}");
    delays.sort_unstable();
    delays.dedup();
    assert!(delays.len() > 10, "spread, not all alike: {delays:?}");
}

#[test]
fn a_step_can_say_when_to_try_again() {
    // R11, L5
    let mut w = Workflow::define::<(), ()>("polite");
    w.step("polite").retry(Retry::exponential(2)).run(async |ctx| {
        Err::<(), _>(StepError::retry_after(SECOND * 100 * ctx.attempt(), "busy"))
    });
    let (test, polite) = engine_with((), w.no_output());
    let run = test.start(&polite, ()).now().unwrap();
    test.run_to_end();
    assert_eq!(starts_secs(&run, "polite"), [0, 100, 300]);
    refused(run.result(), Code::RunFailed, &["busy"]);
}

#[test]
fn nothing_starts_before_its_due_time() {
    // R11
    let (test, flaky) = engine_with((), flaky(Retry::fixed(1, HOUR)));
    let run = test.start(&flaky, 1).now().unwrap();
    test.advance(HOUR - Duration::from_micros(1));
    assert_eq!(state(&run, "flaky"), TaskState::Queued);
    assert_eq!(run.tasks().unwrap()[0].attempt, 1);
    test.advance(Duration::from_micros(1));
    assert_eq!(run.result().unwrap(), 2);
}

#[test]
fn a_retry_that_waits_survives_its_engine_and_holds_no_slot() {
    // R11, L1
    let one_slot = |mut builder: stepwell::testing::TestEngineBuilder<()>| {
        builder = builder.configure(|config| config.slots = 1);
        let handle: WorkflowRef<u32, u32> = builder.workflow(flaky(Retry::fixed(1, DAY)));
        (builder.start().unwrap(), handle)
    };
    let (first, flaky) = one_slot(builder());
    let waiting = first.start(&flaky, 1).id("waiting").now().unwrap();
    first.run_until_idle();
    assert_eq!(state(&waiting, "flaky"), TaskState::Queued);
    assert_eq!(first.run(&flaky, 0).wait().unwrap(), 1, "the only slot is free");
    first.stop(SECOND);
    let (second, _) = one_slot(beside(&first));
    second.run_to_end();
    let run = second.run_handle("test", "waiting").unwrap();
    assert_eq!(run.result().unwrap(), 2);
    assert_eq!(starts_secs(&run, "flaky"), [0, DAY.as_secs()]);
}

#[test]
fn a_completed_step_is_not_executed_again_when_its_child_is_retried() {
    // R5
    let mut w = Workflow::define::<(), World>("saved");
    let a = w.step("a").run(async |ctx| {
        ctx.state().journal.write("a");
        Ok(ctx.attempt())
    });
    w.step("b").after(a).retry(Retry::exponential(3)).run(async |ctx, a| {
        ctx.state().journal.write("b");
        if ctx.attempt() < 4 { Err(StepError::new("not yet")) } else { Ok(a) }
    });
    let world = World::default();
    let (test, saved) = world.engine(w.no_output());
    let run = test.start(&saved, ()).now().unwrap();
    test.run_to_end();
    assert_eq!(states(&run), "a COMPLETED, b COMPLETED");
    assert_eq!(world.journal.lines(), ["a", "b", "b", "b", "b"]);
}

#[derive(Debug, thiserror::Error)]
#[error("the order could not be read")]
struct Unreadable(#[source] std::num::ParseIntError);

#[test]
fn an_attempt_keeps_the_type_the_words_and_the_causes_of_its_error() {
    // R17
    let mut w = Workflow::define::<String, ()>("parsing");
    let parse = w.step("parse").retry(Retry::exponential(1)).run(async |ctx| {
        let text = if ctx.attempt() == 1 { ctx.input() } else { "7" };
        Ok(text.parse::<u32>().map_err(Unreadable)?)
    });
    let (test, parsing) = engine_with((), w.output(parse));
    let run = test.start(&parsing, "seven".to_owned()).now().unwrap();
    test.run_to_end();
    assert_eq!(run.result().unwrap(), 7);
    let attempts = run.attempts().unwrap();
    let states: Vec<AttemptState> = attempts.iter().map(|(_, attempt)| attempt.state).collect();
    assert_eq!(states, [AttemptState::Failed, AttemptState::Completed]);
    let (step, first) = &attempts[0];
    assert_eq!((step.as_str(), first.attempt), ("parse", 1));
    assert_eq!(first.worker.as_str(), test.worker_id());
    let failure = first.failure.as_ref().unwrap();
    assert!(failure.type_name.ends_with("Unreadable"), "{}", failure.type_name);
    assert_eq!(failure.message, "the order could not be read");
    assert_eq!(failure.causes, ["invalid digit found in string"]);
}

on_every_store![
    a_flaky_step_succeeds_on_its_third_attempt,
    retries_exhausted_fail_the_step_and_the_run,
    without_a_policy_the_first_failure_is_final,
    a_permanent_error_is_never_retried,
    delays_double_from_one_second_up_to_a_minute,
    initial_delay_factor_and_cap_can_be_set,
    jitter_spreads_delays_over_their_upper_half,
    a_step_can_say_when_to_try_again,
    nothing_starts_before_its_due_time,
    a_retry_that_waits_survives_its_engine_and_holds_no_slot,
    a_completed_step_is_not_executed_again_when_its_child_is_retried,
    an_attempt_keeps_the_type_the_words_and_the_causes_of_its_error,
];
