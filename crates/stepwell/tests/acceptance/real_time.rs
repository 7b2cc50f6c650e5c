//! Real time and real threads: many runs at once, and blocking steps that cannot be interrupted.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::poll;
use stepwell::testing::Gate;
use stepwell::{
    AttemptState, CancelAnswer, Code, Config, Engine, EngineBuilder, MemoryStore, Retry, RunStatus,
    StepError, StopReport, TaskState, Workflow, WorkflowRef,
};

use crate::support::{DAY, Journal, SECOND, refused};

const MOMENT: Duration = Duration::from_millis(5);

fn builder(store: &MemoryStore, slots: usize) -> EngineBuilder<()> {
    Engine::builder(store.clone())
        .config(Config { slots, ..Config::default() })
        .default_tenant("house")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hundreds_of_runs_with_sleeps_retries_and_blocking_steps_end_as_they_should() {
    // R3, R15, R24
    let mut w = Workflow::define::<u64, Arc<AtomicUsize>>("mixed");
    let a = w.step("a").run(async |ctx| Ok(*ctx.input()));
    let b = w.step("b").after(a).run_blocking(|_, n| Ok(n * 2));
    let c = w.step("c").after(a).retry(Retry::fixed(1, MOMENT)).run(async |ctx, n| {
        if ctx.attempt() == 1 && n % 5 == 0 { Err(StepError::new("again")) } else { Ok(n * 3) }
    });
    let odd = w.step("odd").after(a).when(|n| n % 2 == 1).run(async |_, n| Ok(n));
    let nap = w.sleep("nap", MOMENT).after(a);
    let sum = w.step("sum").after((b, c, odd, nap)).run(async |ctx, (b, c, odd, ())| {
        ctx.state().fetch_add(1, Ordering::Relaxed);
        Ok(b + c + odd.unwrap_or(0))
    });
    let n_sums = Arc::new(AtomicUsize::new(0));
    let mut builder = builder(&MemoryStore::new(), 16).state(Arc::clone(&n_sums));
    let mixed = builder.workflow(w.output(sum));
    let engine = builder.start().await.unwrap();
    let run = |n: u64| {
        let start = engine.run(&mixed, n).tenant(format!("tenant-{}", n % 7));
        async move { (n, start.await) }
    };
    for (n, result) in join_all((0..300).map(run)).await {
        assert_eq!(result.unwrap(), n * 5 + if n % 2 == 1 { n } else { 0 });
    }
    assert_eq!(n_sums.load(Ordering::Relaxed), 300, "each join ran once");
    let report = engine.stop(SECOND).await;
    assert_eq!((report.n_handed_back, report.n_still_running), (0, 0));
}

#[tokio::test]
async fn blocking_steps_read_their_ancestors_on_a_runtime_of_one_thread() {
    // R7
    let mut w = Workflow::define::<(), ()>("ancestors");
    let a = w.step("a").run(async |_| Ok(20));
    let b = w.step("b").after(a).run_blocking(|_, n| Ok(n + 1));
    let c = w.step("c").after(b).run_blocking(move |ctx, b| Ok(ctx.output(&a)? + b));
    let mut builder = builder(&MemoryStore::new(), 4);
    let ancestors = builder.workflow(w.output(c));
    let engine = builder.start().await.unwrap();
    assert_eq!(engine.run(&ancestors, ()).await.unwrap(), 41);
    engine.stop(SECOND).await;
}

#[tokio::test]
async fn a_wait_with_a_time_out_returns_and_leaves_the_run_alone() {
    // R22
    let mut w = Workflow::define::<(), ()>("long");
    w.sleep("nap", DAY).from_start();
    let mut builder = builder(&MemoryStore::new(), 4);
    let long = builder.workflow(w.no_output());
    let engine = builder.start().await.unwrap();
    let run = engine.start(&long, ()).await.unwrap();
    refused(run.result_within(MOMENT).await, Code::WaitTimedOut, &["5ms"]);
    assert_eq!(run.status().await.unwrap(), RunStatus::Running);
}

/// A blocking step that stays until the test releases it: it signals when it has begun and when
/// it was told to stop.
#[derive(Clone)]
struct Stubborn {
    journal: Journal,
    begun: Gate,
    told: Gate,
    release: Arc<Mutex<mpsc::Receiver<Result<String, StepError>>>>,
}

impl Stubborn {
    fn new() -> (Self, mpsc::Sender<Result<String, StepError>>) {
        let (sender, receiver) = mpsc::channel();
        let (journal, begun, told) = (Journal::default(), Gate::default(), Gate::default());
        (Self { journal, begun, told, release: Arc::new(Mutex::new(receiver)) }, sender)
    }

    /// What the step does when the input is `true`. Otherwise it is quick.
    fn workflow(timeout: Option<Duration>) -> Workflow<bool, String, Self> {
        let mut w = Workflow::define::<bool, Self>("stubborn");
        let step = w.step("stubborn");
        let step = if let Some(timeout) = timeout { step.timeout(timeout) } else { step };
        let step = step.run_blocking(|ctx| {
            let stubborn = ctx.state();
            if !*ctx.input() || ctx.attempt() > 1 {
                stubborn.journal.write("quick");
                return Ok("quick".to_owned());
            }
            stubborn.begun.let_pass(1);
            while !ctx.is_cancelled() {
                std::thread::yield_now();
            }
            stubborn.journal.write("told");
            stubborn.told.let_pass(1);
            let answer = stubborn.release.lock().unwrap().recv()?;
            stubborn.journal.write("returned");
            answer
        });
        w.output(step)
    }

    async fn engine(
        &self,
        store: &MemoryStore,
        timeout: Option<Duration>,
    ) -> (Engine, WorkflowRef<bool, String>) {
        let mut builder = builder(store, 1).state(self.clone());
        let handle = builder.workflow(Self::workflow(timeout));
        (builder.start().await.unwrap(), handle)
    }
}

async fn attempt_states(engine: &Engine, id: &str) -> Vec<AttemptState> {
    let run = engine.run_handle("house", id).await.unwrap();
    run.attempts().await.unwrap().iter().map(|(_, attempt)| attempt.state).collect()
}

#[tokio::test]
async fn a_blocking_step_over_its_time_keeps_its_slot_until_it_returns() {
    // R12
    let (stubborn, release) = Stubborn::new();
    let (engine, handle) = stubborn.engine(&MemoryStore::new(), Some(MOMENT)).await;
    let slow = engine.start(&handle, true).id("slow").await.unwrap();
    stubborn.told.pass().await;
    let next = engine.start(&handle, false).await.unwrap();
    assert_eq!(engine.n_running(), 1);
    assert_eq!(slow.tasks().await.unwrap()[0].state, TaskState::Running, "it still runs");
    assert_eq!(next.tasks().await.unwrap()[0].state, TaskState::Queued, "in the only slot");
    release.send(Ok("late".to_owned())).unwrap();
    refused(slow.result().await, Code::RunFailed, &["time-out", "5ms"]);
    assert_eq!(next.result().await.unwrap(), "quick");
    assert_eq!(stubborn.journal.lines(), ["told", "returned", "quick"]);
    assert!(slow.outputs().await.unwrap().is_empty(), "the late output was discarded");
    assert_eq!(attempt_states(&engine, "slow").await, [AttemptState::TimedOut]);
    engine.stop(SECOND).await;
}

#[tokio::test]
async fn a_blocking_step_of_a_cancelled_run_is_told_and_its_output_refused() {
    // L3, L12
    let (stubborn, release) = Stubborn::new();
    let (engine, handle) = stubborn.engine(&MemoryStore::new(), None).await;
    let run = engine.start(&handle, true).id("run").await.unwrap();
    stubborn.begun.pass().await;
    assert_eq!(run.cancel().await.unwrap(), CancelAnswer::Cancelled);
    stubborn.told.pass().await;
    refused(run.result().await, Code::RunCancelled, &[]);
    release.send(Ok("late".to_owned())).unwrap();
    let next = engine.run(&handle, false).await;
    assert_eq!(next.unwrap(), "quick", "the slot is free again");
    assert_eq!(attempt_states(&engine, "run").await, [AttemptState::Cancelled]);
    assert!(run.outputs().await.unwrap().is_empty());
    engine.stop(SECOND).await;
}

#[tokio::test]
async fn a_blocking_handler_that_is_ended_by_force_keeps_its_slot_until_it_returns() {
    // L12
    let mut w = Workflow::define::<bool, Stubborn>("hanging");
    w.step("fails").run(
        async |ctx| {
            if *ctx.input() { Err(StepError::permanent("broken")) } else { Ok(()) }
        },
    );
    w.on_failure_blocking(|ctx, _| {
        ctx.state().begun.let_pass(1);
        // It does not ask whether it should stop.
        ctx.state().release.lock().unwrap().recv()?.map(drop)
    });
    let (stubborn, release) = Stubborn::new();
    let mut builder = builder(&MemoryStore::new(), 1).state(stubborn.clone());
    let hanging = builder.workflow(w.no_output());
    let engine = builder.start().await.unwrap();
    let run = engine.start(&hanging, true).id("run").await.unwrap();
    stubborn.begun.pass().await;
    let forced = CancelAnswer::ForcedToEnd(RunStatus::Failed);
    assert_eq!(run.cancel().force().await.unwrap(), forced);
    refused(run.result().await, Code::RunFailed, &["broken"]);
    let next = engine.start(&hanging, false).await.unwrap();
    assert_eq!(engine.n_running(), 1, "the handler still runs");
    assert_eq!(next.tasks().await.unwrap()[0].state, TaskState::Queued, "in the only slot");
    release.send(Ok("late".to_owned())).unwrap();
    next.result().await.unwrap();
    let states = attempt_states(&engine, "run").await;
    assert_eq!(states, [AttemptState::Failed, AttemptState::Cancelled]);
    engine.stop(SECOND).await;
}

/// Stops an engine whose blocking step does not return in time, then lets it give `answer`.
async fn stop_and_release(answer: Result<String, StepError>) -> (Vec<AttemptState>, String) {
    let (stubborn, release) = Stubborn::new();
    let store = MemoryStore::new();
    let (first, handle) = stubborn.engine(&store, None).await;
    first.start(&handle, true).id("run").await.unwrap();
    stubborn.begun.pass().await;
    let report = first.stop(Duration::ZERO).await;
    assert_eq!(report, StopReport { n_still_running: 1, ..StopReport::default() });
    let (second, _) = stubborn.engine(&store, None).await;
    let run = second.run_handle("house", "run").await.unwrap();
    assert_eq!(run.tasks().await.unwrap()[0].state, TaskState::Running, "it keeps its claim");
    release.send(answer).unwrap();
    let output = run.result().await.unwrap();
    let states = attempt_states(&second, "run").await;
    second.stop(SECOND).await;
    (states, output.as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_blocking_step_that_outlives_its_engines_stop_may_still_complete() {
    // R12
    let (states, output) = stop_and_release(Ok("saved".to_owned())).await;
    assert_eq!((states.as_slice(), output.as_str()), (&[AttemptState::Completed][..], "saved"));
}

#[tokio::test]
async fn a_blocking_step_that_gives_up_when_told_to_stop_is_handed_back_uncharged() {
    // R11, R12
    let (states, output) = stop_and_release(Err(StepError::new("told to stop"))).await;
    assert_eq!(states, [AttemptState::Released, AttemptState::Completed]);
    assert_eq!(output, "quick");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_waits_while_an_engine_drains_gets_the_result_every_time() {
    // R12, R22
    let workflow = || {
        let mut w = Workflow::define::<u32, (Gate, Gate)>("gated");
        let gated = w.step("gated").run(async |ctx| {
            let (begun, gate) = ctx.state();
            begun.let_pass(1);
            gate.pass().await;
            Ok(*ctx.input())
        });
        w.output(gated)
    };
    for n in 0..50 {
        let (begun, gate) = (Gate::default(), Gate::default());
        let mut builder = builder(&MemoryStore::new(), 4).state((begun.clone(), gate.clone()));
        let gated = builder.workflow(workflow());
        let engine = builder.start().await.unwrap();
        let run = engine.start(&gated, n).await.unwrap();
        begun.pass().await;
        let open = async { gate.let_pass(1) };
        let (result, report, ()) = tokio::join!(run.result(), engine.stop(SECOND), open);
        assert_eq!((result.unwrap(), report.n_still_running), (n, 0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_of_a_blocking_step_is_shown_while_it_runs() {
    // R7, R14
    let (go_on, wait) = mpsc::channel::<()>();
    let mut w = Workflow::define::<(), Mutex<mpsc::Receiver<()>>>("blocking");
    w.step("blocking").run_blocking(|ctx| {
        ctx.heartbeat_with("half")?;
        Ok(ctx.state().lock().unwrap().recv()?)
    });
    let mut builder = builder(&MemoryStore::new(), 2).state(Mutex::new(wait));
    let blocking = builder.workflow(w.no_output());
    let engine = builder.start().await.unwrap();
    let run = engine.start(&blocking, ()).await.unwrap();
    let progress = loop {
        let task = run.tasks().await.unwrap().remove(0);
        match task.progress {
            Some(progress) => break progress,
            None => tokio::task::yield_now().await,
        }
    };
    assert_eq!(progress.text, "half");
    go_on.send(()).unwrap();
    run.result().await.unwrap();
    assert_eq!(run.tasks().await.unwrap()[0].progress, None);
    engine.stop(SECOND).await;
}

#[test]
fn whoever_waits_is_told_when_the_runtime_of_the_engine_ends() {
    // R22
    let [ends, goes_on] = [(); 2].map(|()| tokio::runtime::Runtime::new().unwrap());
    let gate = Gate::new();
    let mut w = Workflow::define::<(), Gate>("gated");
    w.step("gated").run(async |ctx| {
        ctx.state().pass().await;
        Ok(())
    });
    let mut builder = builder(&MemoryStore::new(), 2).state(gate);
    let gated = builder.workflow(w.no_output());
    let (engine, run) = ends.block_on(async {
        let engine = builder.start().await.unwrap();
        let run = engine.start(&gated, ()).await.unwrap();
        (engine, run)
    });
    let awaited = run.clone();
    let (begun, waits) = mpsc::channel();
    let waiting = goes_on.spawn(async move {
        let mut result = pin!(awaited.result());
        assert!(poll!(&mut result).is_pending(), "its step waits at the gate");
        begun.send(()).unwrap();
        result.await
    });
    waits.recv().unwrap();
    drop(ends);
    refused(goes_on.block_on(waiting).unwrap(), Code::Stopped, &["runtime"]);
    refused(goes_on.block_on(run.result()), Code::Stopped, &["runtime"]);
    let again = goes_on.block_on(async { engine.start(&gated, ()).await.map(drop) });
    refused(again, Code::Stopped, &["runtime"]);
    let report = goes_on.block_on(engine.stop(DAY));
    assert_eq!(report.n_drained, 0, "there is nothing to wait for");
}

#[tokio::test]
async fn a_panic_on_a_thread_of_its_own_is_a_failed_attempt_and_the_thread_is_used_again() {
    // R3
    let mut w = Workflow::define::<bool, ()>("panics");
    let step = w.step("panics").run_blocking(|ctx| {
        assert!(*ctx.input(), "on a thread");
        Ok(1)
    });
    let mut builder = builder(&MemoryStore::new(), 1);
    let panics = builder.workflow(w.output(step));
    let engine = builder.start().await.unwrap();
    for _ in 0..3 {
        refused(engine.run(&panics, false).await, Code::RunFailed, &["on a thread"]);
    }
    assert_eq!(engine.run(&panics, true).await.unwrap(), 1);
    engine.stop(SECOND).await;
}
