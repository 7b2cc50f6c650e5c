//! One line of control of a blocking function: the function itself, or a branch of a join.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, ThreadId};

use stepwell_core::function::Key;

use super::crew::Crew;
use crate::api::ctx::Ctx as AsyncCtx;
use crate::api::function::IntoStepName;
use crate::api::step_error::{Result, StepError};
use crate::engine::{Doing, doing};

/// So many calls on a branch that was told to stop, and its code is taken for a loop that swallows
/// that for ever.
const SWALLOWED_MAX: u32 = 100;

/// One line of control.
pub(crate) struct Branch {
    /// How often something durable was called since it was told to stop; 0 if it was not.
    n_stopped: AtomicU32,
    thread: ThreadId,
    /// Whom it is one of, unless its thread is the one that the engine called.
    crew: Option<Crew>,
}

impl Branch {
    pub(super) fn new(crew: Option<Crew>) -> Arc<Self> {
        let (n_stopped, thread) = (AtomicU32::new(0), thread::current().id());
        Arc::new(Self { n_stopped, thread, crew })
    }

    pub(super) const fn crew(&self) -> Option<&Crew> {
        self.crew.as_ref()
    }

    /// The function ends here for now.
    pub(super) fn stop<T>(&self) -> Result<T> {
        self.n_stopped.fetch_max(1, Ordering::AcqRel);
        Err(StepError::suspended())
    }

    /// Refuses to go on once it was told to stop.
    pub(super) fn go_on(&self) -> Result<()> {
        let n_stopped = self.n_stopped.load(Ordering::Acquire);
        if n_stopped == 0 {
            return Ok(());
        }
        let n_swallowed = self.n_stopped.fetch_add(1, Ordering::AcqRel);
        assert!(n_swallowed < SWALLOWED_MAX, "{}", SWALLOWED);
        self.stop()
    }

    /// A suspension must come out as it went in.
    pub(crate) fn check<T>(&self, answer: Result<T>) -> Result<T> {
        let is_suspension = answer.as_ref().is_err_and(StepError::is_suspension);
        if self.n_stopped.load(Ordering::Acquire) > 0 && !is_suspension {
            return Err(StepError::permanent(SWALLOWED));
        }
        answer
    }

    /// Takes the key of a call.
    pub(super) fn take_key<I, S>(&self, ctx: &AsyncCtx<I, S>, name: impl IntoStepName) -> Key {
        let name = ctx.scoped_name(name);
        let function = ctx.task.function();
        if let Doing::Step { key, .. } = doing() {
            function.refuse_in_step(&name, &key);
        }
        // On another thread of the user's own, nothing fixes when it is called.
        let is_unordered = thread::current().id() != self.thread;
        function.journal().take_key(&name, is_unordered)
    }
}

const SWALLOWED: &str = "the function was to be suspended, but the error that says so was not \
                         returned; hand errors of `ctx` up by `?`";
