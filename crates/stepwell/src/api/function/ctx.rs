//! What a function does durably.

use std::fmt::Display;
use std::future::Future;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use stepwell_core::function::Key;
use stepwell_core::time::Timestamp;
use uuid::Uuid;

use super::map::FunctionMap;
use super::name::IntoStepName;
use super::op::OUTSIDE;
use super::race::{Race, Racers};
use super::signal::FunctionSignal;
use super::sleep::FunctionSleep;
use super::step::FunctionStep;
use super::wait::FunctionWait;
use crate::api::ctx::Ctx;
use crate::api::step_error::{Result, StepError};
use crate::engine::{Doing, doing, encode};

impl<I, S> Ctx<I, S> {
    /// A step: its code is executed when this is awaited, and what it gives is recorded. When the
    /// function runs again after a crash or a wait, it gives that instead of executing the code.
    ///
    /// It is known by its name: from the second call of a name on, by name and count. Where a name
    /// is used for several things, give an id as well: `("charge", item.id)`.
    ///
    /// Each try calls a clone of the closure, so it may own what it captures, and borrow from the
    /// function, but not write to its locals: hand out what it found instead.
    ///
    /// ```
    /// # use stepwell::{Ctx, Result, Retry};
    /// async fn ship(ctx: Ctx<u32>) -> Result<String> {
    ///     let order = ctx.input();
    ///     let label = ctx.step("label", async || Ok(format!("label of order {order}"))).await?;
    ///     ctx.step("print", async || Ok(println!("{label}"))).retry(Retry::exponential(3)).await?;
    ///     Ok(label)
    /// }
    /// ```
    pub fn step<'a, T, F, Fut>(&self, name: impl IntoStepName, code: F) -> FunctionStep<'a, T>
    where
        T: Serialize + DeserializeOwned + 'static,
        F: FnOnce() -> Fut + Clone + Send + 'a,
        Fut: Future<Output = Result<T>> + Send + 'a,
    {
        FunctionStep::new(self, name, code)
    }

    /// Sleeps from this call on. While nothing else of the function is executed it holds no slot,
    /// and it goes on after restarts and deploys.
    pub fn sleep(&self, name: impl IntoStepName, span: Duration) -> FunctionSleep {
        FunctionSleep::new(self, name, span)
    }

    /// As [`Ctx::sleep`], until a moment of the store's time.
    pub fn sleep_until(&self, name: impl IntoStepName, at: Timestamp) -> FunctionSleep {
        FunctionSleep::until(self, name, at)
    }

    /// Waits for a signal with a payload of type `T`: for ever, or by `.timeout(..)` for a time;
    /// then it gives [`Signalled<T>`](crate::Signalled). While nothing else of the function is
    /// executed it holds no slot.
    ///
    /// ```
    /// # use stepwell::{Ctx, Result, Signalled};
    /// # use std::time::Duration;
    /// async fn expense(ctx: Ctx<u32>) -> Result<bool> {
    ///     let answer = ctx.wait::<bool>("approval", "approved").timeout(Duration::from_hours(72));
    ///     Ok(match answer.await? {
    ///         Signalled::Received(is_approved) => is_approved,
    ///         Signalled::TimedOut => false,
    ///     })
    /// }
    /// ```
    pub fn wait<T>(&self, name: impl IntoStepName, signal: &str) -> FunctionWait<T>
    where
        T: DeserializeOwned + Send + 'static,
    {
        FunctionWait::new(self, name, signal)
    }

    /// As [`Ctx::wait`], for one of several signals: the variants of the enum `E`.
    pub fn wait_any<E>(&self, name: impl IntoStepName) -> FunctionWait<E>
    where
        E: DeserializeOwned + Send + 'static,
    {
        FunctionWait::any(self, name)
    }

    /// Does the same for each of several items, each with names of its own.
    ///
    /// ```
    /// # use stepwell::{Ctx, Result};
    /// async fn taxes(ctx: Ctx<Vec<u32>>) -> Result<u32> {
    ///     let taxes = ctx.map("tax").over(ctx.input().clone()).concurrency(5)
    ///         .run(async |ctx, price| ctx.step("look-up", async || Ok(price / 5)).await)
    ///         .await?;
    ///     Ok(taxes.iter().sum())
    /// }
    /// ```
    pub fn map(&self, name: &str) -> FunctionMap<'_, I, S> {
        FunctionMap::new(self, name)
    }

    /// The first of two operations, or of a `Vec` of them; the others are given up.
    ///
    /// ```
    /// # use stepwell::{Ctx, First, Result};
    /// # use std::time::Duration;
    /// async fn quote(ctx: Ctx<()>) -> Result<Option<u32>> {
    ///     let ask = ctx.step("ask", async || Ok(7));
    ///     let patience = ctx.sleep("patience", Duration::from_mins(5));
    ///     Ok(match ctx.race((ask, patience)).await? {
    ///         First::A(price) => Some(price),
    ///         First::B(()) => None,
    ///     })
    /// }
    /// ```
    pub fn race<R: Racers>(&self, racers: R) -> Race<R> {
        Race(Some(racers))
    }

    /// Sends a signal to another run when it is awaited, once: what became of it is recorded.
    pub fn signal(&self, name: &str, payload: &impl Serialize) -> FunctionSignal<'_, I, S> {
        FunctionSignal::new(self, name, payload)
    }

    /// A number by chance that is the same whenever the function runs again.
    pub fn random(&self, name: impl IntoStepName) -> u64 {
        random_of(self.derived(name))
    }

    /// An id by chance that is the same whenever the function runs again.
    pub fn uuid(&self, name: impl IntoStepName) -> Uuid {
        uuid_of(self.derived(name))
    }

    fn derived(&self, name: impl IntoStepName) -> [u8; 32] {
        self.task.derived(&self.take_key(name).text())
    }

    /// The same context with names of its own: in the scope `eu`, the step `charge` is recorded as
    /// `eu/charge`.
    #[must_use]
    pub fn scope(&self, name: impl Display) -> Self {
        let scope = match &self.scope {
            Some(outer) => format!("{outer}{name}/"),
            None => format!("{name}/"),
        };
        Self { scope: Some(scope.into()), ..self.clone() }
    }

    /// Ends this round of a function, and begins the next one with another input and with nothing
    /// recorded: for loops without end. The run stays the same, and so do its signals that nobody
    /// got and its deadline.
    ///
    /// ```
    /// # use stepwell::{Ctx, Result};
    /// # use std::time::Duration;
    /// async fn poll_for_ever(ctx: Ctx<u64>) -> Result<()> {
    ///     let seen = *ctx.input();
    ///     let found = ctx.step("look", async || Ok(seen + 1)).await?;
    ///     ctx.sleep("pause", Duration::from_mins(5)).await?;
    ///     ctx.continue_with(found)
    /// }
    /// ```
    ///
    /// # Errors
    /// Always: return it, and the engine does the rest.
    pub fn continue_with<O>(&self, input: I) -> Result<O>
    where
        I: Serialize,
    {
        if !self.is_function {
            let message =
                "`continue_with` is for functions: the input of a step is that of its run";
            return Err(StepError::permanent(message));
        }
        let parts = &self.task.parts;
        let (codec, bytes_max) = (parts.codec.as_ref(), parts.config.payload_bytes_max);
        let payload = encode(codec, bytes_max, "the input of the next round", &input);
        Err(match payload {
            Ok(payload) => StepError::continues(payload),
            Err(error) => StepError::permanent(error),
        })
    }

    /// Takes the key of a call, and refuses calls that no replay could repeat.
    pub(super) fn take_key(&self, name: impl IntoStepName) -> Key {
        let name = self.scoped_name(name);
        let function = self.task.function();
        let is_foreign = match doing() {
            Doing::Function { task, is_foreign } if task == self.task.claim => is_foreign,
            Doing::Step { task, key } if task == self.task.claim => {
                function.refuse_in_step(&name, &key);
                false
            }
            _ => {
                function.journal().refuse(&format!("{name:?} {OUTSIDE}"));
                false
            }
        };
        let is_unordered = is_foreign || function.is_woken_by_foreign();
        function.journal().take_key(&name, is_unordered)
    }

    /// A name with the scope in front.
    pub(crate) fn scoped_name(&self, name: impl IntoStepName) -> String {
        let name = name.into_step_name().0;
        match &self.scope {
            Some(scope) => format!("{scope}{name}"),
            None => name,
        }
    }
}

/// A number from derived bytes.
pub(crate) fn random_of(bytes: [u8; 32]) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|ix| bytes[ix]))
}

/// An id from derived bytes.
pub(crate) fn uuid_of(bytes: [u8; 32]) -> Uuid {
    uuid::Builder::from_custom_bytes(std::array::from_fn(|ix| bytes[ix])).into_uuid()
}
