//! What all durable operations share: a place in the function's journal, given up when dropped.

use std::sync::Arc;
use std::task::{Context, Poll};

use serde::de::DeserializeOwned;
use stepwell_core::failure::{Failure, FailureKind};
use stepwell_core::function::{Answer, Call, Completion, OpId};
use stepwell_core::time::Timestamp;

use super::name::IntoStepName;
use crate::api::ctx::Ctx;
use crate::api::step_error::{Result, StepError};
use crate::engine::{Doing, TaskContext, decode, doing};
use crate::error::Error;
use crate::ports::Payload;

/// An operation that a function has asked for.
pub(super) struct Op {
    pub(super) task: Arc<TaskContext>,
    pub(super) id: OpId,
    pub(super) key: Arc<str>,
}

impl Op {
    /// Makes a call: takes its key, and a place in the journal.
    pub(super) fn call<I, S>(ctx: &Ctx<I, S>, name: impl IntoStepName, call: Call) -> Self {
        let key = ctx.take_key(name);
        let text: Arc<str> = key.text().into();
        let task = Arc::clone(&ctx.task);
        let id = task.function().journal().call(key, call, None, task.now());
        Self { task, id, key: text }
    }

    pub(super) fn set_due(&self, due: Timestamp) {
        self.task.function().journal().set_due(self.id, due);
    }

    pub(super) fn amend(&self, change: impl FnOnce(&mut Call)) {
        self.task.function().journal().amend(self.id, change);
    }

    /// What the operation is to do.
    pub(super) fn poll(&self, cx: &Context<'_>) -> Answer<Payload> {
        if !is_in_function(&self.task) {
            // Nobody would ever let it hear of anything.
            let refusal = self.task.function().journal().refusal().cloned();
            let misplaced = || Failure::new(FailureKind::Error, "", OUTSIDE);
            return Answer::Ready(Err(refusal.unwrap_or_else(misplaced)));
        }
        let waker = self.task.parts.spawner.engine_waker(cx);
        self.task.function().journal().poll(self.id, &waker)
    }

    /// Polls an operation that has no code of its own.
    pub(super) fn poll_passive(&self, cx: &Context<'_>) -> Poll<Completion<Payload>> {
        match self.poll(cx) {
            Answer::Ready(completion) => Poll::Ready(completion),
            _ => Poll::Pending,
        }
    }
}

impl Drop for Op {
    fn drop(&mut self) {
        self.task.function().journal().forget(self.id);
    }
}

/// What is said of calls that their function does not make itself.
pub(super) const OUTSIDE: &str =
    "is called outside of its function's own task; do not spawn, use `join!` or `ctx.map(..)`";

fn is_in_function(task: &TaskContext) -> bool {
    matches!(doing(), Doing::Function { task: own, .. } if own == task.claim)
}

/// Reads a recorded value, or says what does not fit what.
pub(crate) fn read_value<T: DeserializeOwned>(
    task: &TaskContext,
    key: &str,
    completion: Completion<Payload>,
) -> Result<T> {
    let payload = completion.map_err(StepError::of_failure)?.unwrap_or_else(Payload::empty);
    let what = format!("the stored value of {key:?} in run {:?}", task.run_id.as_str());
    decode(task.parts.codec.as_ref(), &what, &payload).map_err(|error| misfit(&error, key))
}

/// A stored value that does not fit will not fit the next time either.
fn misfit(error: &Error, key: &str) -> StepError {
    StepError::of_failure(StepError::payload(error).of_key(key))
}

/// What is wrong with a call, as an error that is never retried.
pub(super) fn refused_error(message: &str) -> StepError {
    StepError::permanent(message)
}
