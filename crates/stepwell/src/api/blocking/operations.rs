//! Steps, sleeps and waits of blocking functions.

use std::fmt::Display;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use stepwell_core::function::Call;
use stepwell_core::limits::SPAN_MAX;
use stepwell_core::retry::Retry;
use stepwell_core::run::WaitFor;
use stepwell_core::time::Timestamp;

use super::op::{Code, Place};
use crate::api::function::{as_called, read_value, step_output};
use crate::api::step_error::Result;
use crate::api::wait::{Bound, Bounded, Forever};

/// A step of a blocking function. See [`Ctx::step`](super::Ctx::step).
#[must_use = "a step is executed by `.wait()?` or in `ctx.join(..)?`"]
pub struct FunctionStep<'a, T> {
    pub(super) place: Place,
    code: Box<dyn Fn() -> Result<T> + Send + 'a>,
}

impl<'a, T> FunctionStep<'a, T>
where
    T: Serialize + DeserializeOwned + 'static,
{
    pub(super) fn new(place: Place, code: impl Fn() -> Result<T> + Send + 'a) -> Self {
        Self { place, code: Box::new(code) }
    }

    /// Executes the step, or gives what it gave before.
    ///
    /// # Errors
    /// As the step; and when the function has to wait before the next try.
    pub fn wait(self) -> Result<T> {
        let Self { place, code } = self;
        let (task, key) = (Arc::clone(&place.task), Arc::clone(&place.key));
        let code: &Code<'_> = &move || step_output(&task, &key, code());
        place.wait(Some(code))
    }
}

impl<T> FunctionStep<'_, T> {
    /// When the step is tried again after a failure. Without it, the first failure is final.
    pub fn retry(self, with: Retry) -> Self {
        if let Err(why) = with.check() {
            self.place.refuse(&format!("retry policy: {why}"));
        }
        self.place.amend(|call| {
            if let Call::Step { retry, .. } = call {
                *retry = with;
            }
        });
        self
    }

    /// How long one try may take. It cannot be interrupted: one that took longer has failed when
    /// it returns.
    pub fn timeout(self, span: Duration) -> Self {
        check_span(&self.place, span);
        self.place.amend(|call| {
            if let Call::Step { timeout, .. } = call {
                *timeout = Some(span);
            }
        });
        self
    }
}

/// A durable sleep of a blocking function. See [`Ctx::sleep`](super::Ctx::sleep).
#[must_use = "a sleep is slept by `.wait()?`"]
pub struct FunctionSleep {
    pub(super) place: Place,
}

impl FunctionSleep {
    pub(super) fn new(place: Place, span: Duration) -> Self {
        check_span(&place, span);
        place.set_due(place.task.now().after(span));
        Self { place }
    }

    pub(super) fn until(place: Place, at: Timestamp) -> Self {
        let now = place.task.now();
        check_span(&place, at.since(now));
        place.set_due(at.max(now));
        Self { place }
    }

    /// Sleeps.
    ///
    /// # Errors
    /// When the function has to wait for long: hand it up by `?`.
    pub fn wait(self) -> Result<()> {
        self.place.wait(None)
    }
}

/// A durable wait of a blocking function for a signal. See [`Ctx::wait`](super::Ctx::wait).
#[must_use = "a wait waits by `.wait()?`"]
pub struct FunctionWait<T, B = Forever> {
    pub(super) place: Place,
    is_any: bool,
    types: PhantomData<fn() -> (T, B)>,
}

impl<T> FunctionWait<T> {
    pub(super) fn new(place: Place, is_any: bool) -> Self {
        let wait = Self { place, is_any, types: PhantomData };
        wait.check();
        wait
    }

    /// Waits this long at most, from the call on. The result then says whether the signal came in
    /// time.
    pub fn timeout(self, span: Duration) -> FunctionWait<T, Bounded> {
        let Self { place, is_any, .. } = self;
        check_span(&place, span);
        place.set_due(place.task.now().after(span));
        FunctionWait { place, is_any, types: PhantomData }
    }
}

impl<T, B> FunctionWait<T, B> {
    /// Takes only signals that carry this attribute with this value.
    pub fn matching(self, attribute: impl Into<String>, value: impl Display) -> Self {
        let (attribute, value) = (attribute.into(), value.to_string());
        self.place.amend(|call| {
            if let Call::Wait { matching, .. } = call {
                matching.insert(attribute, value);
            }
        });
        self.check();
        self
    }

    fn check(&self) {
        let mut checked = Ok(());
        self.place.amend(|call| {
            if let Call::Wait { signals, matching } = call {
                let (signals, matching) = (signals.clone(), matching.clone());
                checked = WaitFor { signals, matching, timeout: None }.check();
            }
        });
        if let Err((field, why)) = checked {
            self.place.refuse(&format!("{field}: {why}"));
        }
    }
}

impl<T, B> FunctionWait<T, B>
where
    T: DeserializeOwned + Send + 'static,
    B: Bound,
{
    /// Waits for the signal.
    ///
    /// # Errors
    /// When the function has to wait: hand it up by `?`. When the payload does not fit.
    pub fn wait(self) -> Result<B::Output<T>> {
        let completion = self.place.settle(None)?;
        read_value(&self.place.task, &self.place.key, as_called(completion, self.is_any))
    }
}

/// Refuses spans that no store could keep.
fn check_span(place: &Place, span: Duration) {
    if span > SPAN_MAX {
        place.refuse("the span is longer than a hundred years");
    }
}
