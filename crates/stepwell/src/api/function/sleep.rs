//! Durable sleeps.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use stepwell_core::function::Call;
use stepwell_core::limits::SPAN_MAX;
use stepwell_core::time::Timestamp;

use super::name::IntoStepName;
use super::op::Op;
use crate::api::ctx::Ctx;
use crate::api::step_error::{Result, StepError};

/// A durable sleep of a function. See [`Ctx::sleep`].
#[must_use = "a sleep is slept when it is awaited"]
pub struct FunctionSleep(Op);

impl FunctionSleep {
    pub(super) fn new<I, S>(ctx: &Ctx<I, S>, name: impl IntoStepName, span: Duration) -> Self {
        let op = Op::call(ctx, name, Call::Sleep);
        check_span(&op, span);
        op.set_due(op.task.now().after(span));
        Self(op)
    }

    pub(super) fn until<I, S>(ctx: &Ctx<I, S>, name: impl IntoStepName, at: Timestamp) -> Self {
        let op = Op::call(ctx, name, Call::Sleep);
        let now = op.task.now();
        check_span(&op, at.since(now));
        op.set_due(at.max(now));
        Self(op)
    }
}

/// Refuses spans that no store could keep.
pub(super) fn check_span(op: &Op, span: Duration) {
    if span > SPAN_MAX {
        let message = format!("{:?}: the span is longer than a hundred years", op.key);
        op.task.function().journal().refuse(&message);
    }
}

impl Future for FunctionSleep {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let slept = ready!(self.0.poll_passive(cx));
        Poll::Ready(slept.map(|_| ()).map_err(StepError::of_failure))
    }
}
