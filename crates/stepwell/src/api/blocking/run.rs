use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use stepwell_core::id::RunKey;
use stepwell_core::run::RunStatus;

use super::block_on::{BlockOn, answer_of};
use super::signal::{Cancel, Signal};
use crate::api::{
    Attempt, Kind, Memo, OpenWait, Run as AsyncRun, RunEvent, RunOutcome, SentSignal, StepRef,
    TaskStatus, ToRun,
};
use crate::error::Error;

/// A handle of a run whose calls wait. Cheap to clone; dropping it leaves the run alone.
pub struct Run<O = Value> {
    run: AsyncRun<O>,
    runtime: Arc<dyn BlockOn>,
}

impl<O> Clone for Run<O> {
    fn clone(&self) -> Self {
        Self { run: self.run.clone(), runtime: Arc::clone(&self.runtime) }
    }
}

impl<O> Run<O> {
    /// The caller's id of the run.
    #[must_use]
    pub fn id(&self) -> &str {
        self.run.id()
    }

    /// Whose run it is.
    #[must_use]
    pub fn tenant(&self) -> &str {
        self.run.tenant()
    }

    /// The engine's own key of the run.
    #[must_use]
    pub fn key(&self) -> RunKey {
        self.run.key()
    }

    /// The workflow's name.
    #[must_use]
    pub fn workflow(&self) -> &str {
        self.run.workflow()
    }

    /// The same handle for async code.
    #[must_use]
    pub fn as_async(&self) -> &AsyncRun<O> {
        &self.run
    }
}

impl<O: 'static> Run<O> {
    pub(crate) fn new(run: AsyncRun<O>, runtime: Arc<dyn BlockOn>) -> Self {
        Self { run, runtime }
    }

    /// Waits for the run to end and gives its output.
    ///
    /// # Errors
    /// When the run failed or was cancelled, or its output does not fit `O`.
    #[track_caller]
    pub fn result(&self) -> Result<O, Error>
    where
        O: Send,
    {
        let run = self.run.clone();
        self.block_on(async move { run.result().await })
    }

    /// As [`Run::result`], waiting at most `timeout`.
    ///
    /// # Errors
    /// As there, and `SW0019` when the time is up. The run goes on.
    #[track_caller]
    pub fn result_within(&self, timeout: Duration) -> Result<O, Error>
    where
        O: Send,
    {
        let run = self.run.clone();
        self.block_on(async move { run.result_within(timeout).await })
    }

    /// Waits for the run to end, however it does.
    ///
    /// # Errors
    /// When the engine is stopped meanwhile.
    #[track_caller]
    pub fn ended(&self) -> Result<RunStatus, Error> {
        let run = self.run.clone();
        self.block_on(async move { run.ended().await })
    }

    /// How the run stands now.
    ///
    /// # Errors
    /// When the store cannot be reached.
    #[track_caller]
    pub fn status(&self) -> Result<RunStatus, Error> {
        let run = self.run.clone();
        self.block_on(async move { run.status().await })
    }

    /// How the run stands now, with every step's output by name.
    ///
    /// # Errors
    /// When the store cannot be reached.
    #[track_caller]
    pub fn outcome(&self) -> Result<RunOutcome, Error> {
        let run = self.run.clone();
        self.block_on(async move { run.outcome().await })
    }

    /// The output of a step: `T`, or `Option<T>` if it may be skipped.
    ///
    /// # Errors
    /// When the step has no output, or it does not fit `T`.
    #[track_caller]
    pub fn output<T, K>(&self, step: &StepRef<T, K>) -> Result<K::Output<T>, Error>
    where
        T: DeserializeOwned + Send + 'static,
        K: Kind,
    {
        let (run, step) = (self.run.clone(), *step);
        self.block_on(async move { run.output(&step).await })
    }

    /// Outputs of all completed steps by name.
    ///
    /// # Errors
    /// When the store cannot be reached.
    #[track_caller]
    pub fn outputs(&self) -> Result<BTreeMap<String, Value>, Error> {
        let run = self.run.clone();
        self.block_on(async move { run.outputs().await })
    }

    /// How every task of the run stands.
    ///
    /// # Errors
    /// When the store cannot be reached.
    #[track_caller]
    pub fn tasks(&self) -> Result<Vec<TaskStatus>, Error> {
        let run = self.run.clone();
        self.block_on(async move { run.tasks().await })
    }

    /// The run's log: complete, in the order of its numbers, never rewritten. The async
    /// [`Run::events`](crate::Run::events) says what that order is.
    ///
    /// # Errors
    /// When the store cannot be reached.
    #[track_caller]
    pub fn events(&self) -> Result<Vec<RunEvent>, Error> {
        let run = self.run.clone();
        self.block_on(async move { run.events().await })
    }

    /// The finished attempts of the run, with the step's name.
    ///
    /// # Errors
    /// When the store cannot be reached.
    #[track_caller]
    pub fn attempts(&self) -> Result<Vec<(String, Attempt)>, Error> {
        let run = self.run.clone();
        self.block_on(async move { run.attempts().await })
    }

    /// What the run waits for, oldest first.
    ///
    /// # Errors
    /// When the store cannot be reached.
    #[track_caller]
    pub fn waits(&self) -> Result<Vec<OpenWait>, Error> {
        let run = self.run.clone();
        self.block_on(async move { run.waits().await })
    }

    /// The signals that were sent to the run, in order, those that nobody got among them.
    ///
    /// # Errors
    /// When the store cannot be reached.
    #[track_caller]
    pub fn signals(&self) -> Result<Vec<SentSignal>, Error> {
        let run = self.run.clone();
        self.block_on(async move { run.signals().await })
    }

    /// What functions of the run have done and begun. See
    /// [`Run::memos`](crate::Run::memos).
    ///
    /// # Errors
    /// When the store cannot be reached.
    #[track_caller]
    pub fn memos(&self) -> Result<Vec<Memo>, Error> {
        let run = self.run.clone();
        self.block_on(async move { run.memos().await })
    }

    /// Sends the run a signal: give it a key and attributes if need be, then call `wait`.
    pub fn signal(&self, name: &str, payload: &impl Serialize) -> Signal<ToRun> {
        Signal::new(self.run.signal(name, payload), Arc::clone(&self.runtime))
    }

    /// Cancels the run: give a reason if there is one, then call `wait`.
    pub fn cancel(&self) -> Cancel {
        Cancel::new(self.run.cancel(), Arc::clone(&self.runtime))
    }

    #[track_caller]
    fn block_on<T, F>(&self, future: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        answer_of(self.runtime.as_ref(), future)
    }
}
