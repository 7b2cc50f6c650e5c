use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::block_on::{OwnRuntime, answer_of};
use super::{Ctx, Engine};
use crate::api::{EngineBuilder as AsyncBuilder, IntoWorkflow, Result as StepResult, WorkflowRef};
use crate::engine::Config;
use crate::error::Error;
use crate::ports::Codec;

/// Builds an engine whose calls wait.
#[must_use = "an engine is started by `.start()`"]
pub struct EngineBuilder<S>(pub(super) AsyncBuilder<S>);

impl<S: Send + Sync + 'static> EngineBuilder<S> {
    /// What `ctx.state()` gives in workflows that are registered after this.
    pub fn state<T: Send + Sync + 'static>(self, state: T) -> EngineBuilder<T> {
        EngineBuilder(self.0.state(state))
    }

    /// Other settings than the default ones.
    pub fn config(self, config: Config) -> Self {
        Self(self.0.config(config))
    }

    /// A client: it starts, waits, cancels and queries, but executes nothing.
    pub fn client_only(self) -> Self {
        Self(self.0.client_only())
    }

    /// Another codec than JSON.
    pub fn codec(self, codec: impl Codec) -> Self {
        Self(self.0.codec(codec))
    }

    /// The application's name, as the first part of the worker's id.
    pub fn app(self, app: &str) -> Self {
        Self(self.0.app(app))
    }

    /// The worker's whole id.
    pub fn worker_id(self, id: &str) -> Self {
        Self(self.0.worker_id(id))
    }

    /// The tenant of starts that name none.
    pub fn default_tenant(self, tenant: &str) -> Self {
        Self(self.0.default_tenant(tenant))
    }

    /// Registers a workflow or function and gives a handle for starting runs.
    pub fn workflow<W: IntoWorkflow<S>>(
        &mut self,
        workflow: W,
    ) -> WorkflowRef<W::Input, W::Output> {
        self.0.workflow(workflow)
    }

    /// Registers a durable function that may block. See
    /// [`Workflow::function_blocking`](crate::Workflow::function_blocking).
    pub fn function<I, O, F>(&mut self, name: &str, function: F) -> WorkflowRef<I, O>
    where
        I: DeserializeOwned + Send + Sync + 'static,
        O: Serialize + DeserializeOwned + Send + 'static,
        F: Fn(Ctx<I, S>) -> StepResult<O> + Send + Sync + 'static,
    {
        self.0.function_blocking(name, function)
    }

    /// Checks everything, registers the workflows in the store, and starts.
    ///
    /// # Errors
    /// `SW0024` inside an async context; else as the async builder's `start`.
    pub fn start(self) -> Result<Engine, Error> {
        let runtime = Arc::new(OwnRuntime::new()?);
        let engine = answer_of(runtime.as_ref(), self.0.start())?;
        Ok(Engine::new(engine, runtime))
    }
}
