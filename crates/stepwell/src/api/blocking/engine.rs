use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use stepwell_core::id::RunKey;

use super::block_on::{BlockOn, answer_of};
use super::{EngineBuilder, Run, Signal, Start, StartAndWait};
use crate::api::{Engine as AsyncEngine, NewRun, RunPage, Unaddressed, WorkflowRef};
use crate::error::Error;
use crate::ports::{RunFilter, Store, TenantSettings, TenantView};
use crate::worker::StopReport;

/// An engine whose calls wait. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    engine: AsyncEngine,
    runtime: Arc<dyn BlockOn>,
}

impl Engine {
    /// Begins to build an engine on a store.
    pub fn builder(store: impl Store) -> EngineBuilder<()> {
        EngineBuilder(AsyncEngine::builder(store))
    }

    pub(crate) fn new(engine: AsyncEngine, runtime: Arc<dyn BlockOn>) -> Self {
        Self { engine, runtime }
    }

    /// Starts a run: give it a tenant and an id if need be, then call `now`.
    pub fn start<I: Serialize, O: 'static>(
        &self,
        workflow: &WorkflowRef<I, O>,
        input: I,
    ) -> Start<O> {
        Start::new(self.engine.start(workflow, input), Arc::clone(&self.runtime))
    }

    /// Starts a run and waits for its output: call `wait`.
    pub fn run<I: Serialize, O: Send + 'static>(
        &self,
        workflow: &WorkflowRef<I, O>,
        input: I,
    ) -> StartAndWait<O> {
        StartAndWait::new(self.engine.run(workflow, input), Arc::clone(&self.runtime))
    }

    /// Starts a run of a workflow that the store knows, without having its code.
    pub fn start_by_name(&self, workflow: &str, input: &impl Serialize) -> Start<Value> {
        Start::new(self.engine.start_by_name(workflow, input), Arc::clone(&self.runtime))
    }

    /// Starts many runs together. Each is answered on its own, in order.
    ///
    /// # Errors
    /// When the store cannot be reached.
    #[track_caller]
    pub fn start_many<I, O>(
        &self,
        workflow: &WorkflowRef<I, O>,
        runs: impl IntoIterator<Item = NewRun<I>>,
    ) -> Result<Vec<Result<Run<O>, Error>>, Error>
    where
        I: Serialize + Send + Sync + 'static,
        O: 'static,
    {
        let (engine, workflow) = (self.engine.clone(), workflow.clone());
        let runs: Vec<NewRun<I>> = runs.into_iter().collect();
        let started = self.block_on(async move { engine.start_many(&workflow, runs).await })?;
        let wrap = |run: Result<_, _>| run.map(|run| Run::new(run, Arc::clone(&self.runtime)));
        Ok(started.into_iter().map(wrap).collect())
    }

    /// A signal: address it by `to` or `to_waiting`, then call `wait`.
    pub fn signal(&self, name: &str, payload: &impl Serialize) -> Signal<Unaddressed> {
        Signal::new(self.engine.signal(name, payload), Arc::clone(&self.runtime))
    }

    /// A handle of a run of any workflow, by tenant and id alone.
    ///
    /// # Errors
    /// `SW0013` if the tenant has no such run.
    #[track_caller]
    pub fn run_handle(&self, tenant: &str, id: &str) -> Result<Run, Error> {
        let (engine, tenant, id) = (self.engine.clone(), tenant.to_owned(), id.to_owned());
        let run = self.block_on(async move { engine.run_handle(&tenant, &id).await })?;
        Ok(Run::new(run, Arc::clone(&self.runtime)))
    }

    /// A typed handle of a run of this workflow, by tenant and id.
    ///
    /// # Errors
    /// `SW0013` if the tenant has no such run of this workflow.
    #[track_caller]
    pub fn run_handle_of<I: 'static, O: 'static>(
        &self,
        workflow: &WorkflowRef<I, O>,
        tenant: &str,
        id: &str,
    ) -> Result<Run<O>, Error> {
        let (engine, workflow) = (self.engine.clone(), workflow.clone());
        let (tenant, id) = (tenant.to_owned(), id.to_owned());
        let run =
            self.block_on(async move { engine.run_handle_of(&workflow, &tenant, &id).await })?;
        Ok(Run::new(run, Arc::clone(&self.runtime)))
    }

    /// A page of runs, newest first.
    ///
    /// # Errors
    /// When the store cannot be reached.
    #[track_caller]
    pub fn list(
        &self,
        filter: RunFilter,
        before: Option<RunKey>,
        rows_max: usize,
    ) -> Result<RunPage, Error> {
        let engine = self.engine.clone();
        self.block_on(async move { engine.list(&filter, before, rows_max).await })
    }

    /// Sets a tenant's weight and limit, at once and for all workers.
    ///
    /// # Errors
    /// When a value makes no sense, or the store cannot be reached.
    #[track_caller]
    pub fn set_tenant(&self, tenant: &str, settings: TenantSettings) -> Result<(), Error> {
        let (engine, tenant) = (self.engine.clone(), tenant.to_owned());
        self.block_on(async move { engine.set_tenant(&tenant, settings).await })
    }

    /// A tenant's settings and how much of its work waits and runs.
    ///
    /// # Errors
    /// When the store cannot be reached.
    #[track_caller]
    pub fn tenant(&self, tenant: &str) -> Result<Option<TenantView>, Error> {
        let (engine, tenant) = (self.engine.clone(), tenant.to_owned());
        self.block_on(async move { engine.tenant(&tenant).await })
    }

    /// The worker's readable id.
    #[must_use]
    pub fn worker_id(&self) -> &str {
        self.engine.worker_id()
    }

    /// Stops with the grace period of the configuration.
    ///
    /// # Errors
    /// `SW0024` inside an async context.
    #[track_caller]
    pub fn stop_gracefully(&self) -> Result<StopReport, Error> {
        let engine = self.engine.clone();
        self.block_on(async move { Ok(engine.stop_gracefully().await) })
    }

    /// Stops: see the async engine's `stop`.
    ///
    /// # Errors
    /// `SW0024` inside an async context.
    #[track_caller]
    pub fn stop(&self, grace: Duration) -> Result<StopReport, Error> {
        let engine = self.engine.clone();
        self.block_on(async move { Ok(engine.stop(grace).await) })
    }

    #[track_caller]
    fn block_on<T, F>(&self, future: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        answer_of(self.runtime.as_ref(), future)
    }
}
