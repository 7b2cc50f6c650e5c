//! Failures: what they take along, what goes on, and the handler that comes last.

use futures_util::FutureExt;
use stepwell::{AttemptState, Code, FailureKind, Retry, RunStatus, StepError, TaskState, Workflow};

use crate::support::{
    DAY, HOUR, World, builder, dump, engine_with, log, refused, state, states, trail,
};

/// One step that fails by the input's words, and a handler that writes down what it gets.
fn handled() -> Workflow<String, (), World> {
    let mut w = Workflow::define::<String, World>("handled");
    w.step("fail").run(async |ctx| {
        ctx.state().gate.pass().await;
        if ctx.input() == "well" { Ok(()) } else { Err(StepError::new(ctx.input())) }
    });
    w.on_failure(async |ctx, failure| {
        let (input, step, error) = (ctx.input(), &failure.step, &failure.failure.message);
        ctx.state().journal.write(format!("{}: {input} / {step}: {error}", ctx.step_name()));
        Ok(())
    });
    w.no_output()
}

#[test]
fn the_handler_runs_once_with_the_input_and_the_error() {
    // R20
    let world = World::default();
    world.gate.let_pass(1);
    let (test, handled) = world.engine(handled());
    let run = test.start(&handled, "broken".to_owned()).now().unwrap();
    refused(run.result(), Code::RunFailed, &["\"fail\"", "broken"]);
    assert_eq!(world.journal.lines(), ["on_failure: broken / fail: broken"]);
    assert_eq!(states(&run), "fail FAILED, on_failure COMPLETED");
    assert_eq!(trail(&run, "on_failure"), "QUEUED STARTED COMPLETED");
}

#[test]
fn the_handler_does_not_run_when_the_run_goes_well_or_is_cancelled() {
    // R20
    let world = World::default();
    world.gate.let_pass(1);
    let (test, handled) = world.engine(handled());
    test.run(&handled, "well".to_owned()).wait().unwrap();
    let mut w = Workflow::define::<(), World>("asleep");
    w.sleep("nap", DAY).from_start();
    w.on_failure(async |ctx, _| {
        ctx.state().journal.write("handler");
        Ok(())
    });
    let (test, asleep) = engine_with(world.clone(), w.no_output());
    let run = test.start(&asleep, ()).now().unwrap();
    run.cancel().wait().unwrap();
    refused(run.result(), Code::RunCancelled, &[]);
    assert!(world.journal.lines().is_empty());
}

#[test]
fn the_handler_comes_after_everything_else_of_the_run() {
    // R16, R20
    let mut w = Workflow::define::<(), World>("last");
    w.step("fail").run(async |_| Err::<(), _>(StepError::new("first")));
    let nap = w.sleep("nap", HOUR).from_start();
    w.step("other").after(nap).run(async |ctx, ()| {
        ctx.state().journal.write("other");
        Err::<(), _>(StepError::new("second"))
    });
    w.on_failure_blocking(|ctx, failure| {
        ctx.state().journal.write(format!("handler: {}", failure.failure.message));
        Ok(())
    });
    let world = World::default();
    let (test, last) = world.engine(w.no_output());
    let run = test.start(&last, ()).now().unwrap();
    test.run_until_idle();
    assert_eq!(run.status().unwrap(), RunStatus::Running, "an independent branch is open");
    test.run_to_end();
    assert_eq!(world.journal.lines(), ["other", "handler: first"], "once, for the first failure");
    assert_eq!(run.status().unwrap(), RunStatus::Failed);
    assert_eq!(
        log(&run)[log(&run).len() - 5..],
        [
            "10 +3600s RUN_ENDING FAILED",
            "11 +3600s on_failure#1 QUEUED",
            "12 +3600s on_failure#1 STARTED",
            "13 +3600s on_failure#1 COMPLETED",
            "14 +3600s RUN_ENDED FAILED",
        ]
    );
}

#[test]
fn an_error_or_panic_of_the_handler_is_recorded_and_not_retried() {
    // R20
    let mut w = Workflow::define::<bool, World>("clumsy");
    w.step("fail").run(async |_| Err::<(), _>(StepError::new("the real reason")));
    w.on_failure(async |ctx, _| {
        ctx.state().journal.write("handler");
        assert!(*ctx.input(), "the handler panics");
        Err(StepError::new("the handler fails"))
    });
    let world = World::default();
    let (test, clumsy) = world.engine(w.no_output());
    for (input, kind) in [(true, FailureKind::Error), (false, FailureKind::Panic)] {
        let run = test.start(&clumsy, input).now().unwrap();
        refused(run.result(), Code::RunFailed, &["the real reason"]);
        assert_eq!(trail(&run, "on_failure"), "QUEUED STARTED FAILED");
        let attempts = run.attempts().unwrap();
        let failure = attempts[1].1.failure.as_ref().unwrap();
        assert_eq!(failure.kind, kind);
        assert!(failure.message.starts_with("the handler"), "{}", failure.message);
    }
    assert_eq!(world.journal.count("handler"), 2, "once per run");
}

#[test]
fn a_handler_that_has_not_begun_survives_the_crash_of_its_engine() {
    // R20
    let world = World::default();
    let (first, handle) = world.engine(handled());
    let run = first.start(&handle, "broken".to_owned()).id("b").now().unwrap();
    world.gate.let_pass(1);
    // One turn at a time, to stop between the failure and the handler's start. The calls of
    // the blocking handle would let everything run.
    let ending = || run.as_async().status().now_or_never().unwrap().unwrap() == RunStatus::Ending;
    while !ending() {
        assert!(first.run_cycle());
    }
    first.crash();
    assert!(world.journal.lines().is_empty(), "the handler has not begun");
    let second = world.beside(&first, handled());
    let run = second.run_handle("test", "b").unwrap();
    refused(run.result(), Code::RunFailed, &["broken"]);
    assert_eq!(world.journal.lines(), ["on_failure: broken / fail: broken"]);
}

#[test]
fn a_handler_whose_worker_dies_runs_again() {
    // R14, R20
    let workflow = || {
        let mut w = Workflow::define::<(), World>("slow-handler");
        w.step("fail").run(async |_| Err::<(), _>(StepError::new("broken")));
        w.on_failure(async |ctx, _| {
            ctx.state().journal.write(format!("handler {}", ctx.attempt()));
            ctx.state().gate.pass().await;
            Ok(())
        });
        w.no_output()
    };
    let world = World::default();
    let (first, handle) = world.engine(workflow());
    first.start(&handle, ()).id("s").now().unwrap();
    first.run_until_idle();
    first.crash();
    let second = world.beside(&first, workflow());
    second.advance(3 * HOUR);
    world.gate.let_pass(1);
    let run = second.run_handle("test", "s").unwrap();
    refused(run.result(), Code::RunFailed, &["broken"]);
    assert_eq!(world.journal.lines(), ["handler 1", "handler 2"]);
    assert_eq!(trail(&run, "on_failure"), "QUEUED STARTED LEASE_LOST STARTED COMPLETED");
}

#[test]
fn descendants_of_a_failed_step_are_cancelled_and_other_branches_go_on() {
    // R16
    let mut w = Workflow::define::<(), ()>("branches");
    let a = w.step("a").run(async |_| Ok(1));
    let bad = w.step("bad").after(a).run(async |_, _| Err::<u32, _>(StepError::new("no")));
    let below = w.step("below").after(bad).run(async |_, n| Ok(n));
    w.step("deep").after(below).run(async |_, n| Ok(n));
    let good = w.step("good").after(a).run(async |_, n| Ok(n));
    let nap = w.sleep("nap", DAY).after(good);
    let fine = w.step("fine").after(nap).run(async |_, ()| Ok(7));
    w.step("join").after((below, fine)).run(async |_, _| Ok(()));
    let (test, branches) = engine_with((), w.no_output());
    let run = test.start(&branches, ()).now().unwrap();
    test.run_to_end();
    assert_eq!(
        states(&run),
        "a COMPLETED, bad FAILED, below CANCELLED, deep CANCELLED, good COMPLETED, \
         nap COMPLETED, fine COMPLETED, join CANCELLED"
    );
    assert_eq!(trail(&run, "below"), "CANCELLED");
    assert_eq!(run.output(&fine).unwrap(), 7);
    refused(run.output(&below), Code::StepSkipped, &["\"below\""]);
}

#[test]
fn fail_fast_cancels_everything_else_at_once() {
    // R16
    let mut w = Workflow::define::<(), World>("fast");
    w.fail_fast();
    let a = w.step("a").run(async |_| Ok(()));
    w.step("fail").after(a).run(async |ctx, ()| {
        ctx.state().gate.pass().await;
        Err::<(), _>(StepError::new("no"))
    });
    w.step("running").after(a).run(async |ctx, ()| {
        let _told = ctx.state().journal.write_on_drop("dropped");
        std::future::pending::<()>().await;
        Ok(())
    });
    let nap = w.sleep("nap", DAY).after(a);
    w.step("pending").after(nap).run(async |_, ()| Ok(()));
    w.step("retrying")
        .after(a)
        .retry(Retry::fixed(1, DAY))
        .run(async |_, ()| Err::<(), _>(StepError::new("later")));
    let world = World::default();
    let (test, fast) = world.engine(w.no_output());
    let run = test.start(&fast, ()).now().unwrap();
    test.run_until_idle();
    assert_eq!(
        states(&run),
        "a COMPLETED, fail RUNNING, running RUNNING, nap SLEEPING, pending PENDING, \
         retrying QUEUED"
    );
    world.gate.let_pass(1);
    refused(run.result(), Code::RunFailed, &["\"fail\""]);
    assert_eq!(
        states(&run),
        "a COMPLETED, fail FAILED, running CANCELLED, nap CANCELLED, pending CANCELLED, \
         retrying CANCELLED"
    );
    test.run_until_idle();
    assert_eq!(world.journal.lines(), ["dropped"], "the running step was stopped");
    assert_eq!(dump(&test).timers.len(), 0, "no timer is left");
    let last = run.attempts().unwrap().pop().unwrap();
    assert_eq!((last.0.as_str(), last.1.state), ("running", AttemptState::Cancelled));
}

#[test]
fn the_handler_also_runs_when_a_required_output_was_skipped() {
    // R20
    let mut w = Workflow::define::<(), World>("required");
    let a = w.step("a").run(async |_| Ok(1));
    let b = w.step("b").after(a).skip_if(|_| true).run(async |_, n| Ok(n));
    w.on_failure(async |ctx, failure| {
        ctx.state().journal.write(format!("{}: {:?}", failure.step, failure.failure.kind));
        Ok(())
    });
    let world = World::default();
    let (test, required) = world.engine(w.output_required(b));
    refused(test.run(&required, ()).wait(), Code::RunFailed, &["was skipped"]);
    assert_eq!(world.journal.lines(), ["b: OutputSkipped"]);
}

#[test]
fn the_handler_can_read_what_completed_steps_left() {
    // R20
    let mut w = Workflow::define::<(), World>("reading");
    let charge = w.step("charge").run(async |_| Ok("charge-7".to_owned()));
    let ship = w
        .step("ship")
        .after(charge)
        .run(async |_, _| Err::<String, _>(StepError::new("no parcel")));
    w.on_failure(move |ctx, _| async move {
        ctx.state().journal.write(ctx.output(&charge).await?);
        ctx.state().journal.write(ctx.output(&ship).await.unwrap_err());
        Ok(())
    });
    let world = World::default();
    let (test, reading) = world.engine(w.no_output());
    refused(test.run(&reading, ()).wait(), Code::RunFailed, &["no parcel"]);
    let lines = world.journal.lines();
    assert_eq!(lines[0], "charge-7");
    assert!(lines[1].contains("\"ship\" has no output"), "{}", lines[1]);
}

/// Panics when it is dropped, with another one that does so, too.
struct Grudge(u32);

impl Drop for Grudge {
    fn drop(&mut self) {
        if self.0 > 0 {
            std::panic::panic_any(Self(self.0 - 1));
        }
    }
}

#[test]
fn a_worker_lives_on_after_panics_of_all_kinds() {
    // R3
    let mut w = Workflow::define::<u32, ()>("panics");
    let a = w.step("a").run(async |ctx| Ok(*ctx.input()));
    let b =
        w.step("b").after(a).skip_if(|n| *n == 1 && panic!("in a condition")).run(async |_, n| {
            assert!(n != 2, "in an async step");
            Ok(n)
        });
    let c = w.step("c").after(b).retry(Retry::exponential(1)).run_blocking(|ctx, n| {
        assert!(n != 3 || ctx.attempt() == 2, "in a blocking step");
        match n {
            4 => std::panic::panic_any(n),
            7 => std::panic::panic_any(Grudge(3)),
            _ => Ok(n),
        }
    });
    let mut builder = builder().configure(|config| config.slots = 1);
    let panics = builder.workflow(w.output_required(c));
    let test = builder.start().unwrap();
    let run = |input| {
        let run = test.start(&panics, input).now().unwrap();
        test.run_to_end();
        run
    };
    let condition = run(1);
    refused(condition.result(), Code::RunFailed, &["\"b\"", "in a condition"]);
    assert_eq!(trail(&condition, "b"), "QUEUED STARTED FAILED");
    assert_eq!(condition.outcome().unwrap().failure.unwrap().failure.kind, FailureKind::Panic);
    refused(run(2).result(), Code::RunFailed, &["\"b\"", "in an async step"]);
    let blocking = run(3);
    assert_eq!(blocking.result().unwrap(), 3, "a panic is retried like an error");
    assert_eq!(trail(&blocking, "c"), "QUEUED STARTED RETRYING STARTED COMPLETED");
    refused(run(4).result(), Code::RunFailed, &["\"c\"", "no text"]);
    refused(run(7).result(), Code::RunFailed, &["\"c\"", "no text"]);
    assert_eq!(run(5).result().unwrap(), 5, "the only slot still works");
    assert_eq!(state(&run(6), "c"), TaskState::Completed);
}

on_every_store![
    the_handler_runs_once_with_the_input_and_the_error,
    the_handler_does_not_run_when_the_run_goes_well_or_is_cancelled,
    the_handler_comes_after_everything_else_of_the_run,
    an_error_or_panic_of_the_handler_is_recorded_and_not_retried,
    a_handler_that_has_not_begun_survives_the_crash_of_its_engine,
    a_handler_whose_worker_dies_runs_again,
    descendants_of_a_failed_step_are_cancelled_and_other_branches_go_on,
    fail_fast_cancels_everything_else_at_once,
    the_handler_also_runs_when_a_required_output_was_skipped,
    the_handler_can_read_what_completed_steps_left,
    a_worker_lives_on_after_panics_of_all_kinds,
];
