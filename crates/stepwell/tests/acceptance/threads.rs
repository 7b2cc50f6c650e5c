//! What becomes of a task when its execution cannot begin, or breaks off in our own code.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use stepwell::ports::{BoxFuture, NoThread, Spawner};
use stepwell::testing::{CountedIds, ManualClock, ManualScheduler};
use stepwell::{
    AttemptState, Code, Config, Engine, Error, MemoryStore, Run, Workflow, WorkflowRef,
};

use crate::support::{SECOND, refused};

/// Spawns as tests do, but has no thread for so many blocking steps.
struct FewThreads {
    scheduler: ManualScheduler,
    n_missing: AtomicUsize,
}

impl Spawner for FewThreads {
    fn spawn(&self, future: BoxFuture<()>) {
        self.scheduler.spawn(future);
    }

    fn spawn_apart(&self, name: &str, future: BoxFuture<()>) {
        self.scheduler.spawn_apart(name, future);
    }

    fn spawn_blocking(&self, closure: Box<dyn FnOnce() + Send + 'static>) -> Result<(), NoThread> {
        let one_less = |n: usize| n.checked_sub(1);
        let is_missing = self.n_missing.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_less);
        if is_missing.is_ok() { Err(NoThread) } else { self.scheduler.spawn_blocking(closure) }
    }

    fn block_on(&self, future: BoxFuture<()>) {
        self.scheduler.block_on(future);
    }
}

struct Bench {
    clock: ManualClock,
    scheduler: ManualScheduler,
    engine: Engine,
    workflow: WorkflowRef<(), u32>,
}

impl Bench {
    fn new(n_missing: usize, workflow: Workflow<(), u32>) -> Self {
        let (clock, scheduler) = (ManualClock::new(), ManualScheduler::new());
        let spawner =
            FewThreads { scheduler: scheduler.clone(), n_missing: AtomicUsize::new(n_missing) };
        let store = MemoryStore::with_clock(Arc::new(clock.clone()));
        let config = Config { slots: 1, ..Config::default() };
        let builder = Engine::builder(store).config(config).default_tenant("test");
        let ids = Arc::new(CountedIds::new(1));
        let mut builder = builder.runtime(Arc::new(clock.clone()), Arc::new(spawner), ids);
        let workflow = builder.workflow(workflow);
        let engine = answer(&scheduler, async move { builder.start().await }).unwrap();
        Self { clock, scheduler, engine, workflow }
    }

    fn start(&self) -> Run<u32> {
        let start = self.engine.start(&self.workflow, ());
        let run = answer(&self.scheduler, async move { start.await }).unwrap();
        self.scheduler.run_until_idle();
        run
    }

    fn result(&self, run: &Run<u32>) -> Result<u32, Error> {
        let run = run.clone();
        answer(&self.scheduler, async move { run.result().await })
    }
}

/// What a future gives at this moment of time.
fn answer<T: Send + 'static>(
    scheduler: &ManualScheduler,
    future: impl Future<Output = T> + Send + 'static,
) -> T {
    let slot = Arc::new(Mutex::new(None));
    let filled = Arc::clone(&slot);
    scheduler.spawn(Box::pin(async move {
        let output = future.await;
        *filled.lock().unwrap() = Some(output);
    }));
    scheduler.run_until_idle();
    slot.lock().unwrap().take().expect("it ends at this moment of time")
}

#[test]
fn a_blocking_step_without_a_thread_is_handed_back_and_executed_later() {
    // R12, S9
    let mut w = Workflow::define::<(), ()>("blocking");
    let step = w.step("blocking").run_blocking(|ctx| Ok(ctx.attempt()));
    let bench = Bench::new(2, w.output(step));
    let run = bench.start();
    for _ in 0..2 {
        assert_eq!(bench.engine.n_running(), 1, "not claimed again and again");
        bench.clock.advance(SECOND);
        bench.scheduler.run_until_idle();
    }
    assert_eq!(bench.result(&run).unwrap(), 3);
    let attempts = answer(&bench.scheduler, async move { run.attempts().await }).unwrap();
    let states: Vec<AttemptState> = attempts.iter().map(|(_, attempt)| attempt.state).collect();
    let [released, completed] = [AttemptState::Released, AttemptState::Completed];
    assert_eq!(states, [released, released, completed]);
    assert_eq!(bench.engine.n_running(), 0);
}

/// Panics when it is cloned after the workflow was built, as a step's code is for each execution.
struct Uncloneable(u32);

impl Clone for Uncloneable {
    fn clone(&self) -> Self {
        panic!("no second one");
    }
}

impl Uncloneable {
    fn answer(self) -> u32 {
        self.0
    }
}

#[test]
fn a_panic_before_the_code_of_a_step_begins_fails_the_step_and_leaves_no_claim() {
    // R14, S9
    let mut w = Workflow::define::<(), ()>("uncloneable");
    let captured = Uncloneable(1);
    let step = w.step("uncloneable").run(move |_| {
        let answer = captured.answer();
        async move { Ok(answer) }
    });
    let bench = Bench::new(0, w.output(step));
    let run = bench.start();
    refused(bench.result(&run), Code::RunFailed, &["no second one"]);
    assert_eq!(bench.engine.n_running(), 0);
}

in_memory_only!("threads do not depend on the store":
    a_blocking_step_without_a_thread_is_handed_back_and_executed_later,
    a_panic_before_the_code_of_a_step_begins_fails_the_step_and_leaves_no_claim,
);
