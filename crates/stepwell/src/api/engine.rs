//! The engine: starts runs, finds them, and stops.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use stepwell_core::code::Code;
use stepwell_core::id::{Node, RunId, Tenant};

use super::builder::EngineBuilder;
use super::run::Run;
use super::run_output::{ReadOutput, read_value};
use super::signal::{Signal, Unaddressed};
use super::start::{Names, NewRun, Start, StartAndWait, bad_name};
use super::stop::Shutdown;
use super::views::RunPage;
use super::workflow::WorkflowRef;
use crate::engine::{AwaitedRuns, Parts, Registry, Signaller, Starter, already_started};
use crate::error::Error;
#[cfg(feature = "cli")]
use crate::ports::{Codec, JsonCodec};
use crate::ports::{RunFilter, StartAnswer, StartRequest, Store, StoredDefinition};
use crate::worker::{StopReport, Worker};

/// How often a start is tried again because the store does not know its definition.
const ANEW_MAX: u32 = 3;

/// Executes workflows on a store. Cheap to clone.
///
/// Dropping the last handle does not wait: nothing is claimed any more, running steps go on to
/// their end, and then the engine closes. Call [`Engine::stop`] to wait for that.
#[derive(Clone)]
pub struct Engine {
    pub(super) inner: Arc<Inner>,
}

/// What all handles of an engine share.
pub(crate) struct Inner {
    pub(super) parts: Arc<Parts>,
    pub(super) registry: Arc<Registry>,
    pub(super) starter: Starter,
    pub(super) signaller: Signaller,
    pub(super) awaited_runs: AwaitedRuns,
    pub(super) worker: Option<Arc<Worker>>,
    pub(super) default_tenant: Option<Tenant>,
    pub(super) shutdown: Arc<Shutdown>,
}

impl Engine {
    /// Begins to build an engine on a store.
    pub fn builder(store: impl Store) -> EngineBuilder<()> {
        EngineBuilder::new(Arc::new(store))
    }

    /// Starts a run. Await it for a handle; give it a tenant and an id before, if need be.
    pub fn start<I: Serialize, O>(&self, workflow: &WorkflowRef<I, O>, input: I) -> Start<O> {
        let (name, read) = (workflow.name(), workflow.read);
        Start::new(Arc::clone(&self.inner), name, &input, Names::default(), read)
    }

    /// Starts a run and waits for its output.
    pub fn run<I: Serialize, O>(&self, workflow: &WorkflowRef<I, O>, input: I) -> StartAndWait<O> {
        StartAndWait(self.start(workflow, input))
    }

    /// Starts a run of a workflow that the store knows, without having its code.
    pub fn start_by_name(&self, workflow: &str, input: &impl Serialize) -> Start<Value> {
        Start::new(Arc::clone(&self.inner), workflow, input, Names::default(), read_value)
    }

    /// Starts many runs together. Each is answered on its own, in order.
    ///
    /// # Errors
    /// When the store cannot be reached; then which runs were started is unknown, and starting
    /// them again with the same ids is safe.
    pub async fn start_many<I: Serialize, O>(
        &self,
        workflow: &WorkflowRef<I, O>,
        runs: impl IntoIterator<Item = NewRun<I>>,
    ) -> Result<Vec<Result<Run<O>, Error>>, Error> {
        let mut answers: Vec<Option<Result<Run<O>, Error>>> = Vec::new();
        let (mut requests, mut places) = (Vec::new(), Vec::new());
        for run in runs {
            let (input, names) = run.into_parts();
            let inner = Arc::clone(&self.inner);
            let start = Start::new(inner, workflow.name(), &input, names, workflow.read);
            match start.request().await {
                Ok((request, stored, _)) => {
                    let names = (request.seed.tenant.clone(), request.seed.id.clone());
                    places.push((answers.len(), request.seed.key, names, stored));
                    requests.push(request);
                    answers.push(None);
                }
                Err(error) => answers.push(Some(Err(error))),
            }
        }
        let stored = self.inner.starter.run_many(requests.clone()).await?;
        let started = places.into_iter().zip(requests).zip(stored);
        for (((place, key, names, mut definition), request), mut answer) in started {
            let inner = Arc::clone(&self.inner);
            if answer.is_of_unknown_definition() {
                let again = inner.start(workflow.name(), request, definition).await?;
                (answer, definition) = again;
            }
            answers[place] = Some(match already_started(answer) {
                Ok(None) => Ok(Run::from_parts(inner, key, names, definition, workflow.read)),
                // It was started before, perhaps on another definition.
                Ok(Some(_)) => inner.find(&names.0, &names.1, workflow.read).await,
                Err(error) => Err(error),
            });
        }
        Ok(answers.into_iter().flatten().collect())
    }

    /// A signal. Address it by [`Signal::to`] or [`Signal::to_waiting`] and await it: it is stored
    /// first, then given to the wait that is for it, also if that opens later.
    ///
    /// ```no_run
    /// # async fn example(engine: stepwell::Engine) -> Result<(), stepwell::Error> {
    /// engine.signal("paid", &4_711).to("customer-7", "order-12").key("evt-123").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn signal(&self, name: &str, payload: &impl Serialize) -> Signal<Unaddressed> {
        Signal::new(Arc::clone(&self.inner), name, payload)
    }

    /// A handle of a run of any workflow, by tenant and id alone.
    ///
    /// # Errors
    /// `SW0013` if the tenant has no such run.
    pub async fn run_handle(&self, tenant: &str, id: &str) -> Result<Run, Error> {
        let (tenant, id) = names(tenant, id)?;
        self.inner.find(&tenant, &id, read_value).await
    }

    /// A typed handle of a run of this workflow, by tenant and id.
    ///
    /// # Errors
    /// `SW0013` if the tenant has no such run of this workflow.
    pub async fn run_handle_of<I, O>(
        &self,
        workflow: &WorkflowRef<I, O>,
        tenant: &str,
        id: &str,
    ) -> Result<Run<O>, Error> {
        let (tenant, id) = names(tenant, id)?;
        let run = self.inner.find(&tenant, &id, workflow.read).await?;
        if run.workflow() != workflow.name() {
            let (known, asked) = (run.workflow(), workflow.name());
            let message = format!("run {:?} is of workflow {known:?}, not {asked:?}", id.as_str());
            return Err(Error::refused(Code::UnknownRun, message));
        }
        Ok(run)
    }

    /// A page of runs, newest first. A page looks at 10,000 runs at most: where few are like the
    /// filter it may have fewer than asked for, and even none, and not be the last. Go on until
    /// [`next`](RunPage::next) is `None`.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub async fn list(
        &self,
        filter: &RunFilter,
        before: Option<stepwell_core::id::RunKey>,
        rows_max: usize,
    ) -> Result<RunPage, Error> {
        self.inner.check_open()?;
        let rows_max = rows_max.clamp(1, stepwell_core::limits::PAGE_ROWS_MAX);
        let parts = &self.inner.parts;
        let page = parts.patiently(|| parts.store.list(filter, before, rows_max)).await?;
        Ok(RunPage::of(page))
    }

    /// The worker's readable id.
    #[must_use]
    pub fn worker_id(&self) -> &str {
        self.inner.parts.worker.as_str()
    }

    /// The names of the workflows whose code this engine has, in order.
    #[cfg(feature = "cli")]
    pub(crate) fn workflows(&self) -> Vec<String> {
        self.inner.registry.names()
    }

    /// Whether this engine has the code that runs on this definition need.
    #[cfg(feature = "cli")]
    pub(crate) fn has_code_of(&self, definition: &StoredDefinition) -> bool {
        self.inner.registry.get(definition).is_some()
    }

    /// Whether payloads are written as JSON.
    #[cfg(feature = "cli")]
    pub(crate) fn writes_json(&self) -> bool {
        self.inner.parts.codec.tag() == JsonCodec.tag()
    }

    /// How many tasks this engine executes right now.
    #[must_use]
    pub fn n_running(&self) -> usize {
        self.inner.worker.as_ref().map_or(0, |worker| worker.n_held())
    }

    /// Stops with the grace period of the configuration.
    pub async fn stop_gracefully(&self) -> StopReport {
        self.stop(self.inner.parts.config.grace).await
    }

    /// Serves until `told` ends, then [stops gracefully](Self::stop_gracefully). With
    /// [`shutdown_signal`](crate::shutdown_signal) this is the last line of a worker's `main`:
    ///
    /// ```no_run
    /// # async fn example(engine: stepwell::Engine) {
    /// let report = engine.stop_when(stepwell::shutdown_signal()).await;
    /// println!("{} tasks drained, {} handed back", report.n_drained, report.n_handed_back);
    /// # }
    /// ```
    pub async fn stop_when(&self, told: impl Future<Output = ()>) -> StopReport {
        told.await;
        self.stop_gracefully().await
    }

    /// The most time that [`Engine::stop`] takes beyond its grace period: 1 s for steps that are
    /// told to stop, 5 s to commit what has ended, 2 s to give up leadership and to close.
    pub const STOP_OVERTIME_MAX: Duration = Shutdown::OVERTIME_MAX;

    /// Stops: claims nothing more, drains running steps for up to `grace` while heartbeats go
    /// on, hands back what has really stopped, gives up leadership, and closes. While it drains,
    /// starts, cancels and reads work as before; once the engine has closed, calls are refused with
    /// `SW0015`.
    ///
    /// There is one stop: whoever calls this waits for the same end and gets the same report, and
    /// of several graces the one that ends first counts. Dropping a call does not undo the stop. It
    /// takes [`STOP_OVERTIME_MAX`](Self::STOP_OVERTIME_MAX) longer than its grace at most.
    pub async fn stop(&self, grace: Duration) -> StopReport {
        self.inner.shutdown.stop(grace).await
    }
}

pub(super) fn names(tenant: &str, id: &str) -> Result<(Tenant, RunId), Error> {
    let bad_id = |why| bad_name("run id", id, why);
    let bad_tenant = |why| bad_name("tenant", tenant, why);
    Ok((Tenant::new(tenant).map_err(bad_tenant)?, RunId::new(id).map_err(bad_id)?))
}

impl Inner {
    pub(super) fn check_open(&self) -> Result<(), Error> {
        if self.parts.closing.is_cancelled() {
            return Err(Error::stopped());
        }
        Ok(())
    }

    pub(super) async fn find<O>(
        self: &Arc<Self>,
        tenant: &Tenant,
        id: &RunId,
        read: ReadOutput<O>,
    ) -> Result<Run<O>, Error> {
        self.check_open()?;
        let view = self.parts.patiently(|| self.parts.store.find(tenant, id)).await?;
        let view = view.ok_or_else(|| {
            let (tenant, id) = (tenant.as_str(), id.as_str());
            Error::refused(Code::UnknownRun, format!("tenant {tenant:?} has no run {id:?}"))
        })?;
        Ok(Run::new(Arc::clone(self), view, read))
    }

    /// Starts a run on the definition that its workflow has. Where the store does not know that
    /// one, since it was restored or made anew, the workflows are registered again, and so is
    /// the start tried again.
    pub(super) async fn start(
        &self,
        workflow: &str,
        mut request: StartRequest,
        mut stored: Arc<StoredDefinition>,
    ) -> Result<(StartAnswer, Arc<StoredDefinition>), Error> {
        let mut n_tries = 0;
        loop {
            let answer = self.starter.run(request.clone()).await?;
            let StartAnswer::Refused(error) = &answer else { return Ok((answer, stored)) };
            n_tries += 1;
            if !error.is_unknown_definition() || n_tries > ANEW_MAX {
                return Ok((answer, stored));
            }
            let parts = &self.parts;
            parts.patiently(|| self.registry.register_anew(parts, [request.mark])).await?;
            stored = self.stored_definition(workflow).await?;
            (request.seed.definition, request.mark) = (stored.id, stored.mark);
        }
    }

    /// The definition new runs of a workflow get: that of this engine's code, or the latest the
    /// store has.
    pub(super) async fn stored_definition(
        &self,
        workflow: &str,
    ) -> Result<Arc<StoredDefinition>, Error> {
        if let Some(known) = self.registry.find(workflow) {
            return Ok(Arc::clone(&known.stored));
        }
        let latest = self.parts.patiently(|| self.parts.store.latest(workflow)).await?;
        latest.ok_or_else(|| {
            let message = format!("workflow {workflow:?} is neither registered nor stored");
            Error::refused(Code::UnknownWorkflow, message)
        })
    }

    /// A step's name, by its number as this program declares it.
    pub(super) fn step_name(&self, workflow: &str, node: Node) -> Option<String> {
        let known = self.registry.find(workflow)?;
        known.declared.graph.name(node).map(str::to_owned)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shutdown.abandon();
    }
}
