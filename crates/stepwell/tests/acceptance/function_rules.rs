//! Durable functions: what is decided for the corners.

use std::time::Duration;

use futures_util::future::{join, join_all};
use serde::{Deserialize, Serialize};
use stepwell::{
    Code, Ctx, IntoWorkflow, Memo, MemoState, Result, Retry, RunStatus, Sent, StepError,
    StepErrorKind, TaskState, Workflow,
};

use crate::support::{DAY, HOUR, MINUTE, SECOND, World, beside, refused, state, trail};

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

fn memos(memos: &[Memo]) -> Vec<(&str, MemoState)> {
    memos.iter().map(|memo| (memo.key.as_str(), memo.state)).collect()
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
    first.stop(HOUR);
    assert_eq!(world.journal.lines(), ["a"], "no further step begins");
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

#[test]
fn a_new_round_forgives_failures_and_keeps_signals() {
    let world = World::default();
    let function = Workflow::function("rounds", async |ctx: Ctx<u32, World>| {
        if *ctx.input() == 0 {
            noted(&ctx, "first", 1).await?;
            if ctx.attempt() == 1 {
                return Err(StepError::new("once"));
            }
            let _given_up = ctx.wait::<u32>("kept", "kept");
            return ctx.continue_with(7);
        }
        assert_eq!(noted(&ctx, "first", 2).await?, 2, "memos are gone");
        if ctx.state().journal.count("failed") == 0 {
            ctx.state().journal.write("failed");
            return Err(StepError::new("once more"));
        }
        ctx.wait::<u32>("kept", "kept").await
    });
    let (test, handle) = world.engine(function.retry(Retry::fixed(1, SECOND)).into_workflow());
    let run = test.start(&handle, 0).now().unwrap();
    run.signal("kept", &5).wait().unwrap();
    test.run_to_end();
    assert_eq!(run.result().unwrap(), 5);
    assert_eq!(run.tasks().unwrap()[0].failures, 1, "that of the second round");
    let left = run.memos().unwrap();
    let kept = ("kept", MemoState::Signalled);
    assert_eq!(memos(&left), [("first", MemoState::Given), kept, ("", MemoState::Round)]);
}

#[test]
fn two_items_of_one_id_are_refused_before_any_of_them_starts() {
    let world = World::default();
    let function = Workflow::function("twins", async |ctx: Ctx<u32, World>| {
        let items = ctx.map("item").over([1, 2, 1]).id(|n| *n);
        let all = items.run(async |ctx, n| noted(&ctx, "x", n).await).await?;
        Ok(all.iter().sum::<u32>())
    });
    let (test, handle) = world.engine(function.retry(Retry::exponential(3)).into_workflow());
    let run = test.start(&handle, 0).now().unwrap();
    test.run_to_end();
    refused(run.result(), Code::RunFailed, &["\"item\"", "\"1\""]);
    assert!(world.journal.lines().is_empty());
    assert_eq!(run.attempts().unwrap().len(), 1);
}

#[test]
fn steps_may_be_added_and_moved_and_vanished_ones_are_reported() {
    // D5
    let world = World::default();
    let old = Workflow::function("deployed", async |ctx: Ctx<u32, World>| {
        noted(&ctx, "a", 1).await?;
        noted(&ctx, "gone", 2).await?;
        noted(&ctx, "b", 3).await?;
        ctx.sleep("night", DAY).await?;
        Ok(0)
    });
    let new = Workflow::function("deployed", async |ctx: Ctx<u32, World>| {
        let added = noted(&ctx, "added", 10).await?;
        let b = noted(&ctx, "b", 30).await?;
        let a = noted(&ctx, "a", 40).await?;
        ctx.sleep("night", DAY).await?;
        Ok(added + a + b)
    });
    let (first, handle) = world.engine(old.into_workflow());
    first.start(&handle, 0).id("r").now().unwrap();
    first.run_until_idle();
    first.stop(HOUR);
    let second = world.beside(&first, new.into_workflow());
    let run = second.run_handle("test", "r").unwrap();
    second.run_to_end();
    assert_eq!(run.status().unwrap(), RunStatus::Completed);
    assert_eq!(world.journal.lines(), ["a", "gone", "b", "added"]);
    let attempts = run.attempts().unwrap();
    let drift = &attempts.last().unwrap().1.notes["drift"];
    assert!(drift.contains("gone") && !drift.contains("added"), "{drift}");
}

#[derive(Serialize, Deserialize)]
struct Old {
    amount: String,
}

#[derive(Serialize, Deserialize)]
struct New {
    amount: u32,
}

#[test]
fn a_recorded_value_that_does_not_fit_any_more_is_told_by_kind_and_place() {
    // D6
    let world = World::default();
    let old = Workflow::function("typed", async |ctx: Ctx<u32, World>| {
        ctx.step("price", async || Ok(Old { amount: "s3cret".into() })).await?;
        ctx.sleep("night", DAY).await?;
        Ok(0)
    });
    let new = Workflow::function("typed", async |ctx: Ctx<u32, World>| {
        Ok(ctx.step("price", async || Ok(New { amount: 1 })).await?.amount)
    });
    let (first, handle) = world.engine(old.into_workflow());
    first.start(&handle, 0).id("r").now().unwrap();
    first.run_until_idle();
    first.stop(HOUR);
    let second = world.beside(&first, new.retry(Retry::exponential(3)).into_workflow());
    let run = second.run_handle("test", "r").unwrap();
    second.run_to_end();
    let attempts = run.attempts().unwrap();
    assert_eq!(attempts.len(), 2, "it is not tried again");
    let failure = attempts.last().unwrap().1.failure.clone().unwrap();
    for word in ["\"price\"", "\"r\"", "New", "expected u32 at .amount, found string"] {
        assert!(failure.message.contains(word), "{word}: {}", failure.message);
    }
    assert!(!failure.message.contains("s3cret"), "{}", failure.message);
}

#[test]
fn an_input_that_does_not_fit_any_more_fails_the_function_for_good() {
    // D6
    let world = World::default();
    let old = Workflow::function("typed", async |ctx: Ctx<String, World>| {
        ctx.sleep("night", DAY).await?;
        Ok(0_u32)
    });
    let new = Workflow::function("typed", async |ctx: Ctx<u32, World>| Ok(*ctx.input()));
    let (first, handle) = world.engine(old.into_workflow());
    first.start(&handle, "s3cret".to_owned()).id("r").now().unwrap();
    first.run_until_idle();
    first.stop(HOUR);
    let mut second = beside(&first).state(world.clone());
    second.workflow(new.retry(Retry::exponential(3)));
    let second = second.start().unwrap();
    let run = second.run_handle("test", "r").unwrap();
    second.run_to_end();
    let attempts = run.attempts().unwrap();
    let failure = attempts.last().unwrap().1.failure.clone().unwrap();
    assert!(failure.message.contains("expected u32, found string"), "{}", failure.message);
    assert_eq!(attempts.len(), 2);
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
fn a_signal_to_another_run_is_sent_once_and_its_answer_recorded() {
    let world = World::default();
    let function = Workflow::function("sends", async |ctx: Ctx<u32, World>| {
        if *ctx.input() == 1 {
            return ctx.wait::<u32>("go", "go").await;
        }
        let sent = ctx.signal("go", &5).to("test", "waits").await?;
        assert_eq!(sent, Sent::Accepted { number: 1 });
        ctx.sleep("pause", HOUR).await?;
        let late = ctx.signal("go", &6).to("test", "waits").await?;
        assert_eq!(late, Sent::AlreadyEnded(RunStatus::Completed));
        let unknown = ctx.signal("go", &7).to("test", "nobody").await.expect_err("unknown");
        assert_eq!(unknown.kind(), StepErrorKind::StepFailed);
        Err(unknown)
    });
    let (test, handle) = world.engine(function.retry(Retry::exponential(3)).into_workflow());
    let waits = test.start(&handle, 1).id("waits").now().unwrap();
    let run = test.start(&handle, 0).now().unwrap();
    test.run_to_end();
    assert_eq!(waits.result().unwrap(), 5);
    refused(run.result(), Code::RunFailed, &["\"nobody\""]);
    let attempts = run.attempts().unwrap();
    assert_eq!(attempts.len(), 2, "an unknown run is a permanent error");
    let keys: Vec<String> = run.memos().unwrap().into_iter().map(|memo| memo.key).collect();
    assert_eq!(keys, ["signal:go", "pause", "signal:go#2", "signal:go#3"]);
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
fn a_failure_handler_has_steps_and_sleeps_but_cannot_wait() {
    let world = World::default();
    let function = Workflow::function("handled", async |ctx: Ctx<u32, World>| match ctx.input() {
        0 => Err::<u32, _>(StepError::new("broken")),
        n => Ok(*n),
    });
    let function = function.on_failure(async |ctx, _failure| {
        noted(&ctx, "apologise", 1).await?;
        ctx.sleep("pause", HOUR).await?;
        noted(&ctx, "refund", 1).await?;
        ctx.wait::<u32>("answer", "answer").await?;
        Ok(())
    });
    let (test, handle) = world.engine(function.into_workflow());
    let run = test.start(&handle, 0).now().unwrap();
    test.run_to_end();
    refused(run.result(), Code::RunFailed, &["broken"]);
    assert_eq!(world.journal.lines(), ["apologise", "refund"]);
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
    a_time_out_is_per_execution_and_a_deadline_for_the_whole,
    a_step_that_takes_too_long_has_failed_and_is_tried_again,
    a_panic_between_steps_is_a_failed_attempt_and_memos_stay,
    a_stop_lets_the_step_end_and_hands_the_function_back_uncharged,
    a_step_of_a_graph_is_drained_with_its_checkpoints,
    a_value_that_is_too_large_fails_its_step_alone,
    a_new_round_forgives_failures_and_keeps_signals,
    two_items_of_one_id_are_refused_before_any_of_them_starts,
    steps_may_be_added_and_moved_and_vanished_ones_are_reported,
    a_recorded_value_that_does_not_fit_any_more_is_told_by_kind_and_place,
    an_input_that_does_not_fit_any_more_fails_the_function_for_good,
    a_panic_while_a_suspended_function_is_dropped_changes_nothing,
    a_signal_to_another_run_is_sent_once_and_its_answer_recorded,
    a_cancel_drops_the_function_and_begins_no_step,
    a_failure_handler_has_steps_and_sleeps_but_cannot_wait,
    what_something_outside_of_steps_decides_may_not_use_a_name_twice,
}

in_memory_only! {
    "tens of thousands of steps are the same number on every store":
    ten_thousand_steps_side_by_side_end_and_replay,
    more_memos_than_a_function_may_have_are_refused_and_the_remedy_named,
}
