//! Deadlines of runs, and cancelling by force.

use std::time::Duration;

use stepwell::{CancelAnswer, Code, FailureKind, RunFilter, RunStatus, StepError, Workflow};

use crate::support::{DAY, HOUR, MINUTE, World, engine_with, refused, states, trail};

/// Sleeps a day, which is too long for most deadlines, and tells what it does.
fn slow(deadline: Option<Duration>) -> Workflow<(), (), World> {
    let mut w = Workflow::define::<(), World>("slow");
    if let Some(deadline) = deadline {
        w.deadline(deadline);
    }
    let nap = w.sleep("nap", DAY).from_start();
    w.step("after").after(nap).run(async |ctx, ()| {
        ctx.state().journal.write("after");
        Ok(())
    });
    w.on_failure(async |ctx, failure| {
        ctx.state().journal.write(format!("handled {:?}", failure.failure.kind));
        Ok(())
    });
    w.no_output()
}

#[test]
fn a_run_that_passes_its_deadline_fails_and_its_handler_is_told() {
    let world = World::default();
    let (test, slow) = world.engine(slow(None));
    let run = test.start(&slow, ()).deadline(6 * HOUR).now().unwrap();
    test.advance(6 * HOUR - Duration::from_micros(1));
    assert_eq!(run.status().unwrap(), RunStatus::Running);
    test.advance(Duration::from_micros(1));
    refused(run.result(), Code::RunFailed, &["deadline"]);
    assert_eq!(world.journal.lines(), ["handled Deadline"]);
    assert_eq!(states(&run), "nap CANCELLED, after CANCELLED, on_failure COMPLETED");
    let outcome = run.outcome().unwrap();
    assert_eq!(outcome.failure.unwrap().failure.kind, FailureKind::Deadline);
    let events = run.events().unwrap();
    assert!(events.iter().any(|event| event.kind.name() == "DEADLINE_PASSED"));
    test.advance(2 * DAY);
    assert_eq!(world.journal.lines().len(), 1);
}

#[test]
fn a_workflow_gives_its_runs_a_deadline_and_a_start_another() {
    let world = World::default();
    let (test, slow) = world.engine(slow(Some(HOUR)));
    let usual = test.start(&slow, ()).now().unwrap();
    let longer = test.start(&slow, ()).deadline(2 * DAY).now().unwrap();
    let listed = test.list(RunFilter::default(), None, 10).unwrap().runs;
    let spans = listed.iter().map(|run| run.deadline.map(|at| at.since(run.started_at)));
    assert_eq!(spans.collect::<Vec<_>>(), [Some(2 * DAY), Some(HOUR)], "newest first");
    test.advance(HOUR);
    assert_eq!(usual.status().unwrap(), RunStatus::Failed);
    test.run_to_end();
    assert_eq!(longer.status().unwrap(), RunStatus::Completed);
    assert_eq!(world.journal.lines(), ["handled Deadline", "after"]);
}

#[test]
fn a_deadline_is_no_part_of_what_a_start_is_recognised_by() {
    let world = World::default();
    let (test, slow) = world.engine(slow(None));
    let first = test.start(&slow, ()).id("one").deadline(HOUR).now().unwrap();
    let again = test.start(&slow, ()).id("one").deadline(9 * DAY).now().unwrap();
    assert_eq!(first.key(), again.key());
    test.advance(HOUR);
    assert_eq!(again.status().unwrap(), RunStatus::Failed, "the first one holds");
}

#[test]
fn a_deadline_that_makes_no_sense_is_refused() {
    let world = World::default();
    let (test, slow) = world.engine(slow(None));
    for span in [Duration::ZERO, Duration::MAX] {
        refused(test.start(&slow, ()).deadline(span).now(), Code::BadArgument, &["deadline"]);
        let mut w = Workflow::define::<(), ()>("odd");
        w.deadline(span);
        w.step("a").run(async |_| Ok(()));
        refused(w.no_output().check(), Code::BadPolicy, &["deadline"]);
    }
}

#[test]
fn a_deadline_means_nothing_once_the_end_is_decided() {
    let world = World::default();
    let mut w = Workflow::define::<(), World>("ending");
    w.step("fails").run(async |_| Err::<(), _>(StepError::permanent("broken")));
    w.on_failure(async |ctx, _| {
        ctx.state().gate.pass().await;
        Ok(())
    });
    let (test, ending) = world.engine(w.no_output());
    let run = test.start(&ending, ()).deadline(HOUR).now().unwrap();
    test.run_until_idle();
    assert_eq!(run.status().unwrap(), RunStatus::Ending);
    test.advance(DAY);
    assert_eq!(run.status().unwrap(), RunStatus::Ending);
    world.gate.let_pass(1);
    test.run_until_idle();
    refused(run.result(), Code::RunFailed, &["broken"]);
}

#[test]
fn a_handler_that_hangs_is_ended_by_its_time_out() {
    let world = World::default();
    let mut w = Workflow::define::<(), World>("hanging");
    w.step("fails").run(async |_| Err::<(), _>(StepError::permanent("broken")));
    w.on_failure(async |_, _| std::future::pending().await);
    w.on_failure_timeout(MINUTE);
    let (test, hanging) = world.engine(w.no_output());
    let run = test.start(&hanging, ()).now().unwrap();
    test.advance(MINUTE);
    refused(run.result(), Code::RunFailed, &["broken"]);
    assert_eq!(trail(&run, "on_failure"), "QUEUED STARTED FAILED");
}

#[test]
fn a_run_whose_handler_hangs_can_be_ended_by_force() {
    let world = World::default();
    let mut w = Workflow::define::<(), World>("hanging");
    w.step("fails").run(async |_| Err::<(), _>(StepError::permanent("broken")));
    w.on_failure(async |ctx, _| {
        let _told = ctx.state().journal.write_on_drop("dropped");
        std::future::pending().await
    });
    let (test, hanging) = world.engine(w.no_output());
    let run = test.start(&hanging, ()).now().unwrap();
    test.run_until_idle();
    let ending = CancelAnswer::AlreadyEnding(RunStatus::Failed);
    assert_eq!(run.cancel().wait().unwrap(), ending);
    let forced = CancelAnswer::ForcedToEnd(RunStatus::Failed);
    assert_eq!(run.cancel().force().reason("it hangs").wait().unwrap(), forced);
    test.run_until_idle();
    assert_eq!(run.status().unwrap(), RunStatus::Failed);
    assert_eq!(states(&run), "fails FAILED, on_failure CANCELLED");
    assert_eq!(world.journal.lines(), ["dropped"], "it is told to stop");
}

#[test]
fn force_ends_a_run_without_its_handler() {
    let world = World::default();
    let mut w = Workflow::define::<(), World>("forced");
    w.step("fails").run(async |_| Err::<(), _>(StepError::permanent("broken")));
    w.sleep("nap", DAY).from_start();
    w.on_failure(async |ctx, _| {
        ctx.state().journal.write("handled");
        Ok(())
    });
    let (test, forced) = world.engine(w.no_output());
    let run = test.start(&forced, ()).now().unwrap();
    test.run_until_idle();
    assert_eq!(run.cancel().force().wait().unwrap(), CancelAnswer::Cancelled);
    test.run_until_idle();
    assert_eq!(run.status().unwrap(), RunStatus::Failed, "a task had failed before");
    assert!(world.journal.lines().is_empty());
}

#[test]
fn a_reason_that_makes_no_sense_is_refused_and_nothing_changes() {
    let (test, workflow) = engine_with((), {
        let mut w = Workflow::define::<(), ()>("strict");
        w.sleep("nap", DAY).from_start();
        w.no_output()
    });
    let run = test.start(&workflow, ()).now().unwrap();
    let long = run.cancel().reason("x".repeat(1_025)).wait();
    refused(long, Code::BadArgument, &["reason", "1,024"]);
    refused(run.cancel().by("").wait(), Code::BadArgument, &["asker"]);
    assert_eq!(run.status().unwrap(), RunStatus::Running);
}

on_every_store! {
    a_run_that_passes_its_deadline_fails_and_its_handler_is_told,
    a_workflow_gives_its_runs_a_deadline_and_a_start_another,
    a_deadline_is_no_part_of_what_a_start_is_recognised_by,
    a_deadline_that_makes_no_sense_is_refused,
    a_deadline_means_nothing_once_the_end_is_decided,
    a_handler_that_hangs_is_ended_by_its_time_out,
    a_run_whose_handler_hangs_can_be_ended_by_force,
    force_ends_a_run_without_its_handler,
    a_reason_that_makes_no_sense_is_refused_and_nothing_changes,
}
