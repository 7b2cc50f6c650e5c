//! Durable functions: what is decided for the corners.

use std::time::Duration;

use futures_util::future::{join, join_all};
use stepwell::{
    Code, Ctx, IntoWorkflow, Result, Retry, RunStatus, StepErrorKind, TaskState, Workflow,
};

use crate::support::{DAY, HOUR, MINUTE, SECOND, World, refused, state, trail};

type Function = Workflow<u32, u32, World>;

/// A step that says when it is executed, and gives a number.
async fn noted(ctx: &Ctx<u32, World>, name: &str, gives: u32) -> Result<u32> {
    ctx.step(name, async || {
        ctx.state().journal.write(name);
        Ok(gives)
    })
    .await
}

/// A step that waits at the gate.
async fn gated(ctx: &Ctx<u32, World>, name: &str) -> Result<u32> {
    ctx.step(name, async || {
        ctx.state().journal.write(name);
        ctx.state().gate.pass().await;
        Ok(1)
    })
    .await
}

#[test]
fn a_function_is_not_suspended_while_a_step_of_it_is_executed() {
    let world = World::default();
    let function = Workflow::function("both", async |ctx: Ctx<u32, World>| {
        let (slept, step) = join(ctx.sleep("sleep", HOUR), gated(&ctx, "step")).await;
        slept?;
        step
    });
    let (test, handle) = world.engine(function.into_workflow());
    let run = test.start(&handle, 0).now().unwrap();
    test.run_until_idle();
    assert_eq!(state(&run, "both"), TaskState::Running);
    world.gate.let_pass(1);
    test.run_until_idle();
    assert_eq!(state(&run, "both"), TaskState::Sleeping);
    test.run_to_end();
    assert_eq!(run.result().unwrap(), 1);
    assert_eq!(world.journal.lines(), ["step"]);
    let slept = test.now().since(run.events().unwrap()[0].at);
    assert_eq!(slept, HOUR, "its time ran from the call on");
}

#[test]
fn a_time_out_is_per_execution_and_a_deadline_for_the_whole() {
    let world = World::default();
    let function = || {
        Workflow::function("long", async |ctx: Ctx<u32, World>| {
            ctx.sleep("night", HOUR).await?;
            ctx.sleep("day", HOUR).await?;
            gated(&ctx, "step").await
        })
        .timeout(MINUTE)
    };
    let (test, handle) = world.engine(function().into_workflow());
    let run = test.start(&handle, 0).now().unwrap();
    test.run_to_end();
    refused(run.result(), Code::RunFailed, &["time-out of 60s"]);
    assert!(test.now().since(run.events().unwrap()[0].at) >= 2 * HOUR, "waits do not count");
    let late = test.start(&handle, 0).deadline(HOUR + MINUTE).now().unwrap();
    test.run_to_end();
    refused(late.result(), Code::RunFailed, &["deadline"]);
}

#[test]
fn a_step_that_takes_too_long_has_failed_and_is_tried_again() {
    let world = World::default();
    let function = Workflow::function("slow", async |ctx: Ctx<u32, World>| {
        let slow = ctx.step("slow", async || {
            ctx.state().journal.write("try");
            let n = ctx.state().journal.count("try");
            let _dropped = ctx.state().journal.write_on_drop("dropped");
            if n < 3 {
                ctx.state().takes(HOUR).await;
            }
            Ok(u32::try_from(n).unwrap())
        });
        slow.timeout(MINUTE).retry(Retry::fixed(3, SECOND)).await
    });
    let (test, handle) = world.engine(function.into_workflow());
    let run = test.start(&handle, 0).now().unwrap();
    test.run_to_end();
    assert_eq!(run.result().unwrap(), 3);
    let tries = ["try", "dropped", "try", "dropped", "try", "dropped"];
    assert_eq!(world.journal.lines(), tries);
}

#[test]
fn a_panic_between_steps_is_a_failed_attempt_and_memos_stay() {
    let world = World::default();
    let function = Workflow::function("panics", async |ctx: Ctx<u32, World>| {
        let a = noted(&ctx, "a", 1).await?;
        assert!(ctx.attempt() > 1, "the first time");
        let b = ctx.step("b", async || {
            ctx.state().journal.write("b");
            assert!(ctx.state().journal.count("b") > 1, "inside of a step");
            Ok(2)
        });
        Ok(a + b.retry(Retry::fixed(1, SECOND)).await?)
    });
    let (test, handle) = world.engine(function.retry(Retry::fixed(1, SECOND)).into_workflow());
    let run = test.start(&handle, 0).now().unwrap();
    test.run_to_end();
    assert_eq!(run.result().unwrap(), 3);
    assert_eq!(world.journal.lines(), ["a", "b", "b"]);
    assert_eq!(run.tasks().unwrap()[0].failures, 1);
}

#[test]
fn a_stop_lets_the_step_end_and_hands_the_function_back_uncharged() {
    let world = World::default();
    let function = || -> Function {
        Workflow::function("stopped", async |ctx: Ctx<u32, World>| {
            let a = ctx.step("a", async || {
                ctx.state().journal.write("a");
                ctx.state().takes(MINUTE).await;
                Ok(1)
            });
            Ok(a.await? + noted(&ctx, "b", 1).await?)
        })
        .into_workflow()
    };
    let (first, handle) = world.engine(function());
    first.start(&handle, 0).id("r").now().unwrap();
    first.run_until_idle();
    let began_at = first.now();
    first.stop(HOUR);
    assert_eq!(world.journal.lines(), ["a"], "no further step begins");
    assert_eq!(first.now().since(began_at), MINUTE, "it waits for the step and for nothing else");
    let second = world.beside(&first, function());
    second.run_to_end();
    let run = second.run_handle("test", "r").unwrap();
    assert_eq!(run.status().unwrap(), RunStatus::Completed);
    assert_eq!(world.journal.lines(), ["a", "b"]);
    let task = &run.tasks().unwrap()[0];
    assert_eq!((task.failures, task.losses), (0, 0));
}

#[test]
fn a_step_of_a_graph_is_drained_with_its_checkpoints() {
    let world = World::default();
    let mut w = Workflow::define::<u32, World>("graph");
    let long = w.step("long").run(async |ctx| {
        let a = noted(&ctx, "a", 1).await?;
        ctx.state().takes(MINUTE).await;
        Ok(a + noted(&ctx, "b", 1).await?)
    });
    let (first, handle) = world.engine(w.output(long));
    let run = first.start(&handle, 0).now().unwrap();
    first.run_until_idle();
    let report = first.stop(HOUR);
    assert_eq!(report.n_drained, 1);
    assert_eq!(world.journal.lines(), ["a", "b"]);
    drop(run);
}

#[test]
fn a_value_that_is_too_large_fails_its_step_alone() {
    let world = World::default();
    let function = Workflow::function("large", async |ctx: Ctx<u32, World>| {
        let large = ctx.step("large", async || Ok("x".repeat(3 * 1024 * 1024)));
        let (large, small) = join(large, noted(&ctx, "small", 1)).await;
        let error = large.expect_err("it is too large");
        assert!(error.message().contains("payload_bytes_max"), "{error}");
        assert_eq!(error.kind(), StepErrorKind::StepFailed);
        small
    });
    let (test, handle) = world.engine(function.into_workflow());
    let run = test.start(&handle, 0).now().unwrap();
    test.run_to_end();
    assert_eq!(run.result().unwrap(), 1);
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            std::panic::resume_unwind(Box::new("dropped"));
        }
    }
}

#[test]
fn a_panic_while_a_suspended_function_is_dropped_changes_nothing() {
    let world = World::default();
    let function = Workflow::function("bomb", async |ctx: Ctx<u32, World>| {
        let bomb = Bomb;
        ctx.sleep("night", DAY).await?;
        std::mem::forget(bomb);
        Ok(1)
    });
    let (test, handle) = world.engine(function.into_workflow());
    let run = test.start(&handle, 0).now().unwrap();
    test.run_to_end();
    assert_eq!(run.result().unwrap(), 1);
    assert_eq!(run.tasks().unwrap()[0].failures, 0);
}

#[test]
fn a_cancel_drops_the_function_and_begins_no_step() {
    // D9
    let world = World::default();
    let function = Workflow::function("cancelled", async |ctx: Ctx<u32, World>| {
        let _dropped = ctx.state().journal.write_on_drop("dropped");
        gated(&ctx, "a").await?;
        noted(&ctx, "b", 1).await
    });
    let (test, handle) = world.engine(function.into_workflow());
    let run = test.start(&handle, 0).now().unwrap();
    test.run_until_idle();
    run.cancel().wait().unwrap();
    test.run_until_idle();
    world.gate.let_pass(1);
    test.run_until_idle();
    assert_eq!(run.status().unwrap(), RunStatus::Cancelled);
    assert_eq!(world.journal.lines(), ["a", "dropped"]);
}

#[test]
fn ten_thousand_steps_side_by_side_end_and_replay() {
    let world = World::default();
    let function = Workflow::function("wide", async |ctx: Ctx<u32, World>| {
        let n = *ctx.input();
        let steps = (0..n).map(|ix| ctx.step(("add", ix), async move || Ok(u64::from(ix))));
        let joined: Result<Vec<u64>> = join_all(steps).await.into_iter().collect();
        let mapped = ctx
            .map("double")
            .over(0..n)
            .run(async |ctx, ix| ctx.step("double", async || Ok(2 * u64::from(ix))).await);
        let mapped = mapped.await?;
        ctx.sleep("pause", HOUR).await?;
        Ok(joined?.iter().sum::<u64>() + mapped.iter().sum::<u64>())
    });
    let (test, handle) = world.engine(function.into_workflow());
    let run = test.start(&handle, 10_000).now().unwrap();
    test.run_to_end();
    assert_eq!(run.result().unwrap(), 3 * 9_999 * 5_000);
}

#[test]
fn more_memos_than_a_function_may_have_are_refused_and_the_remedy_named() {
    let world = World::default();
    let function = Workflow::function("endless", async |ctx: Ctx<u32, World>| -> Result<u32> {
        loop {
            let steps = (0..1_000).map(|ix| ctx.step(("s", ix), async || Ok(())));
            join_all(steps).await;
        }
    });
    let (test, handle) = world.engine(function.retry(Retry::exponential(3)).into_workflow());
    let run = test.start(&handle, 0).now().unwrap();
    test.run_to_end();
    refused(run.result(), Code::RunFailed, &["continue_with", "50000"]);
    assert_eq!(run.attempts().unwrap().len(), 1);
}

#[test]
fn what_something_outside_of_steps_decides_may_not_use_a_name_twice() {
    let world = World::default();
    let function = Workflow::function("foreign", async |ctx: Ctx<u32, World>| {
        let a = noted(&ctx, "x", 1).await?;
        // Not a step: when it is over, nobody has recorded.
        ctx.state().takes(Duration::from_millis(10)).await;
        Ok(a + noted(&ctx, "x", 2).await?)
    });
    let (test, handle) = world.engine(function.retry(Retry::exponential(3)).into_workflow());
    let run = test.start(&handle, 0).now().unwrap();
    test.run_to_end();
    refused(run.result(), Code::RunFailed, &["\"x\"", "move that into a step"]);
    assert_eq!(trail(&run, "foreign"), "QUEUED STARTED FAILED");
}

on_every_store! {
    a_function_is_not_suspended_while_a_step_of_it_is_executed,
    ten_thousand_steps_side_by_side_end_and_replay,
    a_time_out_is_per_execution_and_a_deadline_for_the_whole,
    a_step_that_takes_too_long_has_failed_and_is_tried_again,
    a_panic_between_steps_is_a_failed_attempt_and_memos_stay,
    a_stop_lets_the_step_end_and_hands_the_function_back_uncharged,
    a_step_of_a_graph_is_drained_with_its_checkpoints,
    a_value_that_is_too_large_fails_its_step_alone,
    a_panic_while_a_suspended_function_is_dropped_changes_nothing,
    a_cancel_drops_the_function_and_begins_no_step,
    what_something_outside_of_steps_decides_may_not_use_a_name_twice,
}

in_memory_only! {
    "tens of thousands of steps are the same number on every store":
    more_memos_than_a_function_may_have_are_refused_and_the_remedy_named,
}
