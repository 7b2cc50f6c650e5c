//! Declaring a sleep: a step without code that a timer completes.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use stepwell_core::workflow::{NodeKind, Placement};

use super::bound::{parent_args, unbound_sleep};
use super::parents::Parents;
use super::step::{After, Root, StepDeclaration};
use super::step_ref::{Always, Kind, Maybe, StepRef};
use super::workflow::Definer;

/// Declares a sleep. Nothing is added until `after` or `from_start` places it.
#[must_use = "a sleep is added by `.after(..)` or `.from_start()`"]
pub struct SleepBuilder<'w, I, S, P = Root, K = Always> {
    workflow: &'w mut Definer<I, S>,
    declared: StepDeclaration,
    types: PhantomData<fn() -> (P, K)>,
}

impl<'w, I, S> SleepBuilder<'w, I, S> {
    pub(super) fn new(workflow: &'w mut Definer<I, S>, name: &str, span: Duration) -> Self {
        let mut declared = StepDeclaration::new(name, Placement::Explicit(Vec::new()));
        declared.policy.sleep = span;
        Self { workflow, declared, types: PhantomData }
    }

    /// Sleeps once these parents are done.
    pub fn after<P: Parents>(mut self, parents: P) -> StepRef<(), P::Kind> {
        self.declared.placement = Placement::Explicit(parents.parent_refs());
        self.declared.add(self.workflow, NodeKind::Sleep, unbound_sleep())
    }

    /// Sleeps from the start of the run.
    pub fn from_start(self) -> StepRef<(), Always> {
        self.declared.add(self.workflow, NodeKind::Sleep, unbound_sleep())
    }

    /// Sleeps once these parents are done, unless a condition on them says otherwise.
    pub fn after_if<P: Parents>(mut self, parents: P) -> SleepBuilder<'w, I, S, After<P>, P::Kind> {
        self.declared.placement = Placement::Explicit(parents.parent_refs());
        SleepBuilder { workflow: self.workflow, declared: self.declared, types: PhantomData }
    }
}

impl<I, S, P: Parents, K: Kind> SleepBuilder<'_, I, S, After<P>, K> {
    /// The queue in which its conditions wait for a worker.
    pub fn queue(mut self, queue: &str) -> Self {
        self.declared.queue_given = Some(queue.to_owned());
        self
    }

    /// Skips the sleep if the condition holds for the outputs of its parents.
    pub fn skip_if(
        mut self,
        condition: impl Fn(&P::Args) -> bool + Send + Sync + 'static,
    ) -> StepRef<(), Maybe> {
        self.declared.skip_if.push(Arc::new(move |args| Ok(condition(&parent_args::<P>(args)?))));
        self.declared.add(self.workflow, NodeKind::ConditionalSleep, unbound_sleep())
    }

    /// Sleeps only if the condition holds.
    pub fn when(
        self,
        condition: impl Fn(&P::Args) -> bool + Send + Sync + 'static,
    ) -> StepRef<(), Maybe> {
        self.skip_if(move |args| !condition(args))
    }
}
