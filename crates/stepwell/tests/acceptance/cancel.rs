//! Cancelling a run, wherever its tasks stand.

use stepwell::testing::TestEngine;
use stepwell::{
    AttemptState, CancelAnswer, Code, EventKind, Retry, RunStatus, StepError, Workflow,
};

use crate::support::{
    DAY, SECOND, World, beside, builder, dump, engine_with, log, refused, states, trail,
};

/// With one slot, its tasks stand in every state a run's tasks can be cancelled in.
fn everywhere() -> Workflow<(), (), World> {
    let mut w = Workflow::define::<(), World>("everywhere");
    w.step("retrying").retry(Retry::fixed(1, DAY)).run(async |ctx| {
        ctx.state().journal.write("retrying");
        Err::<(), _>(StepError::new("later"))
    });
    w.step("running").run(async |ctx| {
        let _told = ctx.state().journal.write_on_drop("running dropped");
        std::future::pending::<()>().await;
        Ok(())
    });
    w.step("queued").run(async |ctx| {
        ctx.state().journal.write("queued");
        Ok(())
    });
    let nap = w.sleep("sleeping", DAY).from_start();
    w.step("pending").after(nap).run(async |ctx, ()| {
        ctx.state().journal.write("pending");
        Ok(())
    });
    w.no_output()
}

fn one_slot(world: &World) -> (TestEngine, stepwell::WorkflowRef<(), ()>) {
    let builder = builder().configure(|config| config.slots = 1);
    let mut builder = builder.state(world.clone());
    let handle = builder.workflow(everywhere());
    (builder.start().unwrap(), handle)
}

#[test]
fn a_cancel_reaches_tasks_in_every_state_and_nothing_starts_afterwards() {
    // L12
    let world = World::default();
    let (test, everywhere) = one_slot(&world);
    let run = test.start(&everywhere, ()).now().unwrap();
    test.run_until_idle();
    assert_eq!(
        states(&run),
        "retrying QUEUED, running RUNNING, queued QUEUED, sleeping SLEEPING, pending PENDING"
    );
    assert_eq!(run.cancel().wait().unwrap(), CancelAnswer::Cancelled);
    refused(run.result(), Code::RunCancelled, &[run.id()]);
    assert_eq!(run.status().unwrap(), RunStatus::Cancelled);
    assert_eq!(
        states(&run),
        "retrying CANCELLED, running CANCELLED, queued CANCELLED, sleeping CANCELLED, \
         pending CANCELLED"
    );
    test.run_until_idle();
    assert_eq!(world.journal.lines(), ["retrying", "running dropped"]);
    assert_eq!(dump(&test).timers.len(), 0, "timers are gone");
    test.advance(2 * DAY);
    assert_eq!(world.journal.lines().len(), 2, "nothing started afterwards");
    assert_eq!(test.as_async().n_running(), 0, "the slot is free");
}

#[test]
fn a_cancel_is_in_the_log_for_the_run_and_each_task() {
    // R17, L12
    let world = World::default();
    let (test, everywhere) = one_slot(&world);
    let run = test.start(&everywhere, ()).now().unwrap();
    test.advance(SECOND);
    run.cancel().wait().unwrap();
    let log = log(&run);
    assert_eq!(
        log[5..],
        [
            "6 +0s running#1 QUEUED",
            "7 +0s queued QUEUED",
            "8 +1s RUN_CANCELLED",
            "9 +1s retrying CANCELLED",
            "10 +0s running#1 STARTED",
            "11 +1s running#1 CANCELLED",
            "12 +1s queued CANCELLED",
            "13 +1s sleeping CANCELLED",
            "14 +1s pending CANCELLED",
            "15 +1s RUN_ENDED CANCELLED",
        ]
    );
}

#[test]
fn a_running_step_learns_of_it_and_its_late_output_is_refused() {
    // L3, L12
    let mut w = Workflow::define::<(), World>("told");
    let step = w.step("told").run(async |ctx| {
        assert!(!ctx.is_cancelled() && ctx.heartbeat().is_ok());
        ctx.cancelled().await;
        let beat = ctx.heartbeat().unwrap_err();
        ctx.state().journal.write(format!("{} {}", ctx.is_cancelled(), beat.message()));
        Ok("late".to_owned())
    });
    let world = World::default();
    let (test, told) = world.engine(w.output(step));
    let run = test.start(&told, ()).now().unwrap();
    test.run_until_idle();
    assert_eq!(run.cancel().wait().unwrap(), CancelAnswer::Cancelled);
    test.run_until_idle();
    assert_eq!(world.journal.lines(), ["true the step was told to stop"]);
    refused(run.result(), Code::RunCancelled, &[]);
    refused(run.output(&step), Code::StepSkipped, &["\"told\""]);
    assert_eq!(trail(&run, "told"), "QUEUED STARTED CANCELLED");
    assert_eq!(run.attempts().unwrap()[0].1.state, AttemptState::Cancelled);
}

#[test]
fn a_client_elsewhere_can_cancel_what_a_worker_executes() {
    // R29, L12
    let world = World::default();
    let (test, everywhere) = one_slot(&world);
    test.start(&everywhere, ()).id("far").now().unwrap();
    test.run_until_idle();
    let client = beside(&test).configure(|config| config.slots = 0).start().unwrap();
    let run = client.run_handle("test", "far").unwrap();
    assert_eq!(run.cancel().wait().unwrap(), CancelAnswer::Cancelled);
    client.run_until_idle();
    assert_eq!(world.journal.count("running dropped"), 1);
}

#[test]
fn a_cancel_is_asked_for_by_the_engine_that_asks_unless_it_says_by_whom() {
    // L12
    let (test, everywhere) = one_slot(&World::default());
    let client = beside(&test).configure(|config| config.slots = 0).start().unwrap();
    let asked_by = |name: Option<&str>| {
        let run = test.start(&everywhere, ()).now().unwrap();
        let cancel = client.run_handle("test", run.id()).unwrap().cancel();
        let cancel = if let Some(name) = name { cancel.by(name) } else { cancel };
        assert_eq!(cancel.wait().unwrap(), CancelAnswer::Cancelled);
        let events = run.events().unwrap().into_iter();
        let mut by = events.filter_map(|event| match event.kind {
            EventKind::RunCancelled { by, reason: None, forced: false } => Some(by),
            _ => None,
        });
        by.next().unwrap()
    };
    assert_eq!(asked_by(None), client.as_async().worker_id());
    assert_eq!(asked_by(Some("ada@desk")), "ada@desk");
}

#[test]
fn a_cancel_that_comes_too_late_says_how_the_run_ended() {
    // L12
    let mut w = Workflow::define::<bool, ()>("ended");
    w.step("a").run(async |ctx| if *ctx.input() { Ok(()) } else { Err(StepError::new("no")) });
    let (test, ended) = engine_with((), w.no_output());
    let well = test.start(&ended, true).now().unwrap();
    well.result().unwrap();
    assert_eq!(well.cancel().wait().unwrap(), CancelAnswer::AlreadyEnded(RunStatus::Completed));
    well.result().unwrap();
    let failed = test.start(&ended, false).now().unwrap();
    test.run_until_idle();
    assert_eq!(failed.cancel().wait().unwrap(), CancelAnswer::AlreadyEnded(RunStatus::Failed));
    let (test, everywhere) = one_slot(&World::default());
    let twice = test.start(&everywhere, ()).now().unwrap();
    assert_eq!(twice.cancel().wait().unwrap(), CancelAnswer::Cancelled);
    assert_eq!(twice.cancel().wait().unwrap(), CancelAnswer::AlreadyEnded(RunStatus::Cancelled));
}

#[test]
fn a_run_whose_handler_is_at_work_cannot_be_cancelled() {
    // R20, L12
    let mut w = Workflow::define::<(), World>("ending");
    w.step("fail").run(async |_| Err::<(), _>(StepError::new("no")));
    w.on_failure(async |ctx, _| {
        ctx.state().gate.pass().await;
        ctx.state().journal.write("handler done");
        Ok(())
    });
    let world = World::default();
    let (test, ending) = world.engine(w.no_output());
    let run = test.start(&ending, ()).now().unwrap();
    test.run_until_idle();
    assert_eq!(run.status().unwrap(), RunStatus::Ending);
    assert_eq!(run.cancel().wait().unwrap(), CancelAnswer::AlreadyEnding(RunStatus::Failed));
    world.gate.let_pass(1);
    refused(run.result(), Code::RunFailed, &[]);
    assert_eq!(world.journal.lines(), ["handler done"]);
}

#[test]
fn a_run_in_which_a_step_failed_ends_failed_even_if_it_is_cancelled_later() {
    // R16, R20
    let mut w = Workflow::define::<(), World>("mixed");
    w.step("fail").run(async |_| Err::<(), _>(StepError::new("no")));
    w.sleep("nap", DAY).from_start();
    w.on_failure(async |ctx, _| {
        ctx.state().journal.write("handler");
        Ok(())
    });
    let world = World::default();
    let (test, mixed) = world.engine(w.no_output());
    let run = test.start(&mixed, ()).now().unwrap();
    test.run_until_idle();
    assert_eq!(run.cancel().wait().unwrap(), CancelAnswer::Cancelled);
    refused(run.result(), Code::RunFailed, &["\"fail\""]);
    assert_eq!(states(&run), "fail FAILED, nap CANCELLED, on_failure COMPLETED");
    assert_eq!(world.journal.lines(), ["handler"]);
}

on_every_store![
    a_cancel_reaches_tasks_in_every_state_and_nothing_starts_afterwards,
    a_cancel_is_in_the_log_for_the_run_and_each_task,
    a_running_step_learns_of_it_and_its_late_output_is_refused,
    a_client_elsewhere_can_cancel_what_a_worker_executes,
    a_cancel_is_asked_for_by_the_engine_that_asks_unless_it_says_by_whom,
    a_cancel_that_comes_too_late_says_how_the_run_ended,
    a_run_whose_handler_is_at_work_cannot_be_cancelled,
    a_run_in_which_a_step_failed_ends_failed_even_if_it_is_cancelled_later,
];
