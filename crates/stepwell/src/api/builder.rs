//! Building an engine: settings, workflows, and the start of all its parts.

use std::sync::{Arc, OnceLock};

use serde::Serialize;
use serde::de::DeserializeOwned;
use stepwell_core::code::Code;
use stepwell_core::id::{Tenant, WorkerId};
use stepwell_core::workflow::Definition;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::blocking;
use super::ctx::Ctx;
use super::engine::{Engine, Inner};
use super::function::IntoWorkflow;
use super::start::bad_name;
use super::step_error::Result as StepResult;
use super::stop::Shutdown;
use super::workflow::{Workflow, WorkflowRef};
use crate::engine::{
    AwaitedRuns, Committer, Config, FunctionParts, MemoWriter, Parts, RegisteredWorkflow, Registry,
    Signaller, Starter, StepBody, StepFn, WorkerSlots,
};
use crate::error::Error;
use crate::ports::{Clock, Codec, DynStore, Ids, JsonCodec, Spawner};
use crate::services::{lead_loop, start_waking};
use crate::wiring::{EngineRuntime, host_name};
use crate::worker::Worker;

type BoundWorkflow = (Definition, Vec<StepBody>, Option<StepFn>);

/// Builds an engine with shared state `S`.
#[must_use = "an engine is started by `.start().await`"]
pub struct EngineBuilder<S> {
    store: DynStore,
    state: Arc<S>,
    config: Config,
    codec: Arc<dyn Codec>,
    app: String,
    worker_id: Option<String>,
    default_tenant: Option<String>,
    workflows: Vec<BoundWorkflow>,
    /// The first workflow that was not well formed.
    refusal: Option<Error>,
    /// Time, tasks and ids other than the real ones.
    runtime: Option<EngineRuntime>,
}

impl EngineBuilder<()> {
    pub(crate) fn new(store: DynStore) -> Self {
        Self {
            store,
            state: Arc::new(()),
            config: Config::default(),
            codec: Arc::new(JsonCodec),
            app: "stepwell".to_owned(),
            worker_id: None,
            default_tenant: None,
            workflows: Vec::new(),
            refusal: None,
            runtime: None,
        }
    }
}

impl<S: Send + Sync + 'static> EngineBuilder<S> {
    /// What `ctx.state()` gives in workflows that are registered after this.
    pub fn state<T: Send + Sync + 'static>(self, state: T) -> EngineBuilder<T> {
        EngineBuilder {
            store: self.store,
            state: Arc::new(state),
            config: self.config,
            codec: self.codec,
            app: self.app,
            worker_id: self.worker_id,
            default_tenant: self.default_tenant,
            workflows: self.workflows,
            refusal: self.refusal,
            runtime: self.runtime,
        }
    }

    /// Other settings than the default ones.
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// A client: it starts, waits, cancels and queries, but executes nothing and never leads.
    pub fn client_only(mut self) -> Self {
        self.config.slots = 0;
        self
    }

    /// Another codec than JSON.
    pub fn codec(mut self, codec: impl Codec) -> Self {
        self.codec = Arc::new(codec);
        self
    }

    /// The application's name, as the first part of the worker's id.
    pub fn app(mut self, app: &str) -> Self {
        app.clone_into(&mut self.app);
        self
    }

    /// The worker's whole id. It must differ from that of every other worker, past ones too.
    pub fn worker_id(mut self, id: &str) -> Self {
        self.worker_id = Some(id.to_owned());
        self
    }

    /// The tenant of starts that name none.
    pub fn default_tenant(mut self, tenant: &str) -> Self {
        self.default_tenant = Some(tenant.to_owned());
        self
    }

    /// Other time, tasks and ids than the real ones, as tests and simulations use.
    pub fn runtime(
        mut self,
        clock: Arc<dyn Clock>,
        spawner: Arc<dyn Spawner>,
        ids: Arc<dyn Ids>,
    ) -> Self {
        self.runtime = Some(EngineRuntime { clock, spawner, ids });
        self
    }

    /// Another clock beside the machine's own tasks and ids, as tests use whose clocks jump. Called
    /// inside a tokio runtime, and after [`config`](Self::config).
    ///
    /// # Errors
    /// Outside of a tokio runtime.
    #[cfg(feature = "testing")]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let real = EngineRuntime::real(self.config.slots)?;
        self.runtime = Some(EngineRuntime { clock, ..real });
        Ok(self)
    }

    /// Puts something around the code of all steps registered so far, as tests do to see which
    /// are being executed.
    #[cfg(feature = "testing")]
    pub(crate) fn wrap_steps(mut self, wrap: impl Fn(StepFn) -> StepFn) -> Self {
        for (_, steps, on_failure) in &mut self.workflows {
            for step in steps {
                step.function = wrap(step.function.clone());
            }
            *on_failure = on_failure.take().map(&wrap);
        }
        self
    }

    /// Registers a workflow or function and gives a handle for starting runs. One that is not well
    /// formed is reported by [`EngineBuilder::start`].
    pub fn workflow<W: IntoWorkflow<S>>(
        &mut self,
        workflow: W,
    ) -> WorkflowRef<W::Input, W::Output> {
        let workflow = workflow.into_workflow();
        let handle = WorkflowRef::new(&workflow);
        let is_twice = self.workflows.iter().any(|known| known.0.workflow == handle.name());
        match workflow.into_parts() {
            Ok(_) if is_twice => {
                let message = format!("workflow {:?} is registered twice", handle.name());
                let _ = self.refusal.get_or_insert(Error::refused(Code::DuplicateName, message));
            }
            Ok(parts) => self.workflows.push(parts.bind(&self.state)),
            Err(error) => {
                let _ = self.refusal.get_or_insert(error);
            }
        }
        handle
    }

    /// Registers a durable function: short for [`EngineBuilder::workflow`] with
    /// [`Workflow::function`], which takes policies as well.
    ///
    /// ```
    /// # use stepwell::{Ctx, Engine, MemoryStore, Result};
    /// async fn greet(ctx: Ctx<String>) -> Result<String> {
    ///     ctx.step("greet", async || Ok(format!("Hello, {}!", ctx.input()))).await
    /// }
    /// # async fn example() -> std::result::Result<(), stepwell::Error> {
    /// let mut builder = Engine::builder(MemoryStore::new());
    /// let greet = builder.function("greet", greet);
    /// let engine = builder.start().await?;
    /// let text = engine.run(&greet, "Ada".to_owned()).tenant("docs").await?;
    /// # drop(text);
    /// # Ok(())
    /// # }
    /// ```
    pub fn function<I, O, F, Fut>(&mut self, name: &str, function: F) -> WorkflowRef<I, O>
    where
        I: DeserializeOwned + Send + Sync + 'static,
        O: Serialize + DeserializeOwned + Send + 'static,
        F: FnOnce(Ctx<I, S>) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = StepResult<O>> + Send + 'static,
    {
        self.workflow(Workflow::function(name, function))
    }

    /// As [`EngineBuilder::function`], as an ordinary function that may block.
    pub fn function_blocking<I, O, F>(&mut self, name: &str, function: F) -> WorkflowRef<I, O>
    where
        I: DeserializeOwned + Send + Sync + 'static,
        O: Serialize + DeserializeOwned + Send + 'static,
        F: Fn(blocking::Ctx<I, S>) -> StepResult<O> + Send + Sync + 'static,
    {
        self.workflow(Workflow::function_blocking(name, function))
    }

    /// Checks everything, registers the workflows in the store, and starts.
    ///
    /// # Errors
    /// When a workflow is not well formed or a setting makes no sense; nothing is stored then.
    /// When the store cannot be reached.
    pub async fn start(self) -> Result<Engine, Error> {
        if let Some(refusal) = self.refusal {
            return Err(refusal);
        }
        self.config.check()?;
        let default_tenant = match self.default_tenant {
            Some(name) => Some(
                Tenant::new(name.clone()).map_err(|why| bad_name("default_tenant", &name, why))?,
            ),
            None => None,
        };
        let EngineRuntime { clock, spawner, ids } = match self.runtime {
            Some(runtime) => runtime,
            None => EngineRuntime::real(self.config.slots)?,
        };
        let worker = worker_id(self.worker_id, &self.app, ids.as_ref())?;
        let parts = Parts {
            store: self.store,
            clock,
            spawner,
            ids,
            codec: self.codec,
            config: self.config,
            worker,
            functions: OnceLock::new(),
            progress_told: Notify::new(),
            closing: CancellationToken::new(),
        };
        let mut workflows = Vec::with_capacity(self.workflows.len());
        for (definition, steps, on_failure) in self.workflows {
            let registered =
                RegisteredWorkflow::register(&parts, definition, steps, on_failure).await?;
            workflows.push(Arc::new(registered));
        }
        start_parts(Arc::new(parts), Registry::new(workflows), default_tenant).await
    }
}

/// Starts the parts of an engine.
async fn start_parts(
    parts: Arc<Parts>,
    registry: Registry,
    default_tenant: Option<Tenant>,
) -> Result<Engine, Error> {
    if let Some(settings) = parts.config.tenant_default {
        parts.patiently(|| parts.store.set_default_tenant(settings)).await?;
    }
    let registry = Arc::new(registry);
    let slots = (parts.config.slots > 0).then(|| WorkerSlots::new(&parts));
    let starter = Starter::start(&parts, &registry, slots.as_ref().map(|(slots, _)| slots));
    let signaller = Signaller::start(&parts);
    let awaited_runs = AwaitedRuns::default();
    start_waking(&parts, &awaited_runs);
    let leading = TaskTracker::new();
    let worker = if let Some(slots) = slots {
        let committer = Committer::start(&parts, &slots.0, &awaited_runs);
        let stopping = slots.0.stopping.clone();
        let functions = FunctionParts { memos: MemoWriter::start(&parts, &slots.0), stopping };
        drop(parts.functions.set(functions));
        let lead = leading.track_future(lead_loop(Arc::clone(&parts)));
        parts.spawner.spawn_apart("leader", Box::pin(lead));
        let started =
            Worker::start(Arc::clone(&parts), Arc::clone(&registry), committer, slots).await;
        if started.is_err() {
            // The loops that were started before must not run on without an engine.
            parts.closing.cancel();
        }
        Some(started?)
    } else {
        None
    };
    let shutdown = Shutdown::new(Arc::clone(&parts), worker.clone(), leading);
    let inner = Inner {
        parts,
        registry,
        starter,
        signaller,
        awaited_runs,
        worker,
        default_tenant,
        shutdown,
    };
    Ok(Engine { inner: Arc::new(inner) })
}

fn worker_id(given: Option<String>, app: &str, ids: &dyn Ids) -> Result<WorkerId, Error> {
    let name = given.unwrap_or_else(|| {
        let random = ids.random() & 0xffff_ffff;
        format!("{app}-{}-{}-{random:08x}", host_name(), std::process::id())
    });
    WorkerId::new(name.clone()).map_err(|why| bad_name("worker id", &name, why))
}
