//! Stopping an engine: it drains, hands back, hands over, and refuses from then on.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::FutureExt;
use stepwell::{
    AttemptState, Code, Engine, RunFilter, RunStatus, StepError, StopReport, TaskState,
    TenantSettings, Workflow,
};

use crate::support::{
    DAY, HOUR, MINUTE, SECOND, World, beside, builder, engine_with, refused, starts_secs, state,
    states, trail,
};

/// A first step that takes as many minutes as the input says, and a second one.
fn slow() -> Workflow<u32, u32, World> {
    let mut w = Workflow::define::<u32, World>("slow");
    let first = w.step("first").run(async |ctx| {
        let _dropped = ctx.state().journal.write_on_drop("first over");
        ctx.state().takes(MINUTE * *ctx.input()).await;
        Ok(ctx.attempt())
    });
    let second = w.step("second").after(first).run(async |ctx, n| {
        ctx.state().journal.write("second");
        Ok(n)
    });
    w.output(second)
}

#[test]
fn a_stop_drains_what_runs_and_claims_nothing_more() {
    // R12
    let world = World::default();
    let (first, handle) = world.engine(slow());
    first.start(&handle, 20).id("s").now().unwrap();
    first.run_until_idle();
    let began = first.now();
    let report = first.stop(30 * MINUTE);
    assert_eq!(report, StopReport { n_drained: 1, ..StopReport::default() });
    assert_eq!(first.now(), began.after(20 * MINUTE), "no longer than the step needs");
    assert_eq!(world.journal.lines(), ["first over"], "the second step was not claimed");
    let second = world.beside(&first, slow());
    let run = second.run_handle("test", "s").unwrap();
    assert_eq!(run.result().unwrap(), 1);
    assert_eq!(trail(&run, "first"), "QUEUED STARTED COMPLETED");
}

#[test]
fn what_is_over_the_grace_period_is_handed_back_uncharged() {
    // R11, R12
    let world = World::default();
    let (first, handle) = world.engine(slow());
    first.start(&handle, 20).id("s").now().unwrap();
    first.run_until_idle();
    let report = first.stop(10 * MINUTE);
    assert_eq!(report, StopReport { n_handed_back: 1, ..StopReport::default() });
    assert_eq!(world.journal.lines(), ["first over"], "its future was dropped");
    let second = world.beside(&first, slow());
    let run = second.run_handle("test", "s").unwrap();
    second.advance(HOUR);
    assert_eq!(run.result().unwrap(), 2, "without a policy of retries");
    assert_eq!(trail(&run, "first"), "QUEUED STARTED RELEASED STARTED COMPLETED");
    assert_eq!(starts_secs(&run, "first"), [0, 600], "at once, no lease to wait for");
    assert_eq!(run.attempts().unwrap()[0].1.state, AttemptState::Released);
    let task = &run.tasks().unwrap()[0];
    assert_eq!((task.attempt, task.failures, task.losses), (2, 0, 0));
}

#[test]
fn a_step_that_gives_up_when_told_to_stop_is_not_charged_either() {
    // R11, R12
    let workflow = || {
        let mut w = Workflow::define::<(), World>("obedient");
        w.step("obedient").run(async |ctx| {
            if ctx.attempt() == 1 {
                ctx.cancelled().await;
                ctx.heartbeat()?;
            }
            Ok::<_, StepError>(())
        });
        w.no_output()
    };
    let world = World::default();
    let (first, handle) = world.engine(workflow());
    first.start(&handle, ()).id("o").now().unwrap();
    first.run_until_idle();
    assert_eq!(first.stop(MINUTE).n_handed_back, 1);
    let second = world.beside(&first, workflow());
    let run = second.run_handle("test", "o").unwrap();
    run.result().unwrap();
    assert_eq!(trail(&run, "obedient"), "QUEUED STARTED RELEASED STARTED COMPLETED");
}

#[test]
fn a_step_that_finishes_when_told_to_stop_is_completed() {
    // R12
    let workflow = || {
        let mut w = Workflow::define::<(), World>("quick");
        let step = w.step("quick").run(async |ctx| {
            ctx.cancelled().await;
            Ok("saved".to_owned())
        });
        w.output(step)
    };
    let world = World::default();
    let (first, handle) = world.engine(workflow());
    first.start(&handle, ()).id("q").now().unwrap();
    first.run_until_idle();
    first.stop(MINUTE);
    let second = world.beside(&first, workflow());
    let run = second.run_handle("test", "q").unwrap();
    assert_eq!(run.result().unwrap(), "saved");
    assert_eq!(trail(&run, "quick"), "QUEUED STARTED COMPLETED");
}

#[test]
fn heartbeats_go_on_while_an_engine_drains() {
    // R12
    let world = World::default();
    let (first, handle) = world.engine(slow());
    first.start(&handle, 5 * 60).id("s").now().unwrap();
    first.run_until_idle();
    // It would reap the other one after an hour of silence.
    let second = world.beside(&first, slow());
    assert_eq!(first.stop(6 * HOUR).n_drained, 1);
    let run = second.run_handle("test", "s").unwrap();
    assert_eq!(run.result().unwrap(), 1);
    assert_eq!(trail(&run, "first"), "QUEUED STARTED COMPLETED");
}

#[test]
fn a_stopped_leader_hands_over_at_once() {
    // R12, R13
    let mut w = Workflow::define::<(), World>("nap");
    w.sleep("nap", 25 * MINUTE).from_start();
    let world = World::default();
    let (first, handle) = world.engine(w.no_output());
    let second = beside(&first).start().unwrap();
    first.start(&handle, ()).id("n").now().unwrap();
    first.stop(SECOND);
    let run = second.run_handle("test", "n").unwrap();
    // Standing by, it looks every third of the leader's term, which is an hour here.
    second.advance(25 * MINUTE);
    assert_eq!(run.status().unwrap(), RunStatus::Completed);
}

#[test]
fn whoever_waits_for_a_run_that_ends_while_draining_gets_its_result() {
    // R12, R22
    let world = World::default();
    let mut w = Workflow::define::<(), World>("gated");
    let step = w.step("gated").run(async |ctx| {
        ctx.state().gate.pass().await;
        Ok(7)
    });
    let (test, handle) = world.engine(w.output(step));
    let run = test.start(&handle, ()).now().unwrap();
    test.run_until_idle();
    let (engine, run, gate) = (test.as_async().clone(), run.as_async().clone(), world.gate.clone());
    let (result, report, ()) = test.drive(async move {
        let open = async { gate.let_pass(1) };
        tokio::join!(run.result(), engine.stop(MINUTE), open)
    });
    assert_eq!(result.unwrap(), 7);
    assert_eq!(report.n_drained, 1);
}

#[test]
fn whoever_waits_for_a_run_that_goes_on_elsewhere_is_told_of_the_stop() {
    // R12, R22
    let world = World::default();
    let (test, handle) = world.engine(slow());
    let run = test.start(&handle, 20).id("s").now().unwrap();
    let (engine, run) = (test.as_async().clone(), run.as_async().clone());
    let (result, _) =
        test.drive(async move { tokio::join!(run.result(), engine.stop(Duration::ZERO)) });
    refused(result, Code::Stopped, &["stopped"]);
    let second = world.beside(&test, slow());
    let run = second.run_handle("test", "s").unwrap();
    assert_eq!(run.status().unwrap(), RunStatus::Running, "the run itself is not touched");
}

#[test]
fn a_stopped_engine_refuses_every_call() {
    // R12
    let (test, handle) = World::default().engine(slow());
    let run = test.start(&handle, 0).id("before").now().unwrap();
    run.result().unwrap();
    test.stop(SECOND);
    let stopped =
        |answer: Result<(), stepwell::Error>| refused(answer, Code::Stopped, &["stopped"]);
    stopped(test.start(&handle, 1).now().map(|_| ()));
    stopped(test.run(&handle, 1).wait().map(|_| ()));
    stopped(test.start_by_name("slow", &1).now().map(|_| ()));
    stopped(test.run_handle("test", "before").map(|_| ()));
    stopped(test.run_handle_of(&handle, "test", "before").map(|_| ()));
    stopped(test.list(RunFilter::default(), None, 10).map(|_| ()));
    stopped(test.tenant("test").map(|_| ()));
    stopped(test.set_tenant("test", TenantSettings::default()));
    stopped(run.result().map(|_| ()));
    stopped(run.ended().map(|_| ()));
    stopped(run.status().map(|_| ()));
    stopped(run.outcome().map(|_| ()));
    stopped(run.outputs().map(|_| ()));
    stopped(run.tasks().map(|_| ()));
    stopped(run.events().map(|_| ()));
    stopped(run.attempts().map(|_| ()));
    stopped(run.cancel().wait().map(|_| ()));
    let many = test.start_many(&handle, [stepwell::NewRun::new(1)]).map(|mut runs| runs.remove(0));
    stopped(many.and_then(|run| run.map(|_| ())));
    assert_eq!(test.stop(SECOND), StopReport::default(), "stopping twice is harmless");
    let beside = beside(&test).start().unwrap();
    let page = beside.list(RunFilter::default(), None, 10).unwrap();
    assert_eq!(page.runs.len(), 1, "nothing was stored by the refused calls");
}

#[test]
fn a_stop_that_is_dropped_goes_on_and_the_next_one_waits_for_its_end() {
    // R12
    let world = World::default();
    let (test, handle) = world.engine(slow());
    test.start(&handle, 20).id("s").now().unwrap();
    test.run_until_idle();
    let (began, engine) = (test.now(), test.as_async().clone());
    let dropped = test.drive(async move { engine.stop(30 * MINUTE).now_or_never() });
    assert_eq!(dropped, None, "the step still runs");
    let report = StopReport { n_drained: 1, ..StopReport::default() };
    assert_eq!(test.stop(30 * MINUTE), report);
    assert_eq!(test.now(), began.after(20 * MINUTE), "it waits for the step");
    assert_eq!(world.journal.lines(), ["first over"], "the second step was not claimed");
    assert_eq!(test.stop(SECOND), report, "whoever asks later is told the same");
}

#[test]
fn stops_at_the_same_time_wait_for_the_same_end() {
    // R12
    let world = World::default();
    let mut w = Workflow::define::<(), World>("gated");
    w.step("gated").run(async |ctx| {
        ctx.state().gate.pass().await;
        Ok(())
    });
    let (test, handle) = world.engine(w.no_output());
    test.start(&handle, ()).now().unwrap();
    test.run_until_idle();
    let (engine, gate) = (test.as_async().clone(), world.gate.clone());
    let (first, second, ()) = test.drive(async move {
        let open = async { gate.let_pass(1) };
        tokio::join!(engine.stop(MINUTE), engine.stop(MINUTE), open)
    });
    assert_eq!([first, second], [StopReport { n_drained: 1, ..StopReport::default() }; 2]);
}

#[test]
fn of_several_graces_the_one_that_ends_first_counts() {
    // R12
    let world = World::default();
    let (test, handle) = world.engine(slow());
    test.start(&handle, 40).id("s").now().unwrap();
    test.run_until_idle();
    let (began, engine) = (test.now(), test.as_async().clone());
    test.drive(async move { engine.stop(30 * MINUTE).now_or_never() });
    assert_eq!(test.stop(10 * MINUTE).n_handed_back, 1);
    assert_eq!(test.now(), began.after(10 * MINUTE));
}

#[test]
fn an_engine_without_handles_keeps_the_leases_of_its_steps_to_their_end() {
    // R12, S10
    let world = World::default();
    let (first, handle) = world.engine(slow());
    first.start(&handle, 5 * 60).id("s").now().unwrap();
    first.run_until_idle();
    let second = world.beside(&first, slow());
    drop(first);
    // It would reap the other one after an hour of silence.
    second.advance(6 * HOUR);
    let run = second.run_handle("test", "s").unwrap();
    assert_eq!(trail(&run, "first"), "QUEUED STARTED COMPLETED");
    assert_eq!(run.result().unwrap(), 1, "another engine goes on");
}

#[test]
fn calls_are_answered_while_an_engine_drains() {
    // R12
    let world = World::default();
    let (test, handle) = world.engine(slow());
    let run = test.start(&handle, 20).id("before").now().unwrap();
    test.run_until_idle();
    let engine = test.as_async().clone();
    test.drive(async move { engine.stop(30 * MINUTE).now_or_never() });
    let later = test.start(&handle, 1).id("later").now().unwrap();
    test.start_by_name("slow", &1).id("by-name").now().unwrap();
    assert_eq!(run.status().unwrap(), RunStatus::Running);
    assert_eq!(states(&later), "first QUEUED, second PENDING", "nothing more is claimed");
    assert_eq!(test.list(RunFilter::default(), None, 10).unwrap().runs.len(), 3);
    test.set_tenant("test", TenantSettings::default()).unwrap();
    test.signal("any", &1).to("test", "later").wait().unwrap();
    later.cancel().wait().unwrap();
    assert_eq!(later.status().unwrap(), RunStatus::Cancelled);
    assert_eq!(test.stop(SECOND).n_handed_back, 1);
    refused(later.status(), Code::Stopped, &[]);
}

#[test]
fn a_step_that_calls_its_engine_while_it_drains_completes() {
    // R11, R12
    let workflow = || {
        let mut w = Workflow::define::<(), (World, Arc<OnceLock<Engine>>)>("caller");
        let started = w.step("calls").run(async |ctx| {
            let (world, engine) = ctx.state();
            world.gate.pass().await;
            let engine = engine.get().expect("the engine was started");
            let child = engine.start_by_name("caller", &()).tenant("test").id("child").await?;
            let n_tasks = child.tasks().await?.len();
            Ok(n_tasks + engine.list(&RunFilter::default(), None, 10).await?.runs.len())
        });
        w.output(started)
    };
    let state = (World::default(), Arc::default());
    let (test, handle) = engine_with(state.clone(), workflow());
    let (world, engine) = state;
    engine.set(test.as_async().clone()).ok().expect("it is set once");
    let run = test.start(&handle, ()).id("parent").now().unwrap();
    test.run_until_idle();
    let engine = test.as_async().clone();
    test.drive(async move { engine.stop(MINUTE).now_or_never() });
    world.gate.let_pass(1);
    test.run_until_idle();
    let beside = beside(&test).start().unwrap();
    let run = beside.run_handle("test", run.id()).unwrap();
    assert_eq!(trail(&run, "calls"), "QUEUED STARTED COMPLETED");
    assert_eq!(run.result().unwrap(), 3);
    assert_eq!(test.stop(MINUTE).n_drained, 1);
}

#[test]
fn a_stop_loses_neither_waiting_retries_nor_sleeps_nor_queued_tasks() {
    // R12
    let workflow = || {
        let mut w = Workflow::define::<(), World>("mixed");
        w.step("busy").run(async |ctx| {
            ctx.state().gate.pass().await;
            Ok(())
        });
        w.step("queued").run(async |_| Ok(()));
        w.sleep("nap", DAY).from_start();
        w.no_output()
    };
    let world = World::default();
    let builder = builder().configure(|config| config.slots = 1);
    let mut builder = builder.state(world.clone());
    let handle = builder.workflow(workflow());
    let first = builder.start().unwrap();
    let run = first.start(&handle, ()).id("m").now().unwrap();
    first.run_until_idle();
    assert_eq!(states(&run), "busy RUNNING, queued QUEUED, nap SLEEPING");
    first.stop(SECOND);
    world.gate.let_pass(1);
    let second = world.beside(&first, workflow());
    second.run_to_end();
    let run = second.run_handle("test", "m").unwrap();
    assert_eq!(state(&run, "nap"), TaskState::Completed);
    assert_eq!(run.status().unwrap(), RunStatus::Completed);
}

on_every_store![
    a_stop_drains_what_runs_and_claims_nothing_more,
    what_is_over_the_grace_period_is_handed_back_uncharged,
    a_step_that_gives_up_when_told_to_stop_is_not_charged_either,
    a_step_that_finishes_when_told_to_stop_is_completed,
    heartbeats_go_on_while_an_engine_drains,
    a_stopped_leader_hands_over_at_once,
    whoever_waits_for_a_run_that_ends_while_draining_gets_its_result,
    whoever_waits_for_a_run_that_goes_on_elsewhere_is_told_of_the_stop,
    a_stopped_engine_refuses_every_call,
    a_stop_that_is_dropped_goes_on_and_the_next_one_waits_for_its_end,
    stops_at_the_same_time_wait_for_the_same_end,
    of_several_graces_the_one_that_ends_first_counts,
    an_engine_without_handles_keeps_the_leases_of_its_steps_to_their_end,
    calls_are_answered_while_an_engine_drains,
    a_step_that_calls_its_engine_while_it_drains_completes,
    a_stop_loses_neither_waiting_retries_nor_sleeps_nor_queued_tasks,
];
