//! Building an engine on virtual time.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::runtime::TestRuntime;
use super::stuck::Stuck;
use super::{ManualScheduler, TestEngine};
use crate::api::blocking::{self, BlockOn};
use crate::api::{Ctx, Engine, EngineBuilder, IntoWorkflow, Result as StepResult, WorkflowRef};
use crate::engine::Config;
use crate::error::Error;
use crate::ports::Codec;

/// Builds a [`TestEngine`].
#[must_use = "an engine is started by `.start()`"]
pub struct TestEngineBuilder<S> {
    builder: EngineBuilder<S>,
    config: Config,
    runtime: Arc<TestRuntime>,
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

impl TestEngineBuilder<()> {
    pub(super) fn new(runtime: Arc<TestRuntime>) -> Self {
        let world = &runtime.world;
        let group = world.scheduler.group();
        let (clock, ids) = (Arc::new(world.clock.clone()), Arc::clone(&world.ids));
        let builder = Engine::builder(world.store.clone()).default_tenant("test").runtime(
            clock,
            Arc::new(group.clone()),
            ids,
        );
        Self { builder, config: test_config(), runtime, group }
    }
}

impl<S: Send + Sync + 'static> TestEngineBuilder<S> {
    /// What `ctx.state()` gives in workflows that are registered after this.
    pub fn state<T: Send + Sync + 'static>(self, state: T) -> TestEngineBuilder<T> {
        let Self { builder, config, runtime, group } = self;
        TestEngineBuilder { builder: builder.state(state), config, runtime, group }
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

    /// Another seed for ids and chance than 0, for all engines of the test. Give it to the first
    /// one, before it starts. A store that held runs of another `TestEngine` needs another seed.
    pub fn seed(self, seed: u64) -> Self {
        self.runtime.world.ids.reseed(seed);
        self
    }

    /// The most real time that a step, or a call of the store, may take; 10 s unless set. It holds
    /// for all engines of the test.
    ///
    /// Virtual time stands still while a step waits for something outside the test: a timer of
    /// tokio's, a socket, a thread. After this span of real time a test that waits for the step's
    /// end fails and names it; calls that move time as told go on without it.
    pub fn real_time_max(self, span: Duration) -> Self {
        self.runtime.world.scheduler.set_real_time_max(span);
        self
    }

    /// Registers a workflow or function and gives a handle for starting runs.
    pub fn workflow<W: IntoWorkflow<S>>(
        &mut self,
        workflow: W,
    ) -> WorkflowRef<W::Input, W::Output> {
        self.builder.workflow(workflow)
    }

    /// Registers a durable function.
    pub fn function<I, O, F, Fut>(&mut self, name: &str, function: F) -> WorkflowRef<I, O>
    where
        I: DeserializeOwned + Send + Sync + 'static,
        O: Serialize + DeserializeOwned + Send + 'static,
        F: FnOnce(Ctx<I, S>) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = StepResult<O>> + Send + 'static,
    {
        self.builder.function(name, function)
    }

    /// Registers a durable function that may block.
    pub fn function_blocking<I, O, F>(&mut self, name: &str, function: F) -> WorkflowRef<I, O>
    where
        I: DeserializeOwned + Send + Sync + 'static,
        O: Serialize + DeserializeOwned + Send + 'static,
        F: Fn(blocking::Ctx<I, S>) -> StepResult<O> + Send + Sync + 'static,
    {
        self.builder.function_blocking(name, function)
    }

    /// Checks everything, and starts.
    ///
    /// # Errors
    /// As the engine's own builder.
    ///
    /// # Panics
    /// When the store does not answer.
    #[track_caller]
    pub fn start(self) -> Result<TestEngine, Error> {
        let Self { builder, config, runtime, group } = self;
        let executions = runtime.world.executions.clone();
        let builder = builder.config(config).wrap_steps(|code| executions.observe(code));
        let slot = Arc::new(std::sync::Mutex::new(None));
        let filled = Arc::clone(&slot);
        let started = runtime.block_on(Box::pin(async move {
            let engine = builder.start().await;
            *filled.lock().expect("no holder of the lock panics") = Some(engine);
        }));
        if let Err(Stuck(why)) = started {
            panic!("{why}");
        }
        let engine = slot.lock().expect("no holder of the lock panics").take();
        let engine = engine.expect("the wait ended, so the start did")?;
        Ok(TestEngine::new(engine, runtime, group))
    }
}
