use std::fmt::Display;
use std::sync::Arc;

use stepwell_core::decide::CancelAnswer;

use super::block_on::{BlockOn, answer_of};
use crate::api::{
    Cancel as AsyncCancel, Sent, Signal as AsyncSignal, ToRun, ToWaiting, Unaddressed, WorkflowRef,
};
use crate::error::Error;

/// A signal, sent by [`Signal::wait`] once it is addressed.
#[must_use = "a signal is sent by `.wait()`, once it is addressed by `.to(..)`"]
pub struct Signal<A> {
    signal: AsyncSignal<A>,
    runtime: Arc<dyn BlockOn>,
}

impl<A> Signal<A> {
    pub(super) fn new(signal: AsyncSignal<A>, runtime: Arc<dyn BlockOn>) -> Self {
        Self { signal, runtime }
    }

    /// What tells this signal from others to the same run, such as the id of the event behind it.
    pub fn key(self, key: impl Into<String>) -> Self {
        Self { signal: self.signal.key(key), runtime: self.runtime }
    }

    /// An attribute beside the payload, for waits that ask for one by `matching`.
    pub fn attr(self, attribute: impl Into<String>, value: impl Display) -> Self {
        Self { signal: self.signal.attr(attribute, value), runtime: self.runtime }
    }
}

impl Signal<Unaddressed> {
    /// To a run, by its tenant and id.
    pub fn to(self, tenant: &str, run_id: &str) -> Signal<ToRun> {
        Signal { signal: self.signal.to(tenant, run_id), runtime: self.runtime }
    }

    /// To every run of a tenant and workflow that waits for it at this moment.
    pub fn to_waiting<I, O>(self, tenant: &str, workflow: &WorkflowRef<I, O>) -> Signal<ToWaiting> {
        Signal { signal: self.signal.to_waiting(tenant, workflow), runtime: self.runtime }
    }

    /// As [`Signal::to_waiting`], by the workflow's name.
    pub fn to_waiting_by_name(self, tenant: &str, workflow: &str) -> Signal<ToWaiting> {
        Signal { signal: self.signal.to_waiting_by_name(tenant, workflow), runtime: self.runtime }
    }
}

impl Signal<ToRun> {
    /// Sends the signal.
    ///
    /// # Errors
    /// When the signal is refused, there is no such run, or the store cannot be reached.
    #[track_caller]
    pub fn wait(self) -> Result<Sent, Error> {
        answer_of(self.runtime.as_ref(), self.signal.into_future())
    }
}

impl Signal<ToWaiting> {
    /// Sends the signal, and says how many waits got it.
    ///
    /// # Errors
    /// When the signal is refused, or the store cannot be reached.
    #[track_caller]
    pub fn wait(self) -> Result<usize, Error> {
        answer_of(self.runtime.as_ref(), self.signal.into_future())
    }
}

/// A request to cancel a run, sent by [`Cancel::wait`].
#[must_use = "a run is cancelled by `.wait()`"]
pub struct Cancel {
    cancel: AsyncCancel,
    runtime: Arc<dyn BlockOn>,
}

impl Cancel {
    pub(super) fn new(cancel: AsyncCancel, runtime: Arc<dyn BlockOn>) -> Self {
        Self { cancel, runtime }
    }

    /// Why, to be read in the run's log.
    pub fn reason(self, reason: impl Into<String>) -> Self {
        Self { cancel: self.cancel.reason(reason), runtime: self.runtime }
    }

    /// Who asks, to be read in the run's log; the engine's worker id if not given.
    pub fn by(self, by: impl Into<String>) -> Self {
        Self { cancel: self.cancel.by(by), runtime: self.runtime }
    }

    /// Ends the run at once, without its failure handler.
    pub fn force(self) -> Self {
        Self { cancel: self.cancel.force(), runtime: self.runtime }
    }

    /// Cancels the run. When `Cancelled` is answered, nothing of it starts any more.
    ///
    /// # Errors
    /// When the request is refused, the store cannot be reached, or the engine was stopped.
    #[track_caller]
    pub fn wait(self) -> Result<CancelAnswer, Error> {
        answer_of(self.runtime.as_ref(), self.cancel.into_future())
    }
}
