//! Durable functions that live long: deploys, rounds, other runs, and how they fail.

use serde::{Deserialize, Serialize};
use stepwell::{
    Code, Ctx, IntoWorkflow, Memo, MemoState, Result, Retry, RunStatus, Sent, StepError,
    StepErrorKind, Workflow,
};

use crate::support::{DAY, HOUR, SECOND, World, beside, refused};

/// A step that says when it is executed, and gives a number.
async fn noted(ctx: &Ctx<u32, World>, name: &str, gives: u32) -> Result<u32> {
    ctx.step(name, async || {
        ctx.state().journal.write(name);
        Ok(gives)
    })
    .await
}

fn memos(memos: &[Memo]) -> Vec<(&str, MemoState)> {
    memos.iter().map(|memo| (memo.key.as_str(), memo.state)).collect()
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

on_every_store! {
    steps_may_be_added_and_moved_and_vanished_ones_are_reported,
    a_recorded_value_that_does_not_fit_any_more_is_told_by_kind_and_place,
    an_input_that_does_not_fit_any_more_fails_the_function_for_good,
    a_signal_to_another_run_is_sent_once_and_its_answer_recorded,
    a_failure_handler_has_steps_and_sleeps_but_cannot_wait,
    a_new_round_forgives_failures_and_keeps_signals,
    two_items_of_one_id_are_refused_before_any_of_them_starts,
}
