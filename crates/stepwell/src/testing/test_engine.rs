//! An engine in memory on virtual time, for tests of workflows.

use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use stepwell_core::time::Timestamp;

use super::bed::Bed;
use super::{ManualClock, ManualScheduler};
use crate::api::blocking::{Engine as BlockingEngine, Run};
use crate::api::{Engine, EngineBuilder, Workflow, WorkflowRef};
use crate::engine::Config;
use crate::error::Error;
use crate::outbound::memory::MemoryStore;
use crate::ports::{Clock, Codec};
use crate::worker::StopReport;

/// An engine in memory on virtual time: deterministic, on the caller's thread, and fast however
/// long its workflows sleep.
///
/// It has all calls of the [blocking engine](crate::blocking::Engine), with `test` as the
/// default tenant. Nothing moves unless a call waits for it or one of the methods here is used.
///
/// ```
/// use std::time::Duration;
/// use stepwell::testing::TestEngine;
/// use stepwell::{RunStatus, Workflow};
///
/// let mut w = Workflow::define("reminder");
/// let nap = w.sleep("nap", Duration::from_secs(24 * 60 * 60)).from_start();
/// let ring = w.step("ring").after(nap).run(async |_ctx, ()| Ok("wake up".to_owned()));
/// let reminder: Workflow<(), String> = w.output(ring);
///
/// let mut builder = TestEngine::builder();
/// let reminder = builder.workflow(reminder);
/// let test = builder.start()?;
/// let run = test.start(&reminder, ()).now()?;
/// test.advance(Duration::from_secs(23 * 60 * 60));
/// assert_eq!(run.status()?, RunStatus::Running);
/// test.run_to_end();
/// assert_eq!(run.result()?, "wake up");
/// # Ok::<(), stepwell::Error>(())
/// ```
pub struct TestEngine {
    engine: Engine,
    blocking: BlockingEngine,
    bed: Arc<Bed>,
    group: ManualScheduler,
}

/// Builds a [`TestEngine`].
#[must_use = "an engine is started by `.start()`"]
pub struct TestEngineBuilder<S> {
    builder: EngineBuilder<S>,
    config: Config,
    bed: Arc<Bed>,
    group: ManualScheduler,
}

/// Periodic loops run rarely, so that long spans of virtual time pass quickly.
fn test_config() -> Config {
    let hour = Duration::from_hours(1);
    Config {
        slots: 10,
        lease: hour,
        heartbeat_interval: hour / 3,
        poll_interval: hour,
        leader_ttl: hour,
        timer_interval: hour,
        ..Config::default()
    }
}

impl TestEngine {
    /// Begins to build an engine with a store, a clock and a scheduler of its own.
    pub fn builder() -> TestEngineBuilder<()> {
        Self::builder_with_seed(0)
    }

    /// As [`TestEngine::builder`], with another seed for ids and jitter.
    pub fn builder_with_seed(seed: u64) -> TestEngineBuilder<()> {
        TestEngineBuilder::new(Arc::new(Bed::new(seed)))
    }

    /// Begins to build another engine on the same store, clock and scheduler: a fleet of two.
    /// Time moves for both, whichever is told to.
    pub fn builder_beside(&self) -> TestEngineBuilder<()> {
        TestEngineBuilder::new(Arc::clone(&self.bed))
    }

    /// The same engine for async code; [`TestEngine::drive`] waits for its futures.
    #[must_use]
    pub fn as_async(&self) -> &Engine {
        &self.engine
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &MemoryStore {
        &self.bed.store
    }

    /// The clock.
    #[must_use]
    pub fn clock(&self) -> &ManualClock {
        &self.bed.clock
    }

    /// The current moment of virtual time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.bed.clock.now()
    }

    /// Waits for a future while everything else runs, at the current moment of virtual time.
    ///
    /// # Panics
    /// When nothing more happens at this moment and the future still waits.
    pub fn drive<F>(&self, future: F) -> F::Output
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let slot = Arc::new(std::sync::Mutex::new(None));
        let filled = Arc::clone(&slot);
        crate::api::blocking::BlockOn::block_on(
            self.bed.as_ref(),
            Box::pin(async move {
                let output = future.await;
                *filled.lock().expect("no holder of the lock panics") = Some(output);
            }),
        );
        let output = slot.lock().expect("no holder of the lock panics").take();
        output.expect("the wait ended, so the future did")
    }

    /// Lets each part of the engine that has something to do take one turn. Says whether any
    /// had.
    pub fn run_cycle(&self) -> bool {
        self.bed.run_cycle()
    }

    /// Runs until nothing is left to do at the current moment.
    pub fn run_until_idle(&self) {
        self.bed.run_until_idle();
    }

    /// Runs until the run has ended, without moving time, and gives its output.
    ///
    /// # Errors
    /// When the run failed or was cancelled.
    ///
    /// # Panics
    /// When it cannot end at this moment, because it sleeps or waits for a retry.
    pub fn run_until_complete<O: Send + 'static>(&self, run: &Run<O>) -> Result<O, Error> {
        run.result()
    }

    /// Moves time on by `span`, firing everything that falls due on the way when it does.
    pub fn advance(&self, span: Duration) {
        self.bed.advance(span);
    }

    /// Moves time on to a moment.
    pub fn advance_to(&self, moment: Timestamp) {
        self.bed.advance(moment.since(self.now()));
    }

    /// Runs until all runs have ended, jumping from timer to timer.
    ///
    /// # Panics
    /// When some run can never end, because no engine has its code.
    pub fn run_to_end(&self) {
        let is_done = || self.bed.store.n_open_runs() == 0;
        assert!(
            self.bed.jump_until(is_done),
            "{} runs are open and nothing will ever happen to them",
            self.bed.store.n_open_runs(),
        );
    }

    /// Stops the engine, moving time on as far as the grace period needs.
    pub fn stop(&self, grace: Duration) -> StopReport {
        let (engine, report) = (self.engine.clone(), Arc::new(std::sync::Mutex::new(None)));
        let filled = Arc::clone(&report);
        self.bed.wait_in_time(Box::pin(async move {
            let report = engine.stop(grace).await;
            *filled.lock().expect("no holder of the lock panics") = Some(report);
        }));
        let report = report.lock().expect("no holder of the lock panics").take();
        report.expect("the wait ended, so the stop did")
    }

    /// Kills the engine where it stands, as a crash of its process would: nothing is handed
    /// back, and its claims are held until somebody finds it dead.
    pub fn crash(&self) {
        self.group.kill();
        self.bed.forget(&self.engine);
    }
}

impl Deref for TestEngine {
    type Target = BlockingEngine;

    fn deref(&self) -> &BlockingEngine {
        &self.blocking
    }
}

impl TestEngineBuilder<()> {
    fn new(bed: Arc<Bed>) -> Self {
        let group = bed.scheduler.group();
        let runtime = (Arc::new(bed.clock.clone()), Arc::new(group.clone()), Arc::clone(&bed.ids));
        let builder = Engine::builder(bed.store.clone())
            .default_tenant("test")
            .runtime(runtime.0, runtime.1, runtime.2);
        Self { builder, config: test_config(), bed, group }
    }
}

impl<S: Send + Sync + 'static> TestEngineBuilder<S> {
    /// What `ctx.state()` gives in workflows that are registered after this.
    pub fn state<T: Send + Sync + 'static>(self, state: T) -> TestEngineBuilder<T> {
        let Self { builder, config, bed, group } = self;
        TestEngineBuilder { builder: builder.state(state), config, bed, group }
    }

    /// Changes settings. The defaults of tests have a lease of an hour, so that long spans of
    /// virtual time pass quickly.
    pub fn configure(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    /// Another codec than JSON.
    pub fn codec(mut self, codec: impl Codec) -> Self {
        self.builder = self.builder.codec(codec);
        self
    }

    /// Another default tenant than `test`.
    pub fn default_tenant(mut self, tenant: &str) -> Self {
        self.builder = self.builder.default_tenant(tenant);
        self
    }

    /// Registers a workflow and gives a handle for starting runs.
    pub fn workflow<I, O>(&mut self, workflow: Workflow<I, O, S>) -> WorkflowRef<I, O> {
        self.builder.workflow(workflow)
    }

    /// Checks everything, and starts.
    ///
    /// # Errors
    /// As the engine's own builder.
    pub fn start(self) -> Result<TestEngine, Error> {
        let Self { builder, config, bed, group } = self;
        let builder = builder.config(config);
        let slot = Arc::new(std::sync::Mutex::new(None));
        let filled = Arc::clone(&slot);
        crate::api::blocking::BlockOn::block_on(
            bed.as_ref(),
            Box::pin(async move {
                let engine = builder.start().await;
                *filled.lock().expect("no holder of the lock panics") = Some(engine);
            }),
        );
        let engine = slot.lock().expect("no holder of the lock panics").take();
        let engine = engine.expect("the wait ended, so the start did")?;
        bed.add(engine.clone());
        let wait: Arc<dyn crate::api::blocking::BlockOn> = bed.clone();
        let blocking = BlockingEngine::new(engine.clone(), wait);
        Ok(TestEngine { engine, blocking, bed, group })
    }
}
