//! What blocking steps and functions are handed.

use std::fmt::Display;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use stepwell_core::function::Call;
use stepwell_core::retry::Retry;
use stepwell_core::run::Attributes;
use stepwell_core::time::Timestamp;
use uuid::Uuid;

use super::branch::Branch;
use super::function_signal::FunctionSignal;
use super::join::{BranchOf, Operations};
use super::op::Place;
use super::operations::{FunctionSleep, FunctionStep, FunctionWait};
use crate::api::ctx::Ctx as AsyncCtx;
use crate::api::function::{IntoStepName, random_of, signals_of, uuid_of};
use crate::api::step_error::Result;
use crate::api::step_ref::{Kind, StepRef};

/// What a blocking step or function is handed: the run's input, the engine's state, what is known
/// of the task, and everything durable. Where async code says `.await`, this says `.wait()?`.
///
/// A function that has to wait for long gets an error from `.wait()` that says so. Hand it up by
/// `?`: the function is called again when the wait is over, and what it has recorded answers.
pub struct Ctx<I = (), S = ()> {
    pub(super) ctx: AsyncCtx<I, S>,
    pub(super) branch: Arc<Branch>,
}

impl<I, S> Ctx<I, S> {
    pub(crate) fn new(ctx: AsyncCtx<I, S>) -> Self {
        Self { ctx, branch: Branch::new(None) }
    }

    pub(crate) fn into_function(self) -> Self {
        Self { ctx: self.ctx.into_function(), branch: self.branch }
    }

    pub(crate) fn branch_of_code(&self) -> Arc<Branch> {
        Arc::clone(&self.branch)
    }

    /// The output of any step upstream: see [`crate::Ctx::output`].
    ///
    /// # Errors
    /// As there.
    pub fn output<T, K>(&self, step: &StepRef<T, K>) -> Result<K::Output<T>>
    where
        T: DeserializeOwned + Send + 'static,
        K: Kind,
    {
        self.ctx.output_blocking(*step)
    }
}

/// What is known of the task is the same as for async code.
impl<I, S> Deref for Ctx<I, S> {
    type Target = AsyncCtx<I, S>;

    fn deref(&self) -> &AsyncCtx<I, S> {
        &self.ctx
    }
}

impl<I, S> Ctx<I, S> {
    /// A step: its code is executed by `.wait()?` or in a [`Ctx::join`], and what it gives is
    /// recorded. See [`crate::Ctx::step`].
    pub fn step<'a, T, F>(&self, name: impl IntoStepName, code: F) -> FunctionStep<'a, T>
    where
        T: Serialize + DeserializeOwned + 'static,
        F: Fn() -> Result<T> + Send + 'a,
    {
        let call = Call::Step { retry: Retry::never(), timeout: None };
        FunctionStep::new(self.place(name, call), code)
    }

    /// Sleeps from this call on, by `.wait()?`. See [`crate::Ctx::sleep`].
    pub fn sleep(&self, name: impl IntoStepName, span: Duration) -> FunctionSleep {
        FunctionSleep::new(self.place(name, Call::Sleep), span)
    }

    /// As [`Ctx::sleep`], until a moment of the store's time.
    pub fn sleep_until(&self, name: impl IntoStepName, at: Timestamp) -> FunctionSleep {
        FunctionSleep::until(self.place(name, Call::Sleep), at)
    }

    /// Waits for a signal, by `.wait()?`. See [`crate::Ctx::wait`].
    pub fn wait<T>(&self, name: impl IntoStepName, signal: &str) -> FunctionWait<T>
    where
        T: DeserializeOwned + Send + 'static,
    {
        let call = Call::Wait { signals: vec![signal.to_owned()], matching: Attributes::new() };
        FunctionWait::new(self.place(name, call), false)
    }

    /// As [`Ctx::wait`], for one of several signals: the variants of the enum `E`.
    pub fn wait_any<E>(&self, name: impl IntoStepName) -> FunctionWait<E>
    where
        E: DeserializeOwned + Send + 'static,
    {
        let refuse = |why: String| self.ctx.task.function().journal().refuse(&why);
        let call = Call::Wait { signals: signals_of::<E>(refuse), matching: Attributes::new() };
        FunctionWait::new(self.place(name, call), true)
    }

    /// Several steps, sleeps, waits and branches at once, on threads of their own: a tuple of up to
    /// four, or a `Vec` of one kind.
    ///
    /// ```
    /// # use stepwell::{Result, blocking::Ctx};
    /// fn set_up(ctx: Ctx<String>) -> Result<(u32, u32)> {
    ///     ctx.join((ctx.step("laptop", || Ok(1)), ctx.step("access", || Ok(2))))
    /// }
    /// ```
    ///
    /// # Errors
    /// With the first error of any of them, once all have ended.
    pub fn join<O: Operations>(&self, operations: O) -> Result<O::Outputs> {
        super::join::join(&self.ctx.task, &self.branch, operations)
    }

    /// Ordinary code with steps of its own, for a [`Ctx::join`]. Names in it are its own.
    pub fn branch<'a, T, F>(&self, name: impl Display, code: F) -> BranchOf<'a, I, S, T>
    where
        F: FnOnce(Ctx<I, S>) -> Result<T> + Send + 'a,
    {
        BranchOf::new(self.ctx.scope(name), code)
    }

    /// The same context with names of its own. See [`crate::Ctx::scope`].
    #[must_use]
    pub fn scope(&self, name: impl Display) -> Self {
        Self { ctx: self.ctx.scope(name), branch: Arc::clone(&self.branch) }
    }

    /// As [`crate::Ctx::random`].
    pub fn random(&self, name: impl IntoStepName) -> u64 {
        random_of(self.derived(name))
    }

    /// As [`crate::Ctx::uuid`].
    pub fn uuid(&self, name: impl IntoStepName) -> Uuid {
        uuid_of(self.derived(name))
    }

    fn derived(&self, name: impl IntoStepName) -> [u8; 32] {
        self.ctx.task.derived(&self.branch.take_key(&self.ctx, name).text())
    }

    /// Sends a signal to another run by `.to(..).wait()?`, once. See [`crate::Ctx::signal`].
    pub fn signal(&self, name: &str, payload: &impl Serialize) -> FunctionSignal<'_, I, S> {
        FunctionSignal::new(self, name, payload)
    }

    /// Ends this round of a function. See [`crate::Ctx::continue_with`].
    ///
    /// # Errors
    /// Always: return it.
    pub fn continue_with<O>(&self, input: I) -> Result<O>
    where
        I: Serialize,
    {
        self.branch.go_on()?;
        self.ctx.continue_with(input)
    }

    pub(super) fn place(&self, name: impl IntoStepName, call: Call) -> Place {
        let key = self.branch.take_key(&self.ctx, name);
        Place::new(Arc::clone(&self.ctx.task), Arc::clone(&self.branch), key, call)
    }
}
