//! Operations of blocking code: asked for, executed and stored on its thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use stepwell_core::failure::Failure;
use stepwell_core::function::{Asked, Call, Completion, Key, OpId, STAYS_FOR};
use stepwell_core::time::Timestamp;

use super::branch::Branch;
use super::crew::Crew;
use crate::api::function::{read_value, timed_out};
use crate::api::step_error::{Result, StepError};
use crate::engine::{Doing, TaskContext, is_about_data, panicked, while_doing};
use crate::error::Error;
use crate::ports::{MemoAnswer, Payload, StoreError};

/// An operation that blocking code has asked for.
pub(super) struct Place {
    pub(super) task: Arc<TaskContext>,
    pub(super) branch: Arc<Branch>,
    pub(super) key: Arc<str>,
    id: OpId,
}

/// The code of a step.
pub(super) type Code<'c> = dyn Fn() -> std::result::Result<Payload, Failure> + 'c;

impl Place {
    pub(super) fn new(task: Arc<TaskContext>, branch: Arc<Branch>, key: Key, call: Call) -> Self {
        let text: Arc<str> = key.text().into();
        let id = task.function().journal().call(key, call, None, task.now());
        Self { task, branch, key: text, id }
    }

    pub(super) fn set_due(&self, due: Timestamp) {
        self.task.function().journal().set_due(self.id, due);
    }

    pub(super) fn amend(&self, change: impl FnOnce(&mut Call)) {
        self.task.function().journal().amend(self.id, change);
    }

    pub(super) fn refuse(&self, why: &str) {
        let message = format!("{:?} of a function: {why}", self.key);
        self.task.function().journal().refuse(&message);
    }

    /// Waits for how the operation went, and reads what it gave.
    pub(super) fn wait<T: DeserializeOwned>(self, code: Option<&Code<'_>>) -> Result<T> {
        let completion = self.settle(code)?;
        read_value(&self.task, &self.key, completion)
    }

    /// Executes, stores or waits until it is known how the operation went.
    pub(super) fn settle(&self, code: Option<&Code<'_>>) -> Result<Completion<Payload>> {
        let function = self.task.function();
        loop {
            self.go_on()?;
            let may_start = self.task.may_start_steps();
            let asked = function.journal().ask(self.id, self.task.now(), may_start);
            match (asked, code) {
                (Asked::Over(completion), _) => return Ok(completion),
                (Asked::Execute, Some(code)) => self.execute(code)?,
                (Asked::Store, _) => self.store()?,
                (Asked::Later(Some(due)), _) if self.is_soon(due) => self.sleep_until(due)?,
                (Asked::Later(_) | Asked::Execute, _) => {
                    function.journal().keep(self.id);
                    return self.branch.stop();
                }
                (Asked::Release, _) => {
                    function.release();
                    return self.branch.stop();
                }
            }
        }
    }

    fn go_on(&self) -> Result<()> {
        if let Some(refusal) = self.task.function().journal().refusal() {
            return Err(StepError::of_failure(refusal.clone()));
        }
        self.branch.go_on()?;
        if self.task.stop.is_stopped() {
            return Err(StepError::cancelled());
        }
        Ok(())
    }

    fn execute(&self, code: &Code<'_>) -> Result<()> {
        let (task, key) = (self.task.claim, Arc::clone(&self.key));
        let began = self.task.parts.clock.elapsed();
        let call = || while_doing(Doing::Step { task, key }, code);
        let outcome =
            catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| Err(panicked(panic)));
        let span = self.task.parts.clock.elapsed().saturating_sub(began);
        let outcome = if self.is_late(span) { Err(timed_out()) } else { outcome };
        let (now, chance) = (self.task.now(), self.task.parts.chance());
        self.task.function().journal().executed(self.id, outcome, now, chance);
        self.store()
    }

    /// Whether a try has taken longer than it may. It cannot be interrupted.
    fn is_late(&self, span: Duration) -> bool {
        let mut is_late = false;
        self.amend(|call| {
            if let Call::Step { timeout: Some(timeout), .. } = call {
                is_late = span > *timeout;
            }
        });
        is_late
    }

    /// Whether to wait in place.
    fn is_soon(&self, due: Timestamp) -> bool {
        due <= self.task.now().after(STAYS_FOR)
    }

    /// Waits in place, on the thread that may wait for the engine.
    fn sleep_until(&self, due: Timestamp) -> Result<()> {
        if let Some(crew) = self.branch.crew() {
            return crew.sleep_until(due);
        }
        sleep_until(&self.task, due);
        Ok(())
    }

    /// Stores what is to be stored, on the thread that may.
    fn store(&self) -> Result<()> {
        self.branch.crew().map_or_else(|| store(&self.task), Crew::store)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.task.function().journal().forget(self.id);
    }
}

/// Waits until a moment of the store's time, or until the function is told to stop.
pub(super) fn sleep_until(task: &Arc<TaskContext>, at: Timestamp) {
    let span = at.since(task.now());
    let _waits = task.wait_for_engine(true);
    let sleeping = Arc::clone(task);
    task.parts.spawner.block_on(Box::pin(async move {
        tokio::select! {
            biased;
            () = sleeping.stop.token().cancelled() => {}
            () = sleeping.parts.clock.sleep(span) => {}
        }
    }));
}

/// Stores everything of a function that is to be stored, and waits for that.
pub(super) fn store(task: &Arc<TaskContext>) -> Result<()> {
    loop {
        let Some(write) = task.function().journal().take_write() else { return Ok(()) };
        let id = write.id;
        let request = task.function().request(task.claim, write);
        let (answer_to, answer) = mpsc::channel();
        let storing = Arc::clone(task);
        task.parts.spawner.block_on(Box::pin(async move {
            let _ = answer_to.send(storing.parts.functions().memos.store(request).await);
        }));
        let closed = || StoreError::Unavailable { operation: "store memos", why: "closed".into() };
        match answer.recv().unwrap_or_else(|_| Err(closed())) {
            Ok(MemoAnswer::Stored(at)) => task.function().journal().stored(id, at),
            Err(error) if is_about_data(&error) => {
                let failure = StepError::payload(&Error::from(error));
                task.function().journal().refused(id, &failure);
            }
            // The claim is lost, or the engine has closed.
            Ok(MemoAnswer::NotMine) | Err(_) => {
                task.stop.token().cancel();
                return Err(StepError::cancelled());
            }
        }
    }
}
