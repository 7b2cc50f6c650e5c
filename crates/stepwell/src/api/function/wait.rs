//! Durable waits for signals.

use std::fmt::Display;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use serde::de::DeserializeOwned;
use stepwell_core::function::{Call, Completion};
use stepwell_core::run::{Attributes, WaitFor};

use super::name::IntoStepName;
use super::op::{Op, read_value};
use super::sleep::check_span;
use crate::api::ctx::Ctx;
use crate::api::signalled::variants_of;
use crate::api::step_error::Result;
use crate::api::wait::{Bound, Bounded, Forever};
use crate::ports::Payload;

/// A durable wait of a function for a signal. See [`Ctx::wait`].
#[must_use = "a wait waits when it is awaited"]
pub struct FunctionWait<T, B = Forever> {
    op: Op,
    /// Whether the signal's name is read as the variant of an enum.
    is_any: bool,
    types: PhantomData<fn() -> (T, B)>,
}

impl<T> FunctionWait<T> {
    pub(super) fn new<I, S>(ctx: &Ctx<I, S>, name: impl IntoStepName, signal: &str) -> Self {
        Self::of(ctx, name, vec![signal.to_owned()], false)
    }

    pub(super) fn any<I, S>(ctx: &Ctx<I, S>, name: impl IntoStepName) -> Self
    where
        T: DeserializeOwned,
    {
        let signals = signals_of::<T>(|why| ctx.task.function().journal().refuse(&why));
        Self::of(ctx, name, signals, true)
    }

    fn of<I, S>(
        ctx: &Ctx<I, S>,
        name: impl IntoStepName,
        signals: Vec<String>,
        is_any: bool,
    ) -> Self {
        let call = Call::Wait { signals, matching: Attributes::new() };
        let wait = Self { op: Op::call(ctx, name, call), is_any, types: PhantomData };
        wait.check();
        wait
    }

    /// Waits this long at most, from the call on. The result then says whether the signal came in
    /// time. One that came before is taken also by a time-out of zero.
    pub fn timeout(self, span: Duration) -> FunctionWait<T, Bounded> {
        let Self { op, is_any, .. } = self;
        check_span(&op, span);
        op.set_due(op.task.now().after(span));
        FunctionWait { op, is_any, types: PhantomData }
    }
}

impl<T, B> FunctionWait<T, B> {
    /// Takes only signals that carry this attribute with this value.
    pub fn matching(self, attribute: impl Into<String>, value: impl Display) -> Self {
        let (attribute, value) = (attribute.into(), value.to_string());
        self.op.amend(|call| {
            if let Call::Wait { matching, .. } = call {
                matching.insert(attribute, value);
            }
        });
        self.check();
        self
    }

    /// Refuses what no wait can be for.
    fn check(&self) {
        let mut wait_for = None;
        self.op.amend(|call| {
            if let Call::Wait { signals, matching } = call {
                let (signals, matching) = (signals.clone(), matching.clone());
                wait_for = Some(WaitFor { signals, matching, timeout: None });
            }
        });
        let checked = wait_for.map_or(Ok(()), |wait_for| wait_for.check());
        if let Err((field, why)) = checked {
            let message = format!("wait {:?} of a function: {field}: {why}", self.op.key);
            self.op.task.function().journal().refuse(&message);
        }
    }
}

impl<T, B> Future for FunctionWait<T, B>
where
    T: DeserializeOwned + Send + 'static,
    B: Bound,
{
    type Output = Result<B::Output<T>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let ended = ready!(self.op.poll_passive(cx));
        Poll::Ready(read_value(&self.op.task, &self.op.key, as_called(ended, self.is_any)))
    }
}

impl<T, B> Unpin for FunctionWait<T, B> {}

/// What ended a wait, read as it was called: several signals are the variants of an enum.
pub(crate) fn as_called(ended: Completion<Payload>, is_any: bool) -> Completion<Payload> {
    ended.map(|payload| payload.map(|p| if is_any { p.into_variant() } else { p }))
}

/// The signals that the variants of an enum name.
pub(crate) fn signals_of<T: DeserializeOwned>(refuse: impl FnOnce(String)) -> Vec<String> {
    let variants = variants_of::<T>();
    if variants.is_none() {
        let type_name = std::any::type_name::<T>();
        refuse(format!(
            "`wait_any` takes an enum whose variants are the signals, and {type_name} is none; use \
             `wait` for one signal"
        ));
    }
    variants.unwrap_or_default().iter().map(|name| (*name).to_owned()).collect()
}
