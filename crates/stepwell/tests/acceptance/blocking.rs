//! The engine without async anywhere in user code, in real time.

use std::sync::{Arc, Barrier, OnceLock};
use std::time::Duration;

use stepwell::blocking::{Engine, EngineBuilder};
use stepwell::{
    CancelAnswer, Code, MemoryStore, NewRun, Retry, RunFilter, RunStatus, StepError,
    TenantSettings, Workflow,
};

use crate::support::{DAY, Journal, SECOND, refused, states, trail};

fn builder() -> EngineBuilder<()> {
    Engine::builder(MemoryStore::new()).default_tenant("house")
}

#[test]
fn a_whole_workflow_without_async() {
    // R7
    let mut w = Workflow::define::<u32, Journal>("plain");
    let retry = Retry::fixed(1, Duration::from_millis(1));
    let double = w.step("double").retry(retry).run_blocking(|ctx| {
        if ctx.attempt() == 1 { Err(StepError::new("once more")) } else { Ok(ctx.input() * 2) }
    });
    let odd = w.step("odd").after(double).when(|n| n % 2 == 1).run_blocking(|_, n| Ok(n));
    let nap = w.sleep("nap", Duration::from_millis(1)).after(double);
    let last = w.step("last").after((odd, nap)).run_blocking(move |ctx, (odd, ())| {
        if *ctx.input() == 13 {
            return Err(StepError::permanent("unlucky"));
        }
        Ok(format!("{odd:?} {}", ctx.output(&double)?))
    });
    w.on_failure_blocking(|ctx, failure| {
        ctx.state().write(failure.failure.message);
        Ok(())
    });
    let journal = Journal::default();
    let mut builder = builder().state(journal.clone());
    let plain = builder.workflow(w.output(last));
    let engine = builder.start().unwrap();
    assert_eq!(engine.run(&plain, 21).wait().unwrap(), "None 42");
    let run = engine.start(&plain, 13).id("unlucky").now().unwrap();
    refused(run.result(), Code::RunFailed, &["\"last\"", "unlucky"]);
    assert_eq!(journal.lines(), ["unlucky"]);
    assert_eq!(
        states(&run),
        "double COMPLETED, odd SKIPPED, nap COMPLETED, last FAILED, on_failure COMPLETED"
    );
    assert_eq!(trail(&run, "double"), "QUEUED STARTED RETRYING STARTED COMPLETED");
    assert_eq!(engine.stop(SECOND).unwrap().n_still_running, 0);
    refused(run.status(), Code::Stopped, &[]);
}

#[test]
fn every_call_of_the_engine_has_a_blocking_form() {
    // R7
    let mut w = Workflow::define::<u32, ()>("calls");
    let nap = w.sleep("nap", DAY).from_start();
    let last = w.step("last").after(nap).run_blocking(|_, ()| Ok(1));
    let mut builder = builder().app("calls");
    let calls = builder.workflow(w.output(last));
    let engine = builder.start().unwrap();
    assert!(engine.worker_id().starts_with("calls-"));
    let many = engine.start_many(&calls, [NewRun::new(1).id("a"), NewRun::new(2).id("b")]);
    let many: Vec<_> = many.unwrap().into_iter().map(Result::unwrap).collect();
    refused(many[0].result_within(Duration::ZERO), Code::WaitTimedOut, &["\"a\""]);
    let found = engine.run_handle("house", "a").unwrap();
    assert_eq!(found.key(), many[0].key());
    assert_eq!(engine.run_handle_of(&calls, "house", "b").unwrap().key(), many[1].key());
    assert_eq!(found.cancel().wait().unwrap(), CancelAnswer::Cancelled);
    assert_eq!(found.ended().unwrap(), RunStatus::Cancelled);
    assert_eq!(found.outcome().unwrap().status, RunStatus::Cancelled);
    assert!(found.outputs().unwrap().is_empty() && found.attempts().unwrap().is_empty());
    assert_eq!(many[1].output(&calls.step::<u32>("last").unwrap()).unwrap(), None);
    let by_name = engine.start_by_name("calls", &3).now().unwrap();
    assert_eq!(by_name.status().unwrap(), RunStatus::Running);
    assert_eq!(by_name.events().unwrap().len(), 2);
    engine.set_tenant("house", TenantSettings { weight: 2, tasks_max: Some(9) }).unwrap();
    assert_eq!(engine.tenant("house").unwrap().unwrap().settings.weight, 2);
    assert_eq!(engine.list(RunFilter::default(), None, 10).unwrap().runs.len(), 3);
    engine.stop(SECOND).unwrap();
}

#[test]
fn blocking_steps_run_at_the_same_time_and_threads_share_the_engine() {
    // R7, R24
    let mut w = Workflow::define::<usize, Barrier>("together");
    let together = w.step("together").run_blocking(|ctx| {
        // Opens when eight steps are inside.
        ctx.state().wait();
        Ok(*ctx.input())
    });
    let mut builder = builder().state(Barrier::new(8));
    let together = builder.workflow(w.output(together));
    let engine = builder.start().unwrap();
    std::thread::scope(|scope| {
        let waiting: Vec<_> = (0..8)
            .map(|n| {
                let (engine, together) = (engine.clone(), together.clone());
                scope.spawn(move || engine.run(&together, n).wait().unwrap())
            })
            .collect();
        for (n, thread) in waiting.into_iter().enumerate() {
            assert_eq!(thread.join().unwrap(), n);
        }
    });
    engine.stop(SECOND).unwrap();
}

#[tokio::test]
async fn it_refuses_to_start_inside_an_async_context() {
    // R7
    let refusal = builder().start();
    refused(refusal, Code::BlockingInAsync, &["async context", "stepwell::Engine"]);
}

#[test]
fn calls_inside_an_async_context_are_refused_and_change_nothing() {
    // R7
    let mut w = Workflow::define::<(), ()>("simple");
    w.step("a").run_blocking(|_| Ok(()));
    let mut builder = builder();
    let simple = builder.workflow(w.no_output());
    let engine = builder.start().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        refused(engine.start(&simple, ()).now(), Code::BlockingInAsync, &[]);
        refused(engine.run(&simple, ()).wait(), Code::BlockingInAsync, &[]);
        refused(engine.stop(SECOND), Code::BlockingInAsync, &[]);
    });
    assert!(engine.list(RunFilter::default(), None, 10).unwrap().runs.is_empty());
    engine.run(&simple, ()).wait().unwrap();
    engine.stop(SECOND).unwrap();
}

#[test]
fn calls_are_answered_on_threads_made_for_blocking() {
    // R7
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let work = || {
        let mut w = Workflow::define::<u32, ()>("simple");
        let step = w.step("a").run_blocking(|ctx| Ok(ctx.input() + 1));
        let mut builder = builder();
        let simple = builder.workflow(w.output(step));
        let engine = builder.start().unwrap();
        let answer = engine.run(&simple, 1).wait().unwrap();
        engine.stop(SECOND).unwrap();
        answer
    };
    assert_eq!(runtime.block_on(runtime.spawn_blocking(work)).unwrap(), 2, "in a blocking task");
    let in_place = runtime.spawn(async move { tokio::task::block_in_place(work) });
    assert_eq!(runtime.block_on(in_place).unwrap(), 2, "in place");
    let entered = runtime.enter();
    assert_eq!(work(), 2, "with a handle at hand");
    drop(entered);
    let pooled = std::thread::scope(|scope| scope.spawn(work).join().unwrap());
    assert_eq!(pooled, 2, "on a thread of another pool");
    let polled = runtime.block_on(runtime.spawn(async { builder().start().map(drop) })).unwrap();
    refused(polled, Code::BlockingInAsync, &["spawn_blocking"]);
}

/// The engine itself, for steps that start other runs.
type Shared = Arc<OnceLock<Engine>>;

#[test]
fn a_blocking_step_may_wait_for_another_run_and_an_async_one_may_not() {
    // R7
    let mut child = Workflow::define::<u32, Shared>("child");
    let step = child.step("child").run_blocking(|ctx| Ok(ctx.input() + 1));
    let child = child.output(step);
    let mut builder = builder().state(Shared::default());
    let child = builder.workflow(child);
    let mut w = Workflow::define::<u32, Shared>("parent");
    let handle = child.clone();
    let blocking = w.step("blocking").run_blocking(move |ctx| {
        let engine = ctx.state().get().expect("it is set before the start");
        Ok(engine.run(&handle, *ctx.input()).wait()?)
    });
    let handle = child.clone();
    w.step("async").after(blocking).run(move |ctx, n| {
        let handle = handle.clone();
        async move {
            let engine = ctx.state().get().expect("it is set before the start");
            Ok(engine.run(&handle, n).wait()?)
        }
    });
    let shared = Shared::default();
    let mut builder = builder.state(shared.clone());
    let parent = builder.workflow(w.no_output());
    let engine = builder.start().unwrap();
    assert!(shared.set(engine.clone()).is_ok());
    let run = engine.start(&parent, 1).now().unwrap();
    refused(run.result(), Code::RunFailed, &["\"async\"", "SW0024"]);
    assert_eq!(run.output(&blocking).unwrap(), 2);
    engine.stop(SECOND).unwrap();
}
