//! Crashes of engines: what was under way goes on elsewhere, and poison is found.

use stepwell::testing::{TestEngine, TestEngineBuilder};
use stepwell::{Code, FailureKind, RunStatus, TaskState, Workflow, WorkflowRef};

use crate::support::{HOUR, World, beside, builder, refused, state, states, trail};

/// A step that waits at the gate between two that do not.
fn gated() -> Workflow<u32, u32, World> {
    let mut w = Workflow::define::<u32, World>("gated");
    let a = w.step("a").run(async |ctx| {
        ctx.state().journal.write("a");
        Ok(*ctx.input())
    });
    let b = w.step("b").after(a).run(async |ctx, n| {
        ctx.state().journal.write(format!("b {}", ctx.attempt()));
        ctx.state().gate.pass().await;
        Ok(n + 1)
    });
    let c = w.step("c").after(b).run(async |_, n| Ok(n + 1));
    w.output(c)
}

#[test]
fn a_step_of_a_crashed_engine_is_finished_by_another_after_the_lease() {
    // R5, R14, L4
    let world = World::default();
    let (first, handle) = world.engine(gated());
    let second = world.beside(&first, gated());
    first.start(&handle, 5).id("g").now().unwrap();
    let crashed_at = first.now();
    // Either of the two may have claimed it.
    let run = second.run_handle("test", "g").unwrap();
    first.run_until_idle();
    let (dead, alive) =
        if first.as_async().n_running() == 1 { (&first, &second) } else { (&second, &first) };
    dead.crash();
    let run = alive.run_handle("test", run.id()).unwrap();
    alive.advance_to(crashed_at.after(HOUR));
    assert_eq!(states(&run), "a COMPLETED, b RUNNING, c PENDING", "the lease still holds");
    alive.advance(HOUR);
    assert_eq!(world.journal.lines(), ["a", "b 1", "b 2"]);
    world.gate.let_pass(1);
    assert_eq!(run.result().unwrap(), 7);
    assert_eq!(trail(&run, "b"), "QUEUED STARTED LEASE_LOST STARTED COMPLETED");
    let task = &run.tasks().unwrap()[1];
    assert_eq!((task.attempt, task.failures, task.losses), (2, 0, 1), "no retry was charged");
}

#[test]
fn queued_work_goes_on_elsewhere_at_once() {
    // R14
    let world = World::default();
    let builder = builder().configure(|config| config.slots = 1);
    let mut builder = builder.state(world.clone());
    let handle = builder.workflow(gated());
    let first = builder.start().unwrap();
    first.start(&handle, 1).id("held").now().unwrap();
    first.start(&handle, 2).id("waiting").now().unwrap();
    first.run_until_idle();
    first.crash();
    let second = world.beside(&first, gated());
    world.gate.let_pass(1);
    let waiting = second.run_handle("test", "waiting").unwrap();
    assert_eq!(waiting.result().unwrap(), 4, "it was never claimed, so no lease holds it");
    let held = second.run_handle("test", "held").unwrap();
    assert_eq!(held.status().unwrap(), RunStatus::Running);
}

/// A step that takes its engine down each time it starts: it never returns, and the test lets
/// the engine crash.
fn poison() -> Workflow<(), (), World> {
    let mut w = Workflow::define::<(), World>("poison");
    w.step("poison").run(async |ctx| {
        ctx.state().journal.write("poison");
        std::future::pending::<()>().await;
        Ok(())
    });
    w.no_output()
}

/// An engine that knows the poison and an innocent bystander.
fn start(
    world: &World,
    builder: TestEngineBuilder<()>,
) -> (TestEngine, WorkflowRef<(), ()>, WorkflowRef<u32, u32>) {
    let mut builder = builder.state(world.clone());
    let (poison, gated) = (builder.workflow(poison()), builder.workflow(gated()));
    (builder.start().unwrap(), poison, gated)
}

#[test]
fn poison_ends_failed_at_the_crash_limit_and_what_died_beside_it_completes() {
    // R14
    let world = World::default();
    let (mut test, poison, gated) = start(&world, builder());
    test.start(&poison, ()).id("p").now().unwrap();
    for n in 0..8 {
        test.start(&gated, n).id(format!("bystander-{n}")).now().unwrap();
    }
    test.run_until_idle();
    assert_eq!(test.as_async().n_running(), 9, "all are held by the engine that dies");
    let mut n_crashes = 0_u32;
    while world.journal.count("poison") > n_crashes as usize && n_crashes < 10 {
        n_crashes += 1;
        test.crash();
        test = start(&world, beside(&test)).0;
        // From now on the poison is executed alone, once the others are out of its way.
        world.gate.let_pass(if n_crashes == 2 { 10 } else { 0 });
        // One that has not lost a worker yet waits beside the poison each time.
        test.start(&gated, 7 + n_crashes).id(format!("bystander-{}", 7 + n_crashes)).now().unwrap();
        test.advance(3 * HOUR);
    }
    assert_eq!(n_crashes, 3, "the crash limit");
    world.gate.let_pass(1);
    for n in 0..11 {
        let run = test.run_handle("test", &format!("bystander-{n}")).unwrap();
        assert_eq!(run.result().unwrap(), n + 2);
    }
    let run = test.run_handle("test", "p").unwrap();
    refused(run.result(), Code::RunFailed, &["\"poison\"", "worker died 3 times"]);
    let failure = run.outcome().unwrap().failure.unwrap().failure;
    assert_eq!(failure.kind, FailureKind::Crashed);
    assert_eq!(
        trail(&run, "poison"),
        "QUEUED STARTED LEASE_LOST STARTED LEASE_LOST STARTED LEASE_LOST FAILED"
    );
}

#[test]
fn the_crash_limit_can_be_set_and_counts_apart_from_retries() {
    // R14, R25
    let world = World::default();
    let limit = |builder: TestEngineBuilder<()>| builder.configure(|c| c.crash_limit = 2);
    let (mut test, poison, _) = start(&world, limit(builder()));
    test.start(&poison, ()).id("p").now().unwrap();
    test.run_until_idle();
    for n_losses in 1..=2 {
        test.crash();
        test = start(&world, limit(beside(&test))).0;
        test.advance(3 * HOUR);
        let run = test.run_handle("test", "p").unwrap();
        let task = &run.tasks().unwrap()[0];
        assert_eq!((task.losses, task.failures), (n_losses, 0));
    }
    let run = test.run_handle("test", "p").unwrap();
    assert_eq!(state(&run, "poison"), TaskState::Failed);
    assert_eq!(world.journal.count("poison"), 2);
}

#[test]
fn a_run_can_be_played_to_its_end_after_a_crash() {
    // R6, R14
    let world = World::default();
    let (first, handle) = world.engine(gated());
    first.start(&handle, 1).id("g").now().unwrap();
    first.run_until_idle();
    first.crash();
    let second = world.beside(&first, gated());
    world.gate.let_pass(1);
    second.run_to_end();
    let run = second.run_handle("test", "g").unwrap();
    assert_eq!(run.result().unwrap(), 3);
    assert_eq!(world.journal.lines(), ["a", "b 1", "b 2"]);
    assert_eq!(second.now(), first.now(), "one clock for all");
}

on_every_store![
    a_step_of_a_crashed_engine_is_finished_by_another_after_the_lease,
    queued_work_goes_on_elsewhere_at_once,
    poison_ends_failed_at_the_crash_limit_and_what_died_beside_it_completes,
    the_crash_limit_can_be_set_and_counts_apart_from_retries,
    a_run_can_be_played_to_its_end_after_a_crash,
];
