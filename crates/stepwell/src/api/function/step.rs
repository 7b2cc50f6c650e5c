//! Memoised steps.

use std::any::TypeId;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use stepwell_core::failure::{Failure, FailureKind, RetryAdvice};
use stepwell_core::function::{Answer, Call};
use stepwell_core::limits::SPAN_MAX;
use stepwell_core::retry::Retry;

use super::name::IntoStepName;
use super::op::{Op, read_value};
use crate::api::ctx::Ctx;
use crate::api::step_error::{Result, StepError};
use crate::engine::{
    Doing, NoOutput, TaskContext, drop_quietly, encode, panicked, step_waker, while_doing,
};
use crate::ports::Payload;

type Execution<'a> =
    Pin<Box<dyn Future<Output = std::result::Result<Payload, Failure>> + Send + 'a>>;

/// A step of a function: executed once it is awaited, and never again once it is recorded. See
/// [`Ctx::step`].
#[must_use = "a step is executed when it is awaited"]
pub struct FunctionStep<'a, T> {
    op: Op,
    code: Box<dyn Fn() -> Execution<'a> + Send + 'a>,
    execution: Option<Execution<'a>>,
    output: PhantomData<fn() -> T>,
}

impl<'a, T> FunctionStep<'a, T>
where
    T: Serialize + DeserializeOwned + 'static,
{
    pub(super) fn new<I, S, F, Fut>(ctx: &Ctx<I, S>, name: impl IntoStepName, code: F) -> Self
    where
        F: FnOnce() -> Fut + Clone + Send + 'a,
        Fut: Future<Output = Result<T>> + Send + 'a,
    {
        Self::of(call(ctx, name), code)
    }

    /// A step whose code gets its idempotency key.
    pub(super) fn with_key<I, S, F, Fut>(ctx: &Ctx<I, S>, name: impl IntoStepName, code: F) -> Self
    where
        F: FnOnce(String) -> Fut + Clone + Send + 'a,
        Fut: Future<Output = Result<T>> + Send + 'a,
    {
        let op = call(ctx, name);
        let key = ctx.idempotency_key_of(&op.key);
        Self::of(op, move || code(key))
    }

    fn of<F, Fut>(op: Op, code: F) -> Self
    where
        F: FnOnce() -> Fut + Clone + Send + 'a,
        Fut: Future<Output = Result<T>> + Send + 'a,
    {
        let (task, key) = (Arc::clone(&op.task), Arc::clone(&op.key));
        let code = move || -> Execution<'a> {
            let (execution, task, key) = (code.clone()(), Arc::clone(&task), Arc::clone(&key));
            Box::pin(async move { step_output(&task, &key, execution.await) })
        };
        Self { op, code: Box::new(code), execution: None, output: PhantomData }
    }
}

fn call<I, S>(ctx: &Ctx<I, S>, name: impl IntoStepName) -> Op {
    Op::call(ctx, name, Call::Step { retry: Retry::never(), timeout: None })
}

impl<T> FunctionStep<'_, T> {
    /// When the step is tried again after a failure. Without it, the first failure is final. How
    /// often it was tried and when it is due survive a crash.
    pub fn retry(self, with: Retry) -> Self {
        if let Err(why) = with.check() {
            self.refuse(&format!("retry policy: {why}"));
        }
        self.op.amend(|call| {
            if let Call::Step { retry, .. } = call {
                *retry = with;
            }
        });
        self
    }

    /// How long one try may take. Its code is dropped then, and the try has failed.
    pub fn timeout(self, span: Duration) -> Self {
        if span > SPAN_MAX {
            self.refuse("the time-out is longer than a hundred years");
        }
        self.op.amend(|call| {
            if let Call::Step { timeout, .. } = call {
                *timeout = Some(span);
            }
        });
        self
    }

    fn refuse(&self, why: &str) {
        let message = format!("step {:?} of a function: {why}", self.op.key);
        self.op.task.function().journal().refuse(&message);
    }

    /// Polls the code of the step, which may panic.
    fn execute(&mut self, cx: &Context<'_>) -> Poll<std::result::Result<Payload, Failure>> {
        let (task, key) = (self.op.task.claim, Arc::clone(&self.op.key));
        let waker_from = |waker: &Waker| step_waker(task, Arc::clone(&key), waker);
        let mut polled = Poll::Pending;
        let mut poll = |cx: &mut Context<'_>| {
            let execution = self.execution.get_or_insert_with(|| (self.code)());
            polled = execution.as_mut().poll(cx);
        };
        let spawner = Arc::clone(&self.op.task.parts.spawner);
        let doing = Doing::Step { task, key: Arc::clone(&key) };
        let call = || while_doing(doing, || spawner.poll_step(cx, &waker_from, &mut poll));
        match catch_unwind(AssertUnwindSafe(call)) {
            Ok(()) => polled,
            Err(panic) => Poll::Ready(Err(panicked(panic))),
        }
    }

    fn drop_execution(&mut self) {
        if !drop_quietly(self.execution.take()) {
            tracing::warn!(key = &*self.op.key, "a step of a function panicked when dropped");
        }
    }
}

impl<T: DeserializeOwned> Future for FunctionStep<'_, T> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        let this = self.get_mut();
        let outcome = match this.op.poll(cx) {
            Answer::Pending => return Poll::Pending,
            Answer::Ready(completion) => {
                return Poll::Ready(read_value(&this.op.task, &this.op.key, completion));
            }
            Answer::Abort => Err(timed_out()),
            Answer::Execute => match this.execute(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(outcome) => outcome,
            },
        };
        this.drop_execution();
        let task = &this.op.task;
        let (now, chance) = (task.now(), task.parts.chance());
        task.function().journal().executed(this.op.id, outcome, now, chance);
        Poll::Pending
    }
}

impl<T> Drop for FunctionStep<'_, T> {
    fn drop(&mut self) {
        self.drop_execution();
    }
}

impl<T> Unpin for FunctionStep<'_, T> {}

/// What a step gave, as a payload. The value `()` is not stored.
pub(crate) fn step_output<T: Serialize + 'static>(
    task: &TaskContext,
    key: &str,
    answer: Result<T>,
) -> std::result::Result<Payload, Failure> {
    let value = answer.map_err(step_failure)?;
    if TypeId::of::<T>() == TypeId::of::<()>() {
        return Ok(Payload::empty());
    }
    let (codec, bytes_max) = (task.parts.codec.as_ref(), task.parts.config.payload_bytes_max);
    encode(codec, bytes_max, format_args!("the value of step {key:?}"), &value)
        .map_err(|error| StepError::payload(&error))
}

/// Why a step of a function has failed. It cannot do anything else than fail.
fn step_failure(error: StepError) -> Failure {
    let why = match error.into_no_output() {
        NoOutput::Failed(failure) => return failure,
        NoOutput::Waits(_) => "a step inside a function cannot wait; use `ctx.wait(..)` beside it",
        NoOutput::Suspended => "a step inside a function cannot suspend it",
        NoOutput::Continues(_) => "a step inside a function cannot end its round",
    };
    Failure::new(FailureKind::Error, "", why).with_retry(RetryAdvice::Never)
}

pub(crate) fn timed_out() -> Failure {
    Failure::new(FailureKind::TimedOut, "", "took longer than its time-out")
}
