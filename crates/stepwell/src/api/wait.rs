//! Declaring a wait: a step without code that a signal completes, or a time-out.

use std::fmt::Display;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use stepwell_core::run::{Attributes, WaitFor};
use stepwell_core::workflow::{NodeKind, Placement, WaitPolicy};

use super::bound::{input_arg, parent_args, unbound_wait};
use super::parents::Parents;
use super::signalled::Signalled;
use super::step::{After, Root, StepDeclaration};
use super::step_ref::{Always, Kind, Maybe, StepRef};
use super::workflow::Definer;
use crate::engine::MatchingFn;

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Forever {}
    impl Sealed for super::Bounded {}
}

/// A wait without a time-out: it gives the signal's payload.
#[derive(Debug)]
pub enum Forever {}

/// A wait with a time-out: it gives [`Signalled`].
#[derive(Debug)]
pub enum Bounded {}

/// Whether a wait has a time-out. Implemented by [`Forever`] and [`Bounded`].
pub trait Bound: sealed::Sealed + Send + Sync + 'static {
    /// What a wait for `T` gives.
    type Output<T: DeserializeOwned + Send + 'static>: DeserializeOwned + Send + 'static;
}

impl Bound for Forever {
    type Output<T: DeserializeOwned + Send + 'static> = T;
}

impl Bound for Bounded {
    type Output<T: DeserializeOwned + Send + 'static> = Signalled<T>;
}

/// Declares a wait. Nothing is added until `after` or `from_start` places it.
#[must_use = "a wait is added by `.after(..)` or `.from_start()`"]
pub struct WaitBuilder<'w, I, S, T, B = Forever, P = Root, K = Always> {
    workflow: &'w mut Definer<I, S>,
    declared: StepDeclaration,
    policy: WaitPolicy,
    matching: Vec<MatchingFn>,
    #[expect(clippy::type_complexity, reason = "it only carries the types")]
    types: PhantomData<fn() -> (T, B, P, K)>,
}

impl<'w, I, S, T> WaitBuilder<'w, I, S, T> {
    pub(super) fn new(
        workflow: &'w mut Definer<I, S>,
        name: &str,
        signals: Vec<String>,
        is_any: bool,
    ) -> Self {
        let declared = StepDeclaration::new(name, Placement::Explicit(Vec::new()));
        let wait_for = WaitFor { signals, matching: Attributes::new(), timeout: None };
        let policy = WaitPolicy { wait_for, asks_worker: false, is_any };
        Self { workflow, declared, policy, matching: Vec::new(), types: PhantomData }
    }

    /// Waits this long at most, from the moment at which the node is ready. The output then says
    /// whether the signal came in time. A signal that was sent before is taken whatever the
    /// time-out.
    pub fn timeout(mut self, timeout: Duration) -> WaitBuilder<'w, I, S, T, Bounded> {
        self.policy.wait_for.timeout = Some(timeout);
        self.retype()
    }
}

impl<'w, I, S, T, B, P, K> WaitBuilder<'w, I, S, T, B, P, K> {
    fn retype<C, Q, L>(self) -> WaitBuilder<'w, I, S, T, C, Q, L> {
        let Self { workflow, declared, policy, matching, .. } = self;
        WaitBuilder { workflow, declared, policy, matching, types: PhantomData }
    }

    /// Takes only signals that carry this attribute with this value.
    pub fn matching(mut self, attribute: impl Into<String>, value: impl Display) -> Self {
        self.policy.wait_for.matching.insert(attribute.into(), value.to_string());
        self
    }

    /// Takes only signals that carry this attribute with a value that follows from the run's input.
    /// A worker is asked for it first.
    pub fn matching_input<V: Display>(
        mut self,
        attribute: impl Into<String>,
        value: impl Fn(&I) -> V + Send + Sync + 'static,
    ) -> Self
    where
        I: DeserializeOwned,
    {
        let attribute = attribute.into();
        self.policy.asks_worker = true;
        self.matching.push(Arc::new(move |args| {
            Ok((attribute.clone(), value(&input_arg::<I>(args)?).to_string()))
        }));
        self
    }
}

impl<'w, I, S, T, B> WaitBuilder<'w, I, S, T, B>
where
    T: DeserializeOwned + Send + 'static,
    B: Bound,
{
    /// Waits once these parents are done. No worker is needed for that.
    pub fn after<P: Parents>(mut self, parents: P) -> StepRef<B::Output<T>, P::Kind> {
        self.declared.placement = Placement::Explicit(parents.parent_refs());
        self.add()
    }

    /// Waits from the start of the run.
    pub fn from_start(self) -> StepRef<B::Output<T>, Always> {
        self.add()
    }

    /// Waits once these parents are done; what for, and whether at all, may depend on what they
    /// left. A worker is asked that first.
    pub fn after_if<P: Parents>(
        mut self,
        parents: P,
    ) -> WaitBuilder<'w, I, S, T, B, After<P>, P::Kind> {
        self.declared.placement = Placement::Explicit(parents.parent_refs());
        self.policy.asks_worker = true;
        self.retype()
    }
}

impl<I, S, T, B, P, K> WaitBuilder<'_, I, S, T, B, P, K> {
    fn add<O, L>(mut self) -> StepRef<O, L> {
        self.declared.policy.wait = Some(self.policy);
        self.declared.add(self.workflow, NodeKind::Wait, unbound_wait(self.matching))
    }
}

impl<I, S, T, B, P, K> WaitBuilder<'_, I, S, T, B, After<P>, K>
where
    I: DeserializeOwned + Send + Sync + 'static,
    T: DeserializeOwned + Send + 'static,
    B: Bound,
    P: Parents,
    K: Kind,
{
    /// Takes only signals that carry this attribute with a value that follows from the run's input
    /// and the outputs of the parents.
    pub fn matching_by<V: Display>(
        mut self,
        attribute: impl Into<String>,
        value: impl Fn(&I, &P::Args) -> V + Send + Sync + 'static,
    ) -> Self {
        let attribute = attribute.into();
        self.matching.push(Arc::new(move |args| {
            let value = value(&input_arg::<I>(args)?, &parent_args::<P>(args)?);
            Ok((attribute.clone(), value.to_string()))
        }));
        self
    }

    /// The queue in which it waits for the worker that is asked first.
    pub fn queue(mut self, queue: &str) -> Self {
        self.declared.queue_given = Some(queue.to_owned());
        self
    }

    /// Skips the wait if the condition holds for the outputs of its parents.
    pub fn skip_if(
        mut self,
        condition: impl Fn(&P::Args) -> bool + Send + Sync + 'static,
    ) -> StepRef<B::Output<T>, Maybe> {
        self.declared.skip_if.push(Arc::new(move |args| Ok(condition(&parent_args::<P>(args)?))));
        self.add()
    }

    /// Waits only if the condition holds.
    pub fn when(
        self,
        condition: impl Fn(&P::Args) -> bool + Send + Sync + 'static,
    ) -> StepRef<B::Output<T>, Maybe> {
        self.skip_if(move |args| !condition(args))
    }

    /// Waits in any case.
    pub fn always(self) -> StepRef<B::Output<T>, K> {
        self.add()
    }
}
