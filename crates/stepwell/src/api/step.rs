//! Declaring a step: parents, conditions, policies, and at last its code.

use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use stepwell_core::id::Queue;
use stepwell_core::retry::Retry;
use stepwell_core::workflow::{DraftStep, NodeKind, Placement, StepPolicy};

use super::blocking;
use super::bound::{UnboundFn, UnboundStep, no_args, parent_args, unbound_async, unbound_blocking};
use super::ctx::Ctx;
use super::parents::Parents;
use super::step_error::Result;
use super::step_ref::{Always, Kind, Maybe, StepRef};
use super::workflow::Definer;
use crate::engine::Condition;

/// A step without parents: its closure gets the context only.
#[derive(Debug)]
pub enum Root {}

/// A step with parents `P`: its closure gets the context and what they left.
#[derive(Debug)]
pub struct After<P>(PhantomData<fn() -> P>);

/// The declaration of a step so far.
pub(super) struct StepDeclaration {
    pub(super) name: String,
    pub(super) placement: Placement,
    pub(super) policy: StepPolicy,
    pub(super) queue_given: Option<String>,
    pub(super) skip_if: Vec<Condition>,
}

impl StepDeclaration {
    pub(super) fn new(name: &str, placement: Placement) -> Self {
        let policy = StepPolicy::default();
        let (skip_if, queue_given) = (Vec::new(), None);
        Self { name: name.to_owned(), placement, policy, queue_given, skip_if }
    }

    /// The step's code blocks its thread.
    pub(super) fn blocking(mut self) -> Self {
        self.policy.is_blocking = true;
        self
    }

    /// Adds the step to its workflow and gives its handle.
    pub(super) fn add<I, S, T, K>(
        mut self,
        workflow: &mut Definer<I, S>,
        kind: NodeKind,
        function: UnboundFn<S>,
    ) -> StepRef<T, K> {
        if let Some(name) = self.queue_given.take() {
            match Queue::new(name.clone()) {
                Ok(queue) => self.policy.queue = queue,
                Err(why) => workflow.refuse_queue(&self.name, &name, why),
            }
        }
        let Self { name, placement, policy, skip_if, .. } = self;
        let step = DraftStep { name, kind, placement, policy };
        workflow.add(step, UnboundStep { function, skip_if })
    }
}

/// Declares a step. Nothing is added until `run` or `run_blocking` gives its code.
#[must_use = "a step is added by `.run(..)` or `.run_blocking(..)`"]
pub struct StepBuilder<'w, I, S, P, K> {
    workflow: &'w mut Definer<I, S>,
    declared: StepDeclaration,
    types: PhantomData<fn() -> (P, K)>,
}

impl<'w, I, S> StepBuilder<'w, I, S, Root, Always> {
    pub(super) fn new(workflow: &'w mut Definer<I, S>, name: &str) -> Self {
        let declared = StepDeclaration::new(name, Placement::Explicit(Vec::new()));
        Self { workflow, declared, types: PhantomData }
    }

    /// After these parents: one step, a tuple of up to eight, or a `Vec`.
    pub fn after<P: Parents>(mut self, parents: P) -> StepBuilder<'w, I, S, After<P>, P::Kind> {
        self.declared.placement = Placement::Explicit(parents.parent_refs());
        self.retype()
    }
}

impl<'w, I, S, P, K> StepBuilder<'w, I, S, P, K> {
    fn retype<Q, L>(self) -> StepBuilder<'w, I, S, Q, L> {
        StepBuilder { workflow: self.workflow, declared: self.declared, types: PhantomData }
    }

    /// When the step is tried again after a failure. Without it, the first failure is final.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.declared.policy.retry = retry;
        self
    }

    /// How long one execution may take. An async step is dropped then; a blocking one is told
    /// to stop and keeps its slot until it returns. Either way the attempt has failed.
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
}

impl<'w, I, S, P: Parents, K: Kind> StepBuilder<'w, I, S, After<P>, K> {
    /// Skips the step if the condition holds for what its parents left. Of several conditions
    /// any one is enough. One that panics fails the step.
    pub fn skip_if(
        mut self,
        condition: impl Fn(&P::Args) -> bool + Send + Sync + 'static,
    ) -> StepBuilder<'w, I, S, After<P>, Maybe> {
        self.declared.skip_if.push(Arc::new(move |args| Ok(condition(&parent_args::<P>(args)?))));
        self.retype()
    }

    /// Runs the step only if the condition holds: the opposite of [`StepBuilder::skip_if`].
    pub fn when(
        self,
        condition: impl Fn(&P::Args) -> bool + Send + Sync + 'static,
    ) -> StepBuilder<'w, I, S, After<P>, Maybe> {
        self.skip_if(move |args| !condition(args))
    }
}

impl<I, S, K> StepBuilder<'_, I, S, Root, K>
where
    I: DeserializeOwned + Send + Sync + 'static,
    S: Send + Sync + 'static,
    K: Kind,
{
    /// Gives the step's code, as an async closure of the context.
    pub fn run<O, F, Fut>(self, closure: F) -> StepRef<O, K>
    where
        O: Serialize + Send + 'static,
        F: FnOnce(Ctx<I, S>) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<O>> + Send + 'static,
    {
        let function = unbound_async(no_args, move |ctx, ()| closure(ctx));
        self.declared.add(self.workflow, NodeKind::Step, function)
    }

    /// Gives the step's code, as an ordinary closure of the context. It runs on a thread of its
    /// own and may block.
    pub fn run_blocking<O, F>(self, closure: F) -> StepRef<O, K>
    where
        O: Serialize + Send + 'static,
        F: Fn(blocking::Ctx<I, S>) -> Result<O> + Send + Sync + 'static,
    {
        let function = unbound_blocking(no_args, move |ctx, ()| closure(ctx));
        self.declared.blocking().add(self.workflow, NodeKind::Step, function)
    }
}

impl<I, S, P, K> StepBuilder<'_, I, S, After<P>, K>
where
    I: DeserializeOwned + Send + Sync + 'static,
    S: Send + Sync + 'static,
    P: Parents,
    K: Kind,
{
    /// Gives the step's code, as an async closure of the context and what the parents left.
    pub fn run<O, F, Fut>(self, closure: F) -> StepRef<O, K>
    where
        O: Serialize + Send + 'static,
        F: FnOnce(Ctx<I, S>, P::Args) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<O>> + Send + 'static,
    {
        let function = unbound_async(parent_args::<P>, closure);
        self.declared.add(self.workflow, NodeKind::Step, function)
    }

    /// Gives the step's code, as an ordinary closure of the context and what the parents left.
    /// It runs on a thread of its own and may block.
    pub fn run_blocking<O, F>(self, closure: F) -> StepRef<O, K>
    where
        O: Serialize + Send + 'static,
        F: Fn(blocking::Ctx<I, S>, P::Args) -> Result<O> + Send + Sync + 'static,
    {
        let function = unbound_blocking(parent_args::<P>, closure);
        self.declared.blocking().add(self.workflow, NodeKind::Step, function)
    }
}
