//! Declaring a chain member: a step whose parent is whatever stands before it.

use std::future::Future;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use stepwell_core::retry::Retry;
use stepwell_core::workflow::{Anchor, Insertion, NodeKind, ParentRef, Placement};

use super::blocking;
use super::bound::{no_args, unbound_async, unbound_blocking};
use super::ctx::Ctx;
use super::parents::Parents;
use super::step::StepDeclaration;
use super::step_error::Result;
use super::step_ref::{Maybe, StepRef};
use super::workflow::Definer;

/// Declares a chain member. Its parent is bound when the workflow is complete, so its closure
/// gets the context only and reads others by `ctx.output(&step)`. For the same reason it may be
/// skipped as far as types can tell: with what stands before it.
#[must_use = "a chain member is added by `.run(..)` or `.run_blocking(..)`"]
pub struct ChainBuilder<'w, I, S> {
    workflow: &'w mut Definer<I, S>,
    declared: StepDeclaration,
}

impl<'w, I, S> ChainBuilder<'w, I, S> {
    pub(super) fn new(workflow: &'w mut Definer<I, S>, name: &str) -> Self {
        let placement = Placement::Chain { insertion: None, instead: None, also: Vec::new() };
        Self { workflow, declared: StepDeclaration::new(name, placement) }
    }

    /// Inserted right after another chain member, which may be declared later. Of several at one
    /// place the last declared stands next to it.
    pub fn after_step(self, name: &str) -> Self {
        self.insert(Anchor::After, name)
    }

    /// Inserted right before another chain member, which may be declared later.
    pub fn before_step(self, name: &str) -> Self {
        self.insert(Anchor::Before, name)
    }

    /// After exactly these parents instead of what stands before it. Later members go on from
    /// here.
    pub fn after(mut self, parents: impl Parents) -> Self {
        if let Placement::Chain { instead, .. } = &mut self.declared.placement {
            *instead = Some(parents.parent_refs());
        }
        self
    }

    /// After these parents as well.
    pub fn also_after(mut self, parents: impl Parents) -> Self {
        if let Placement::Chain { also, .. } = &mut self.declared.placement {
            also.extend(parents.parent_refs());
        }
        self
    }

    /// After this step as well, by name.
    pub fn also_after_step(mut self, name: &str) -> Self {
        if let Placement::Chain { also, .. } = &mut self.declared.placement {
            also.push(ParentRef::Name(name.to_owned()));
        }
        self
    }

    /// When the step is tried again after a failure.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.declared.policy.retry = retry;
        self
    }

    /// How long one execution may take.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.declared.policy.timeout = Some(timeout);
        self
    }

    /// How long an execution may go without `ctx.heartbeat()` before it counts as hung.
    pub fn heartbeat_timeout(mut self, timeout: Duration) -> Self {
        self.declared.policy.heartbeat_timeout = Some(timeout);
        self
    }

    /// The queue its tasks wait in.
    pub fn queue(mut self, queue: &str) -> Self {
        self.declared.queue_given = Some(queue.to_owned());
        self
    }

    fn insert(mut self, anchor: Anchor, step: &str) -> Self {
        if let Placement::Chain { insertion, .. } = &mut self.declared.placement {
            *insertion = Some(Insertion { anchor, step: step.to_owned() });
        }
        self
    }
}

impl<I, S> ChainBuilder<'_, I, S>
where
    I: DeserializeOwned + Send + Sync + 'static,
    S: Send + Sync + 'static,
{
    /// Gives the member's code, as an async closure.
    pub fn run<O, F, Fut>(self, closure: F) -> StepRef<O, Maybe>
    where
        O: Serialize + Send + 'static,
        F: FnOnce(Ctx<I, S>) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<O>> + Send + 'static,
    {
        let function = unbound_async(no_args, move |ctx, ()| closure(ctx));
        self.declared.add(self.workflow, NodeKind::Step, function)
    }

    /// Gives the member's code, as an ordinary closure that may block.
    pub fn run_blocking<O, F>(self, closure: F) -> StepRef<O, Maybe>
    where
        O: Serialize + Send + 'static,
        F: Fn(blocking::Ctx<I, S>) -> Result<O> + Send + Sync + 'static,
    {
        let function = unbound_blocking(no_args, move |ctx, ()| closure(ctx));
        self.declared.blocking().add(self.workflow, NodeKind::Step, function)
    }
}
