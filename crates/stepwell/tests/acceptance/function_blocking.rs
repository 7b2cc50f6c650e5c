//! Durable functions without async.

use std::time::Duration;

use stepwell::blocking::Ctx;
use stepwell::{
    Code, IntoWorkflow, Result, Retry, Signalled, StepError, StepErrorKind, TaskState, Workflow,
};

use crate::support::{DAY, HOUR, MINUTE, SECOND, World, refused, state, trail};

fn noted(ctx: &Ctx<u32, World>, name: &str, gives: u32) -> Result<u32> {
    let step = ctx.step(name, || {
        ctx.state().journal.write(name);
        Ok(gives)
    });
    step.wait()
}

fn onboarding(ctx: Ctx<u32, World>) -> Result<u32> {
    let record = noted(&ctx, "record", 1)?;
    let (laptop, access) = ctx.join((
        ctx.step("laptop", || Ok(2)),
        ctx.branch("access", |ctx| {
            let door = noted(&ctx, "door", 1)?;
            ctx.sleep("wait", HOUR).wait()?;
            Ok(door + noted(&ctx, "badge", 2)?)
        }),
    ))?;
    ctx.sleep("cool-off", DAY).wait()?;
    let approved = ctx.wait::<u32>("approval", "approved").timeout(DAY).wait()?;
    let approved = approved.received().unwrap_or(0);
    Ok(ctx.input() + record + laptop + access + approved + noted(&ctx, "mail", 4)?)
}

fn workflow() -> Workflow<u32, u32, World> {
    Workflow::function_blocking("onboarding", onboarding).into_workflow()
}

#[test]
fn a_blocking_function_goes_on_where_it_was_after_each_wait() {
    // D1, D12
    let world = World::default();
    let (test, handle) = world.engine(workflow());
    let run = test.start(&handle, 100).now().unwrap();
    test.run_until_idle();
    assert_eq!(state(&run, "onboarding"), TaskState::Sleeping);
    test.advance(HOUR + DAY + MINUTE);
    assert_eq!(state(&run, "onboarding"), TaskState::Waiting);
    run.signal("approved", &1_000).wait().unwrap();
    test.run_to_end();
    assert_eq!(run.result().unwrap(), 1_110);
    assert_eq!(world.journal.lines(), ["record", "door", "badge", "mail"]);
}

#[test]
fn a_step_of_a_blocking_function_is_tried_again_and_its_count_survives() {
    // D8
    let world = World::default();
    let flaky = |ctx: Ctx<u32, World>| {
        let flaky = ctx.step("flaky", || {
            ctx.state().journal.write("try");
            match ctx.state().journal.count("try") {
                1 => panic!("the first try"),
                n if n < 4 => Err(StepError::new(format!("try {n}"))),
                n => Ok(n),
            }
        });
        flaky.retry(Retry::fixed(5, MINUTE)).wait()
    };
    let (test, handle) = world.engine(Workflow::function_blocking("flaky", flaky).into_workflow());
    let run = test.start(&handle, 0).now().unwrap();
    test.run_to_end();
    assert_eq!(run.result().unwrap(), 4);
    let trailed = "QUEUED STARTED SUSPENDED SLEEPING WOKEN STARTED SUSPENDED SLEEPING WOKEN \
                   STARTED SUSPENDED SLEEPING WOKEN STARTED COMPLETED";
    assert_eq!(trail(&run, "flaky"), trailed);
}

#[test]
fn a_short_pause_of_a_blocking_function_is_waited_for_in_place() {
    let world = World::default();
    let short = |ctx: Ctx<u32, World>| ctx.sleep("nap", Duration::from_millis(500)).wait();
    let (test, handle) = world.engine(Workflow::function_blocking("short", short).into_workflow());
    let run = test.start(&handle, 0).now().unwrap();
    test.run_to_end();
    run.result().unwrap();
    assert_eq!(trail(&run, "short"), "QUEUED STARTED COMPLETED");
}

#[test]
fn a_blocking_step_that_took_too_long_has_failed_when_it_returns() {
    let world = World::default();
    let slow = |ctx: Ctx<u32, World>| {
        let slow = ctx.step("slow", || {
            ctx.state().journal.write("try");
            let n = ctx.state().journal.count("try");
            // Nothing can interrupt it.
            ctx.state().time_passes(if n < 3 { HOUR } else { MINUTE });
            ctx.state().journal.write("returns");
            Ok(n)
        });
        slow.timeout(MINUTE).retry(Retry::fixed(3, MINUTE)).wait()
    };
    let (test, handle) = world.engine(Workflow::function_blocking("slow", slow).into_workflow());
    let run = test.start(&handle, 0).now().unwrap();
    test.run_to_end();
    assert_eq!(run.result().unwrap(), 3);
    assert_eq!(world.journal.lines(), ["try", "returns"].repeat(3));
}

#[test]
fn short_pauses_of_branches_are_waited_for_in_place() {
    let world = World::default();
    let short = |ctx: Ctx<u32, World>| {
        let half = Duration::from_millis(500);
        let flaky = ctx.step("flaky", || {
            ctx.state().journal.write("try");
            if ctx.state().journal.count("try") < 3 { Err(StepError::new("again")) } else { Ok(1) }
        });
        let nap = ctx.branch("nap", |ctx| {
            ctx.sleep("nap", half).wait()?;
            // Of branches within branches, too.
            ctx.join((ctx.sleep("one", half), ctx.sleep("other", half / 2)))?;
            noted(&ctx, "after", 2)
        });
        let naps = vec![ctx.sleep("a", half), ctx.sleep("b", half / 5), ctx.sleep("c", 2 * half)];
        let (napped, tried) = ctx.join((nap, flaky.retry(Retry::fixed(5, half))))?;
        ctx.join(naps)?;
        Ok(napped + tried)
    };
    let (test, handle) = world.engine(Workflow::function_blocking("short", short).into_workflow());
    let run = test.start(&handle, 0).now().unwrap();
    test.run_to_end();
    assert_eq!(run.result().unwrap(), 3);
    assert_eq!(trail(&run, "short"), "QUEUED STARTED COMPLETED");
}

#[test]
fn a_branch_that_waits_for_long_suspends_the_function_once_the_others_are_done() {
    let world = World::default();
    let mixed = |ctx: Ctx<u32, World>| {
        let half = Duration::from_millis(500);
        let ((), short, ()) = ctx.join((
            ctx.sleep("long", HOUR),
            ctx.branch("short", |ctx| {
                ctx.sleep("nap", half).wait()?;
                noted(&ctx, "after", 2)
            }),
            ctx.sleep("alone", half),
        ))?;
        Ok(short)
    };
    let (test, handle) = world.engine(Workflow::function_blocking("mixed", mixed).into_workflow());
    let run = test.start(&handle, 0).now().unwrap();
    test.advance(SECOND);
    assert_eq!(world.journal.lines(), ["after"]);
    assert_eq!(state(&run, "mixed"), TaskState::Sleeping);
    test.run_to_end();
    assert_eq!(run.result().unwrap(), 2);
    assert_eq!(trail(&run, "mixed"), "QUEUED STARTED SUSPENDED SLEEPING WOKEN STARTED COMPLETED");
}

#[test]
fn a_suspension_that_is_swallowed_fails_the_run_and_says_where() {
    let world = World::default();
    let swallows = |ctx: Ctx<u32, World>| {
        let slept = ctx.sleep("night", DAY).wait();
        let error = slept.expect_err("it has to wait");
        assert_eq!(error.kind(), StepErrorKind::Suspended);
        assert!(ctx.step("after", || Ok(1)).wait().is_err(), "nothing durable happens after it");
        Ok(1)
    };
    let function = Workflow::function_blocking("swallows", swallows).retry(Retry::exponential(3));
    let (test, handle) = world.engine(function.into_workflow());
    let run = test.start(&handle, 0).now().unwrap();
    test.run_to_end();
    refused(run.result(), Code::RunFailed, &["hand errors of `ctx` up by `?`"]);
    assert_eq!(run.attempts().unwrap().len(), 1, "it is not tried again");
}

#[test]
fn a_loop_that_swallows_a_suspension_for_ever_is_ended() {
    let world = World::default();
    let swallows = |ctx: Ctx<u32, World>| -> Result<u32> {
        loop {
            if let Ok(()) = ctx.sleep("night", DAY).wait() {
                return Ok(1);
            }
        }
    };
    let function = Workflow::function_blocking("swallows", swallows);
    let (test, handle) = world.engine(function.into_workflow());
    let run = test.start(&handle, 0).now().unwrap();
    test.run_to_end();
    refused(run.result(), Code::RunFailed, &["hand errors of `ctx` up by `?`"]);
}

#[test]
fn many_blocking_steps_run_at_once() {
    let world = World::default();
    let wide = |ctx: Ctx<u32, World>| {
        let steps =
            (0..200_u32).map(|ix| ctx.step(("add", ix), move || Ok(ix))).collect::<Vec<_>>();
        let sum: u32 = ctx.join(steps)?.iter().sum();
        ctx.sleep("pause", HOUR).wait()?;
        Ok(sum)
    };
    let (test, handle) = world.engine(Workflow::function_blocking("wide", wide).into_workflow());
    let run = test.start(&handle, 0).now().unwrap();
    test.run_to_end();
    assert_eq!(run.result().unwrap(), 199 * 100);
}

#[test]
fn a_blocking_step_of_a_graph_has_checkpoints() {
    let world = World::default();
    let mut w = Workflow::define::<u32, World>("graph");
    let long = w.step("long").retry(Retry::fixed(1, MINUTE)).run_blocking(|ctx| {
        let first = noted(&ctx, "first", 1)?;
        if ctx.attempt() == 1 {
            return Err(StepError::new("half-way"));
        }
        let waited = ctx.wait::<u32>("go", "go").timeout(HOUR).wait()?;
        assert_eq!(waited, Signalled::TimedOut);
        Ok(first + noted(&ctx, "second", 2)?)
    });
    let (test, handle) = world.engine(w.output(long));
    let run = test.start(&handle, 0).now().unwrap();
    test.run_to_end();
    assert_eq!(run.result().unwrap(), 3);
    assert_eq!(world.journal.lines(), ["first", "second"]);
}

#[test]
fn a_blocking_function_goes_on_in_rounds_and_signals_others_once() {
    let world = World::default();
    let rounds = |ctx: Ctx<u32, World>| {
        let n = ctx.input() + 1;
        ctx.signal("ping", &n).to("test", "other").wait()?;
        ctx.sleep("pause", HOUR).wait()?;
        if n == 3 { Ok(ctx.uuid("id").to_string()) } else { ctx.continue_with(n) }
    };
    let (test, handle) =
        world.engine(Workflow::function_blocking("rounds", rounds).into_workflow());
    let other = test.start(&handle, 2).id("other").now().unwrap();
    let run = test.start(&handle, 0).now().unwrap();
    test.run_until_idle();
    assert_eq!(other.signals().unwrap().len(), 2, "one of its own and one of the other");
    test.run_to_end();
    assert_eq!(run.result().unwrap().len(), 36);
}

on_every_store! {
    a_blocking_function_goes_on_where_it_was_after_each_wait,
    a_step_of_a_blocking_function_is_tried_again_and_its_count_survives,
    a_short_pause_of_a_blocking_function_is_waited_for_in_place,
    a_blocking_step_that_took_too_long_has_failed_when_it_returns,
    short_pauses_of_branches_are_waited_for_in_place,
    a_branch_that_waits_for_long_suspends_the_function_once_the_others_are_done,
    a_suspension_that_is_swallowed_fails_the_run_and_says_where,
    a_loop_that_swallows_a_suspension_for_ever_is_ended,
    many_blocking_steps_run_at_once,
    a_blocking_step_of_a_graph_has_checkpoints,
    a_blocking_function_goes_on_in_rounds_and_signals_others_once,
}
