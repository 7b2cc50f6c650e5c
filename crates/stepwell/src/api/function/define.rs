//! Declaring a function: a workflow of one step whose context does more.

use std::future::Future;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use stepwell_core::retry::Retry;
use stepwell_core::run::RunFailure;
use stepwell_core::workflow::{NodeKind, Placement};

use crate::api::blocking;
use crate::api::bound::{UnboundFn, no_args, unbound_async, unbound_blocking};
use crate::api::ctx::Ctx;
use crate::api::step::StepDeclaration;
use crate::api::step_error::Result;
use crate::api::step_ref::{Always, StepRef};
use crate::api::workflow::{Definer, Workflow};
use crate::error::Error;

/// A durable function with input `I`, output `O` and shared state `S`, while it is declared:
/// [`EngineBuilder::workflow`](crate::EngineBuilder::workflow) takes it as it is.
#[must_use = "a function is registered by `builder.workflow(..)`"]
pub struct Function<I, O, S = ()> {
    definer: Definer<I, S>,
    declared: StepDeclaration,
    code: UnboundFn<S>,
    complete: Complete<I, O, S>,
}

/// Completes a workflow with the step that gives its output.
type Complete<I, O, S> = fn(Definer<I, S>, StepRef<O, Always>) -> Workflow<I, O, S>;

/// What an engine can register: a [`Workflow`], or a [`Function`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be registered by an engine whose state is `{S}`",
    label = "no workflow or function with this state",
    note = "what workflows share is given to the builder before them, by `builder.state(..)`"
)]
pub trait IntoWorkflow<S> {
    /// The input of its runs.
    type Input;
    /// The output of its runs.
    type Output;

    /// The workflow.
    fn into_workflow(self) -> Workflow<Self::Input, Self::Output, S>;
}

impl<I, O, S> IntoWorkflow<S> for Workflow<I, O, S> {
    type Input = I;
    type Output = O;

    fn into_workflow(self) -> Self {
        self
    }
}

impl<I, O, S> IntoWorkflow<S> for Function<I, O, S> {
    type Input = I;
    type Output = O;

    fn into_workflow(mut self) -> Workflow<I, O, S> {
        let step = self.declared.add(&mut self.definer, NodeKind::Step, self.code);
        (self.complete)(self.definer, step)
    }
}

impl Workflow<(), (), ()> {
    /// A durable function: ordinary async code whose steps, sleeps and waits are recorded, so that
    /// it goes on where it was after a crash, a deploy or a long wait.
    ///
    /// ```
    /// # use stepwell::{Ctx, Result, Retry, Workflow};
    /// async fn greet(ctx: Ctx<String>) -> Result<String> {
    ///     let name = ctx.step("upper", async || Ok(ctx.input().to_uppercase())).await?;
    ///     ctx.step("greet", async || Ok(format!("Hello, {name}!"))).await
    /// }
    /// let greet = Workflow::function("greet", greet).retry(Retry::exponential(3));
    /// # use stepwell::IntoWorkflow;
    /// # assert!(greet.into_workflow().check().is_ok());
    /// ```
    pub fn function<I, O, S, F, Fut>(name: &str, function: F) -> Function<I, O, S>
    where
        I: DeserializeOwned + Send + Sync + 'static,
        S: Send + Sync + 'static,
        O: Serialize + DeserializeOwned + Send + 'static,
        F: FnOnce(Ctx<I, S>) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<O>> + Send + 'static,
    {
        let call = move |ctx: Ctx<I, S>, ()| function(ctx.into_function());
        Function::new(name, unbound_async(no_args, call), false)
    }

    /// As [`Workflow::function`], as an ordinary function that may block.
    ///
    /// ```
    /// # use stepwell::{Result, Workflow, blocking};
    /// fn greet(ctx: blocking::Ctx<String>) -> Result<String> {
    ///     let name = ctx.step("upper", || Ok(ctx.input().to_uppercase())).wait()?;
    ///     ctx.step("greet", || Ok(format!("Hello, {name}!"))).wait()
    /// }
    /// let greet = Workflow::function_blocking("greet", greet);
    /// # use stepwell::IntoWorkflow;
    /// # assert!(greet.into_workflow().check().is_ok());
    /// ```
    pub fn function_blocking<I, O, S, F>(name: &str, function: F) -> Function<I, O, S>
    where
        I: DeserializeOwned + Send + Sync + 'static,
        S: Send + Sync + 'static,
        O: Serialize + DeserializeOwned + Send + 'static,
        F: Fn(blocking::Ctx<I, S>) -> Result<O> + Send + Sync + 'static,
    {
        let call = move |ctx: blocking::Ctx<I, S>, ()| function(ctx.into_function());
        Function::new(name, unbound_blocking(no_args, call), true)
    }
}

impl<I, O, S> Function<I, O, S>
where
    I: DeserializeOwned + Send + Sync + 'static,
    O: DeserializeOwned + Send + 'static,
    S: Send + Sync + 'static,
{
    fn new(name: &str, code: UnboundFn<S>, is_blocking: bool) -> Self {
        let mut declared = StepDeclaration::new(name, Placement::Explicit(Vec::new()));
        declared.policy.is_blocking = is_blocking;
        let definer = Workflow::define(name);
        Self { definer, declared, code, complete: |definer, step| definer.output(step) }
    }

    /// When the function is tried again after an error that it returns. What it has recorded
    /// stays, but for the errors after the last thing that went well.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.declared.policy.retry = retry;
        self
    }

    /// How long one execution may take, from a start or a wake-up to its end or its next wait. The
    /// deadline bounds the whole run.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.declared.policy.timeout = Some(timeout);
        self
    }

    /// How long an execution may go without `ctx.heartbeat()` before it counts as hung.
    pub fn heartbeat_timeout(mut self, timeout: Duration) -> Self {
        self.declared.policy.heartbeat_timeout = Some(timeout);
        self
    }

    /// The queue its tasks wait in; workers choose the queues they serve.
    pub fn queue(mut self, queue: &str) -> Self {
        self.declared.queue_given = Some(queue.to_owned());
        self
    }

    /// How long a run may take, unless its start says otherwise.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.definer.deadline(deadline);
        self
    }

    /// Gives the function a version of its author's. Builds with different versions do not share
    /// runs; without one they do.
    pub fn version(mut self, version: u32) -> Self {
        self.definer.version(version);
        self
    }

    /// Runs once each time a run comes to fail, with the failure that decided it.
    pub fn on_failure<F, Fut>(mut self, handler: F) -> Self
    where
        F: FnOnce(Ctx<I, S>, RunFailure) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        self.definer.on_failure(handler);
        self
    }

    /// As [`Function::on_failure`], as an ordinary closure that may block.
    pub fn on_failure_blocking<F>(mut self, handler: F) -> Self
    where
        F: Fn(blocking::Ctx<I, S>, RunFailure) -> Result<()> + Send + Sync + 'static,
    {
        self.definer.on_failure_blocking(handler);
        self
    }

    /// Checks the function's declaration without an engine.
    ///
    /// # Errors
    /// With the first thing that is wrong.
    pub fn check(self) -> std::result::Result<(), Error> {
        self.into_workflow().check()
    }
}
