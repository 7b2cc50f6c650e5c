//! Clients, workers and queues: who starts, who executes, who waits.

use std::time::Duration;

use serde_json::json;
use stepwell::core::id::Queue;
use stepwell::ports::Clock;
use stepwell::testing::TestEngine;
use stepwell::{Code, RunStatus, StepError, TaskState, Workflow};

use crate::support::{
    DAY, HOUR, SECOND, World, beside, builder, engine_with, refused, state, states,
};

fn greeting() -> Workflow<String, String, World> {
    let mut w = Workflow::define::<String, World>("greeting");
    let hello = w.step("hello").run(async |ctx| Ok(format!("Hello, {}", ctx.input())));
    let nap = w.sleep("nap", HOUR).after(hello);
    let shout = w.step("shout").after((hello, nap)).run(async |ctx, (text, ())| {
        ctx.state().journal.write("shout");
        Ok(text + "!")
    });
    w.output(shout)
}

fn client_beside(test: &TestEngine) -> TestEngine {
    beside(test).configure(|config| config.slots = 0).start().unwrap()
}

#[test]
fn a_client_starts_by_the_stored_definition_without_the_code() {
    // R29
    let world = World::default();
    let (worker, _) = world.engine(greeting());
    worker.stop(HOUR);
    let client = client_beside(&worker);
    let run = client.start_by_name("greeting", &"Ada").tenant("acme").id("g").now().unwrap();
    client.advance(DAY);
    assert_eq!(states(&run), "hello QUEUED, nap PENDING, shout PENDING");
    let acme = client.tenant("acme").unwrap().unwrap();
    assert_eq!((acme.n_ready, acme.n_running, acme.n_parked), (0, 0, 1), "no worker serves it");
    let late_worker = world.beside(&client, greeting());
    client.run_until_idle();
    assert_eq!(states(&run), "hello COMPLETED, nap SLEEPING, shout PENDING");
    client.run_to_end();
    assert_eq!(run.result().unwrap(), json!("Hello, Ada!"));
    assert_eq!(run.outputs().unwrap()["hello"], "Hello, Ada");
    assert_eq!(late_worker.tenant("acme").unwrap().unwrap().n_parked, 0);
}

#[test]
fn a_long_line_that_nobody_served_goes_to_the_worker_that_comes() {
    // R29, L2: a worker that registers moves a part of it, the leader the rest.
    const N_RUNS: usize = 520;
    let single = || {
        let mut w = Workflow::define::<usize, World>("single");
        w.step("a").run(async |_| Ok(()));
        w.no_output()
    };
    let world = World::default();
    let (worker, _) = world.engine(single());
    worker.stop(HOUR);
    let client = client_beside(&worker);
    for n in 0..N_RUNS {
        client.start_by_name("single", &n).tenant("acme").now().unwrap();
    }
    let acme = || client.tenant("acme").unwrap().unwrap();
    assert_eq!(acme().n_parked, N_RUNS);
    let _late_worker = world.beside(&client, single());
    client.advance(60 * SECOND);
    let view = acme();
    assert_eq!((view.n_parked, view.n_ready, view.n_running), (0, 0, 0), "{view:?}");
}

#[test]
fn a_client_with_the_code_neither_executes_nor_leads() {
    // R29
    let mut builder = builder().configure(|config| config.slots = 0);
    let mut w = Workflow::define::<(), ()>("mixed");
    let nap = w.sleep("nap", HOUR).from_start();
    w.step("a").after(nap).run(async |_, ()| Ok(()));
    w.step("b").run(async |_| Ok(()));
    let mixed = builder.workflow(w.no_output());
    let client = builder.start().unwrap();
    let run = client.start(&mixed, ()).now().unwrap();
    client.advance(DAY);
    assert_eq!(states(&run), "nap SLEEPING, a PENDING, b QUEUED");
}

#[test]
fn a_run_is_found_from_another_engine_by_tenant_and_id_alone() {
    // R22
    let (first, handle) = World::default().engine(greeting());
    first.start(&handle, "Ada".into()).tenant("acme").id("g-1").now().unwrap();
    let client = client_beside(&first);
    let run = client.run_handle("acme", "g-1").unwrap();
    assert_eq!((run.workflow(), run.tenant(), run.id()), ("greeting", "acme", "g-1"));
    refused(client.run_handle("other", "g-1"), Code::UnknownRun, &["\"other\""]);
    client.run_to_end();
    assert_eq!(run.result().unwrap(), json!("Hello, Ada!"));
    assert_eq!(run.status().unwrap(), RunStatus::Completed);
}

#[test]
fn a_typed_handle_is_had_by_workflow_and_id() {
    // R19, R22
    let mut builder = builder().state(World::default());
    let greeting = builder.workflow(greeting());
    let mut w = Workflow::define::<(), World>("other");
    w.step("a").run(async |_| Ok(()));
    let other = builder.workflow(w.no_output());
    let test = builder.start().unwrap();
    test.start(&greeting, "Ada".into()).id("g").now().unwrap();
    test.run_to_end();
    let run = test.run_handle_of(&greeting, "test", "g").unwrap();
    let result: String = run.result().unwrap();
    assert_eq!(result, "Hello, Ada!");
    let hello = greeting.step::<String>("hello").unwrap();
    assert_eq!(run.output(&hello).unwrap().unwrap(), "Hello, Ada");
    let wrong = test.run_handle_of(&other, "test", "g");
    refused(wrong, Code::UnknownRun, &["\"greeting\"", "\"other\""]);
}

#[test]
fn outputs_are_read_as_what_they_are_or_refused() {
    // R19
    let mut w = Workflow::define::<(), ()>("typed");
    let text = w.step("text").run(async |_| Ok("seven".to_owned()));
    let (test, typed) = engine_with((), w.output(text));
    let run = test.start(&typed, ()).id("t").now().unwrap();
    run.result().unwrap();
    let as_number = typed.step::<u32>("text").unwrap();
    refused(run.output(&as_number), Code::DoesNotFit, &["\"text\"", "u32", "string"]);
    let mut other = Workflow::define::<(), ()>("other");
    let foreign = other.step("text").run(async |_| Ok(1_u32));
    refused(run.output(&foreign), Code::UnknownStep, &["another workflow"]);
    // A later program expects another type of the same step.
    let mut w = Workflow::define::<(), ()>("typed");
    let number = w.step("text").run(async |_| Ok(7_u32));
    let mut builder = beside(&test);
    let retyped = builder.workflow(w.output(number));
    let later = builder.start().unwrap();
    let run = later.run_handle_of(&retyped, "test", "t").unwrap();
    refused(run.result(), Code::DoesNotFit, &["output", "u32"]);
}

#[test]
fn a_client_without_the_code_reads_outputs_by_name_only() {
    // R29
    let mut w = Workflow::define::<(), ()>("plain");
    let a = w.step("a").run(async |_| Ok(1));
    let (test, plain) = engine_with((), w.output(a));
    test.start(&plain, ()).id("p").now().unwrap();
    let run = client_beside(&test).run_handle("test", "p").unwrap();
    assert_eq!(run.outcome().unwrap().outputs["a"], 1);
    refused(run.output(&a), Code::UnknownStep, &["lacks its code"]);
}

#[test]
fn a_wait_that_takes_too_long_leaves_the_run_alone() {
    // R22
    let (test, greeting) = World::default().engine(greeting());
    let run = test.start(&greeting, "Ada".into()).now().unwrap();
    refused(run.result_within(Duration::ZERO), Code::WaitTimedOut, &[run.id(), "0ns"]);
    let (waiting, clock) = (run.as_async().clone(), test.clock().clone());
    let span = HOUR - Duration::from_secs(1);
    let (answer, ()) = test.drive(async move {
        let pass_time = async { clock.advance(span) };
        tokio::join!(waiting.result_within(span), pass_time)
    });
    refused(answer, Code::WaitTimedOut, &["3599s"]);
    assert_eq!(run.status().unwrap(), RunStatus::Running);
    test.run_to_end();
    assert_eq!(run.result_within(Duration::ZERO).unwrap(), "Hello, Ada!");
}

#[test]
fn waiters_are_woken_and_not_left_to_poll() {
    // R22
    let world = World::default();
    let (worker, handle) = world.engine(greeting());
    worker.start(&handle, "Ada".into()).id("g").now().unwrap();
    let client = client_beside(&worker);
    let run = client.run_handle("test", "g").unwrap();
    let (waiting, clock) = (run.as_async().clone(), worker.clock().clone());
    let woken_at = client.drive(async move {
        // Everybody polls once an hour here, so only a wake-up can come in time.
        let end = async {
            waiting.result().await.unwrap();
            clock.now()
        };
        let pass_time = async { clock.advance(HOUR) };
        tokio::join!(end, pass_time).0
    });
    let ended_at = run.events().unwrap().last().unwrap().at;
    assert_eq!(woken_at, ended_at);
}

#[test]
fn a_worker_takes_only_from_the_queues_it_serves() {
    // R3
    let workflow = || {
        let mut w = Workflow::define::<(), ()>("rendering");
        let prepare = w.step("prepare").run(async |_| Ok(1));
        let render = w.step("render").queue("gpu").after(prepare).run(async |_, n| Ok(n + 1));
        w.output(render)
    };
    let (plain, handle) = engine_with((), workflow());
    let run = plain.start(&handle, ()).now().unwrap();
    plain.run_until_idle();
    assert_eq!(states(&run), "prepare COMPLETED, render QUEUED");
    let gpu = Queue::new("gpu").unwrap();
    let mut builder = beside(&plain).configure(|config| config.queues = vec![gpu]);
    builder.workflow(workflow());
    let with_gpu = builder.start().unwrap();
    assert_eq!(run.result().unwrap(), 2);
    let workers: Vec<String> =
        run.attempts().unwrap().iter().map(|(_, attempt)| attempt.worker.to_string()).collect();
    assert_eq!(workers, [plain.worker_id(), with_gpu.worker_id()]);
}

#[test]
fn a_handler_waits_where_the_workflows_first_step_does() {
    // R20
    let mut w = Workflow::define::<(), World>("rendering");
    w.step("render").queue("gpu").run(async |_| Err::<(), _>(StepError::new("no memory")));
    w.on_failure(async |ctx, _| {
        ctx.state().journal.write("handler");
        Ok(())
    });
    let (world, gpu) = (World::default(), Queue::new("gpu").unwrap());
    let builder = builder().configure(|config| config.queues = vec![gpu]);
    let mut builder = builder.state(world.clone());
    let rendering = builder.workflow(w.no_output());
    let test = builder.start().unwrap();
    refused(test.run(&rendering, ()).wait(), Code::RunFailed, &["no memory"]);
    assert_eq!(world.journal.lines(), ["handler"]);
}

#[test]
fn dropping_a_handle_leaves_the_run_alone() {
    // R22
    let (test, greeting) = World::default().engine(greeting());
    drop(test.start(&greeting, "Ada".into()).id("g").now().unwrap());
    test.run_to_end();
    let run = test.run_handle("test", "g").unwrap();
    assert_eq!(state(&run, "shout"), TaskState::Completed);
}

on_every_store![
    a_client_starts_by_the_stored_definition_without_the_code,
    a_long_line_that_nobody_served_goes_to_the_worker_that_comes,
    a_client_with_the_code_neither_executes_nor_leads,
    a_run_is_found_from_another_engine_by_tenant_and_id_alone,
    a_typed_handle_is_had_by_workflow_and_id,
    outputs_are_read_as_what_they_are_or_refused,
    a_client_without_the_code_reads_outputs_by_name_only,
    a_wait_that_takes_too_long_leaves_the_run_alone,
    waiters_are_woken_and_not_left_to_poll,
    a_worker_takes_only_from_the_queues_it_serves,
    a_handler_waits_where_the_workflows_first_step_does,
    dropping_a_handle_leaves_the_run_alone,
];
