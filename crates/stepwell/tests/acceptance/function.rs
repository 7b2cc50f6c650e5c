//! Durable functions: ordinary code that goes on where it was.

use std::time::Duration;

use futures_util::future::{join, join_all, try_join};
use stepwell::{
    AttemptState, Code, Ctx, First, IntoWorkflow, Result, Retry, RunStatus, Signalled, StepError,
    StepErrorKind, TaskState, Workflow,
};

use crate::support::{DAY, HOUR, MINUTE, SECOND, World, engine_with, refused, state, trail};

/// A step that says when it is executed, and gives a number.
async fn noted(ctx: &Ctx<u32, World>, name: &str, gives: u32) -> Result<u32> {
    ctx.step(name, async || {
        ctx.state().journal.write(name);
        Ok(gives)
    })
    .await
}

/// Orders a laptop, sleeps, and waits for an approval.
async fn onboarding(ctx: Ctx<u32, World>) -> Result<u32> {
    ctx.state().journal.write("begin");
    let record = noted(&ctx, "record", 1).await?;
    let (laptop, access) = try_join(noted(&ctx, "laptop", 2), noted(&ctx, "access", 3)).await?;
    ctx.sleep("cool-off", DAY).await?;
    let approved = ctx.wait::<u32>("approval", "approved").timeout(DAY).await?;
    let approved = approved.received().unwrap_or(0);
    let mail = noted(&ctx, "mail", 4).await?;
    Ok(ctx.input() + record + laptop + access + approved + mail)
}

#[test]
fn a_function_goes_on_where_it_was_after_each_wait() {
    // D1, D3, D4
    let world = World::default();
    let (test, handle) = world.engine(Workflow::function("onboarding", onboarding).into_workflow());
    let run = test.start(&handle, 100).now().unwrap();
    test.run_until_idle();
    assert_eq!(state(&run, "onboarding"), TaskState::Sleeping);
    assert_eq!(world.journal.lines(), ["begin", "record", "laptop", "access"]);
    test.advance(DAY);
    assert_eq!(state(&run, "onboarding"), TaskState::Waiting);
    run.signal("approved", &1_000).wait().unwrap();
    test.run_to_end();
    assert_eq!(run.result().unwrap(), 1_110);
    let lines = ["begin", "record", "laptop", "access", "begin", "begin", "mail"];
    assert_eq!(world.journal.lines(), lines, "nothing that was recorded is executed again");
    let trailed = "QUEUED STARTED SUSPENDED SLEEPING WOKEN STARTED SUSPENDED WAITING SIGNALLED \
                   STARTED COMPLETED";
    assert_eq!(trail(&run, "onboarding"), trailed);
    let attempts = run.attempts().unwrap();
    let states: Vec<AttemptState> = attempts.iter().map(|(_, attempt)| attempt.state).collect();
    let suspended = AttemptState::Suspended;
    assert_eq!(states, [suspended, suspended, AttemptState::Completed]);
}

#[test]
fn a_wait_of_a_function_times_out() {
    // D4
    let world = World::default();
    let (test, handle) = world.engine(Workflow::function("onboarding", onboarding).into_workflow());
    let run = test.start(&handle, 100).now().unwrap();
    test.run_to_end();
    assert_eq!(run.result().unwrap(), 110);
    assert!(test.now().since(run.events().unwrap()[0].at) >= 2 * DAY);
}

#[test]
fn a_crash_repeats_nothing_that_is_recorded() {
    // D2
    let world = World::default();
    let function = || {
        Workflow::function("gated", async |ctx: Ctx<u32, World>| {
            let a = noted(&ctx, "a", 1).await?;
            let b = ctx.step("b", async || {
                ctx.state().journal.write("b");
                ctx.state().gate.pass().await;
                Ok(2)
            });
            let b = b.await?;
            Ok(a + b + noted(&ctx, "c", 3).await?)
        })
        .into_workflow()
    };
    let (first, handle) = world.engine(function());
    first.start(&handle, 0).id("r").now().unwrap();
    first.run_until_idle();
    let second = world.beside(&first, function());
    first.crash();
    second.advance(3 * HOUR);
    world.gate.let_pass(1);
    let run = second.run_handle("test", "r").unwrap();
    second.run_until_idle();
    assert_eq!(run.status().unwrap(), RunStatus::Completed);
    assert_eq!(world.journal.lines(), ["a", "b", "b", "c"]);
}

#[test]
fn a_step_of_a_function_is_tried_again_and_its_count_survives_a_suspension() {
    // D8
    let world = World::default();
    let (test, handle) = world.engine(
        Workflow::function("flaky", async |ctx: Ctx<u32, World>| {
            let flaky = ctx.step("flaky", async || {
                ctx.state().journal.write("try");
                match ctx.state().journal.count("try") {
                    n if n < 4 => Err(StepError::new(format!("try {n}"))),
                    n => Ok(n),
                }
            });
            flaky.retry(Retry::exponential(5).initial(MINUTE)).await
        })
        .into_workflow(),
    );
    let run = test.start(&handle, 0).now().unwrap();
    test.run_to_end();
    assert_eq!(run.result().unwrap(), 4);
    // One, two and four minutes would be longer than the cap of a minute.
    let trailed = "QUEUED STARTED SUSPENDED SLEEPING WOKEN STARTED SUSPENDED SLEEPING WOKEN \
                   STARTED SUSPENDED SLEEPING WOKEN STARTED COMPLETED";
    assert_eq!(trail(&run, "flaky"), trailed);
}

#[test]
fn a_short_pause_is_waited_for_in_place() {
    let world = World::default();
    let (test, handle) = world.engine(
        Workflow::function("short", async |ctx: Ctx<u32, World>| {
            ctx.sleep("nap", Duration::from_millis(500)).await?;
            let before = ctx.now();
            ctx.sleep("nap", Duration::from_millis(500)).await?;
            Ok(ctx.now().since(before))
        })
        .into_workflow(),
    );
    let run = test.start(&handle, 0).now().unwrap();
    test.run_to_end();
    assert_eq!(run.result().unwrap(), Duration::from_millis(500));
    assert_eq!(trail(&run, "short"), "QUEUED STARTED COMPLETED");
}

#[test]
fn an_error_is_recorded_and_can_be_matched() {
    // D7
    let world = World::default();
    let (test, handle) = world.engine(
        Workflow::function("fails", async |ctx: Ctx<u32, World>| {
            let failed = ctx
                .step("charge", async || {
                    ctx.state().journal.write("charge");
                    Err::<u32, _>(StepError::new("no money"))
                })
                .await;
            let error = failed.expect_err("it failed");
            assert_eq!(error.kind(), StepErrorKind::StepFailed);
            assert_eq!((error.key(), error.message()), (Some("charge"), "no money"));
            ctx.sleep("think", HOUR).await?;
            Err::<(), _>(error)
        })
        .into_workflow(),
    );
    let run = test.start(&handle, 0).now().unwrap();
    test.run_to_end();
    refused(run.result(), Code::RunFailed, &["no money"]);
    assert_eq!(world.journal.lines(), ["charge"], "the error answers for the second execution");
    let attempts = run.attempts().unwrap();
    let failure = attempts.last().unwrap().1.failure.as_ref().unwrap();
    assert_eq!(failure.key.as_deref(), Some("charge"));
}

#[test]
fn a_retry_of_the_function_forgets_the_errors_that_ended_it() {
    let world = World::default();
    let (test, handle) = world.engine(
        Workflow::function("again", async |ctx: Ctx<u32, World>| {
            let a = noted(&ctx, "a", 1).await?;
            let b = ctx.step("b", async || {
                ctx.state().journal.write("b");
                match ctx.state().journal.count("b") {
                    1 => Err(StepError::new("not yet")),
                    n => Ok(n),
                }
            });
            Ok(a as usize + b.await?)
        })
        .retry(Retry::fixed(1, HOUR))
        .into_workflow(),
    );
    let run = test.start(&handle, 0).now().unwrap();
    test.run_to_end();
    assert_eq!(run.result().unwrap(), 3);
    assert_eq!(world.journal.lines(), ["a", "b", "b"]);
}

#[test]
fn a_step_and_a_signal_race() {
    let world = World::default();
    let (test, handle) = world.engine(
        Workflow::function("race", async |ctx: Ctx<u32, World>| {
            let work = ctx.step("work", async || {
                ctx.state().gate.pass().await;
                Ok(1)
            });
            let stop = ctx.wait::<u32>("stop", "stop");
            match ctx.race((work, stop)).await? {
                First::A(n) | First::B(n) => Ok(n),
            }
        })
        .into_workflow(),
    );
    let run = test.start(&handle, 0).now().unwrap();
    test.run_until_idle();
    assert_eq!(state(&run, "race"), TaskState::Running, "the step goes on");
    run.signal("stop", &7).wait().unwrap();
    test.run_until_idle();
    assert_eq!(run.result().unwrap(), 7);
    assert_eq!(trail(&run, "race"), "QUEUED STARTED COMPLETED");
}

#[test]
fn signals_are_heard_in_the_order_in_which_they_came() {
    let world = World::default();
    let (test, handle) = world.engine(
        Workflow::function("inbox", async |ctx: Ctx<u32, World>| {
            let mut seen = Vec::new();
            while seen.len() < 4 {
                seen.push(ctx.wait::<u32>("next", "item").await?);
            }
            Ok(seen)
        })
        .into_workflow(),
    );
    let run = test.start(&handle, 0).now().unwrap();
    for n in 1..=2 {
        run.signal("item", &n).wait().unwrap();
    }
    test.advance(HOUR);
    for n in 3..=4 {
        run.signal("item", &n).wait().unwrap();
    }
    test.run_to_end();
    assert_eq!(run.result().unwrap(), [1, 2, 3, 4]);
}

#[test]
fn a_loop_without_end_goes_on_in_rounds() {
    let world = World::default();
    let (test, handle) = world.engine(
        Workflow::function("rounds", async |ctx: Ctx<u32, World>| {
            let n = noted(&ctx, "count", *ctx.input() + 1).await?;
            let key = ctx.step("key", async || Ok(ctx.idempotency_key())).await?;
            ctx.state().journal.write(key.split_once('/').unwrap().1);
            ctx.sleep("pause", HOUR).await?;
            if n == 3 { Ok(ctx.random("dice")) } else { ctx.continue_with(n) }
        })
        .into_workflow(),
    );
    let run = test.start(&handle, 0).now().unwrap();
    test.run_to_end();
    run.result().unwrap();
    assert_eq!(world.journal.count("count"), 3);
    assert_eq!(world.journal.count("rounds/key"), 2, "before and after the pause");
    assert_eq!(world.journal.count("rounds~1/key"), 2);
    assert_eq!(world.journal.count("rounds~2/key"), 2);
    assert!(trail(&run, "rounds").contains("CONTINUED"), "{}", trail(&run, "rounds"));
}

#[test]
fn what_looks_like_chance_is_the_same_whenever_the_function_runs() {
    let world = World::default();
    let (test, handle) = world.engine(
        Workflow::function("chance", async |ctx: Ctx<u32, World>| {
            let chance = (ctx.random("dice"), ctx.random("dice"), ctx.uuid("id"), ctx.now());
            ctx.state().journal.write(format!("{chance:?}"));
            assert_ne!(chance.0, chance.1);
            ctx.sleep("pause", HOUR).await
        })
        .into_workflow(),
    );
    let run = test.start(&handle, 0).now().unwrap();
    test.run_to_end();
    run.result().unwrap();
    let lines = world.journal.lines();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0], lines[1]);
}

#[test]
fn many_steps_run_side_by_side() {
    let world = World::default();
    let (test, handle) = world.engine(
        Workflow::function("wide", async |ctx: Ctx<u32, World>| {
            let n = *ctx.input();
            let steps = (0..n).map(|ix| ctx.step(("add", ix), async move || Ok(u64::from(ix))));
            let outcomes = join_all(steps).await;
            ctx.sleep("pause", HOUR).await?;
            let mapped = ctx
                .map("double")
                .over(0..n)
                .concurrency(100)
                .run(async |ctx, ix| ctx.step("double", async || Ok(2 * u64::from(ix))).await);
            let mut sum: u64 = mapped.await?.iter().sum();
            for outcome in outcomes {
                sum += outcome?;
            }
            Ok(sum)
        })
        .into_workflow(),
    );
    let run = test.start(&handle, 1_000).now().unwrap();
    test.run_to_end();
    assert_eq!(run.result().unwrap(), 3 * 999 * 500);
}

#[test]
fn a_name_that_two_futures_share_is_refused() {
    let world = World::default();
    let (test, handle) = world.engine(
        Workflow::function("shared", async |ctx: Ctx<u32, World>| {
            let (a, b) = join(noted(&ctx, "x", 1), noted(&ctx, "x", 2)).await;
            Ok(a? + b?)
        })
        .retry(Retry::exponential(3))
        .into_workflow(),
    );
    let run = test.start(&handle, 0).now().unwrap();
    test.run_to_end();
    refused(run.result(), Code::RunFailed, &["\"x\"", "ctx.scope", "side by side"]);
    assert_eq!(run.attempts().unwrap().len(), 1, "it is not tried again");
}

#[test]
fn a_step_has_no_steps_of_its_own() {
    let world = World::default();
    let (test, handle) = world.engine(
        Workflow::function("nested", async |ctx: Ctx<u32, World>| {
            ctx.step("outer", async || noted(&ctx, "inner", 1).await).await
        })
        .into_workflow(),
    );
    let run = test.start(&handle, 0).now().unwrap();
    test.run_to_end();
    refused(run.result(), Code::RunFailed, &["\"inner\"", "\"outer\""]);
}

#[test]
fn a_step_of_a_graph_has_checkpoints() {
    let world = World::default();
    let mut w = Workflow::define::<u32, World>("graph");
    let a = w.step("a").run(async |_| Ok(1_u32));
    let long = w.step("long").after(a).retry(Retry::fixed(1, SECOND)).run(async |ctx, a| {
        let first = noted(&ctx, "first", 1).await?;
        if ctx.attempt() == 1 {
            return Err(StepError::new("half-way"));
        }
        let waited = ctx.wait::<u32>("go", "go").timeout(HOUR).await?;
        assert_eq!(waited, Signalled::TimedOut);
        Ok(a + first + noted(&ctx, "second", 2).await?)
    });
    let (test, handle) = world.engine(w.output(long));
    let run = test.start(&handle, 0).now().unwrap();
    test.run_to_end();
    assert_eq!(run.result().unwrap(), 4);
    assert_eq!(world.journal.lines(), ["first", "second"]);
}

#[test]
fn a_function_without_anything_durable_is_a_step() {
    let (test, handle) = engine_with(
        (),
        Workflow::function("plain", async |ctx: Ctx<u32>| Ok(ctx.input() + 1)).into_workflow(),
    );
    let run = test.start(&handle, 1).now().unwrap();
    test.run_to_end();
    assert_eq!(run.result().unwrap(), 2);
    assert_eq!(trail(&run, "plain"), "QUEUED STARTED COMPLETED");
}

on_every_store! {
    a_function_goes_on_where_it_was_after_each_wait,
    a_wait_of_a_function_times_out,
    a_crash_repeats_nothing_that_is_recorded,
    a_step_of_a_function_is_tried_again_and_its_count_survives_a_suspension,
    a_short_pause_is_waited_for_in_place,
    an_error_is_recorded_and_can_be_matched,
    a_retry_of_the_function_forgets_the_errors_that_ended_it,
    a_step_and_a_signal_race,
    signals_are_heard_in_the_order_in_which_they_came,
    a_loop_without_end_goes_on_in_rounds,
    what_looks_like_chance_is_the_same_whenever_the_function_runs,
    many_steps_run_side_by_side,
    a_name_that_two_futures_share_is_refused,
    a_step_has_no_steps_of_its_own,
    a_step_of_a_graph_has_checkpoints,
    a_function_without_anything_durable_is_a_step,
}
