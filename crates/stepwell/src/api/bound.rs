//! Closures of workflow authors as functions of payloads: first without their types, then bound to
//! the engine's state.

use std::any::TypeId;
use std::future::Future;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use stepwell_core::failure::{Failure, FailureKind, RetryAdvice};
use stepwell_core::run::RunFailure;

use super::blocking;
use super::ctx::Ctx;
use super::parents::Parents;
use super::step_error::{Result, StepError};
use crate::engine::{Condition, MatchingFn, NoOutput, StepBody, StepFn, TaskArgs, decode, encode};
use crate::ports::Payload;

/// A step's function that still needs the engine's state.
pub(crate) type UnboundFn<S> = Box<dyn FnOnce(Arc<S>) -> StepFn + Send>;

/// A step whose function still needs the engine's state.
pub(crate) struct UnboundStep<S> {
    pub(crate) function: UnboundFn<S>,
    pub(crate) skip_if: Vec<Condition>,
}

impl<S> UnboundStep<S> {
    pub(crate) fn bind(self, state: &Arc<S>) -> StepBody {
        StepBody { function: (self.function)(Arc::clone(state)), skip_if: self.skip_if }
    }
}

/// A context for user code, with the input decoded.
fn context<I: DeserializeOwned, S>(
    args: &TaskArgs,
    state: &Arc<S>,
) -> std::result::Result<Ctx<I, S>, Failure> {
    Ok(Ctx::new(Arc::clone(&args.context), input_arg(args)?, Arc::clone(state)))
}

/// The run's input.
pub(crate) fn input_arg<I: DeserializeOwned>(args: &TaskArgs) -> std::result::Result<I, Failure> {
    decode(args.context.parts.codec.as_ref(), "the run's input", &args.input)
        .map_err(|error| StepError::payload(&error))
}

/// The outputs of the parents, as the closure wants them.
pub(crate) fn parent_args<P: Parents>(args: &TaskArgs) -> std::result::Result<P::Args, Failure> {
    P::args(args.context.parts.codec.as_ref(), &args.parents)
        .map_err(|error| StepError::payload(&error))
}

/// What a closure returned, as a payload. The output `()` is not stored.
fn output<O: Serialize + 'static>(
    args: &TaskArgs,
    answer: Result<O>,
) -> std::result::Result<Payload, NoOutput> {
    let value = answer.map_err(StepError::into_no_output)?;
    if TypeId::of::<O>() == TypeId::of::<()>() {
        return Ok(Payload::empty());
    }
    let parts = &args.context.parts;
    let (codec, bytes_max) = (parts.codec.as_ref(), parts.config.payload_bytes_max);
    let step = args.context.step();
    encode(codec, bytes_max, format_args!("the output of step {step:?}"), &value)
        .map_err(|error| StepError::payload(&error).into())
}

/// How the arguments of a closure are read: from the parents, or from the failure.
pub(crate) type ReadArgs<A> = fn(&TaskArgs) -> std::result::Result<A, Failure>;

/// The function of an async closure. Each execution calls a clone: an `async move` closure that
/// owns what it captured can be called only once.
pub(crate) fn unbound_async<I, S, A, O, F, Fut>(read: ReadArgs<A>, closure: F) -> UnboundFn<S>
where
    I: DeserializeOwned + Send + Sync + 'static,
    S: Send + Sync + 'static,
    A: Send + 'static,
    O: Serialize + Send + 'static,
    F: FnOnce(Ctx<I, S>, A) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<O>> + Send + 'static,
{
    Box::new(move |state| {
        StepFn::Async(Arc::new(move |args: TaskArgs| {
            let (state, closure) = (Arc::clone(&state), closure.clone());
            Box::pin(async move {
                let ctx = context(&args, &state)?;
                let arg = read(&args)?;
                let answer = closure(ctx, arg).await;
                output(&args, answer)
            })
        }))
    })
}

/// The function of a blocking closure.
pub(crate) fn unbound_blocking<I, S, A, O, F>(read: ReadArgs<A>, closure: F) -> UnboundFn<S>
where
    I: DeserializeOwned + Send + Sync + 'static,
    S: Send + Sync + 'static,
    A: Send + 'static,
    O: Serialize + Send + 'static,
    F: Fn(blocking::Ctx<I, S>, A) -> Result<O> + Send + Sync + 'static,
{
    Box::new(move |state| {
        StepFn::Blocking(Arc::new(move |args: TaskArgs| {
            let ctx = blocking::Ctx::new(context(&args, &state)?);
            let arg = read(&args)?;
            let branch = ctx.branch_of_code();
            let answer = branch.check(closure(ctx, arg));
            output(&args, answer)
        }))
    })
}

/// A sleep node has no function to call.
pub(crate) fn unbound_sleep<S>() -> UnboundFn<S> {
    Box::new(|_| StepFn::Sleep)
}

/// A wait node has no function to call; code may only say what it waits for.
pub(crate) fn unbound_wait<S>(matching: Vec<MatchingFn>) -> UnboundFn<S> {
    Box::new(|_| StepFn::Wait(matching))
}

/// Nothing but the context.
#[expect(clippy::unnecessary_wraps, reason = "one of several readers with one signature")]
pub(crate) fn no_args(_: &TaskArgs) -> std::result::Result<(), Failure> {
    Ok(())
}

/// What a failure handler gets.
pub(crate) fn failure_arg(args: &TaskArgs) -> std::result::Result<RunFailure, Failure> {
    let missing = || {
        Failure::new(FailureKind::Payload, "", "the run has no failure on record")
            .with_retry(RetryAdvice::Never)
    };
    args.failure.as_deref().cloned().ok_or_else(missing)
}
