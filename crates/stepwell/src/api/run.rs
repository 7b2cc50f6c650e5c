//! A handle of a run: wait for it, read it, cancel it.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stepwell_core::code::Code;
use stepwell_core::id::{Node, RunId, RunKey, Tenant};
use stepwell_core::run::{RunLog, RunStatus, TaskRow, read_log};
use stepwell_core::workflow::workflow_hash;

use super::cancel::Cancel;
use super::engine::Inner;
use super::run_output::ReadOutput;
use super::signal::{Signal, ToRun};
use super::step_ref::{Kind, StepRef};
use super::views::{Attempt, Memo, OpenWait, RunEvent, RunOutcome, SentSignal, TaskStatus};
use crate::engine::{EndWaiter, as_declared, decode};
use crate::error::Error;
use crate::ports::{
    AwaitedRun, DynStore, EndOutput, Payload, RunEnd, RunView, StoreError, StoredDefinition,
};

/// How long a look at a run may take that is waited for while its engine stops.
const LAST_LOOK_TTL: Duration = Duration::from_secs(5);

/// A handle of a run with output `O`. Cheap to clone; dropping it leaves the run alone.
pub struct Run<O = Value> {
    inner: Arc<Inner>,
    key: RunKey,
    tenant: Tenant,
    id: RunId,
    definition: Arc<StoredDefinition>,
    read: ReadOutput<O>,
}

impl<O> Clone for Run<O> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            key: self.key,
            tenant: self.tenant.clone(),
            id: self.id.clone(),
            definition: Arc::clone(&self.definition),
            read: self.read,
        }
    }
}

impl<O> Run<O> {
    pub(super) fn new(inner: Arc<Inner>, view: RunView, read: ReadOutput<O>) -> Self {
        let RunView { row, definition } = view;
        Self { inner, key: row.key, tenant: row.tenant, id: row.id, definition, read }
    }

    pub(super) fn from_parts(
        inner: Arc<Inner>,
        key: RunKey,
        (tenant, id): (Tenant, RunId),
        definition: Arc<StoredDefinition>,
        read: ReadOutput<O>,
    ) -> Self {
        Self { inner, key, tenant, id, definition, read }
    }

    /// The caller's id of the run.
    #[must_use]
    pub fn id(&self) -> &str {
        self.id.as_str()
    }

    /// Whose run it is.
    #[must_use]
    pub fn tenant(&self) -> &str {
        self.tenant.as_str()
    }

    /// The engine's own key of the run.
    #[must_use]
    pub fn key(&self) -> RunKey {
        self.key
    }

    /// The workflow's name.
    #[must_use]
    pub fn workflow(&self) -> &str {
        &self.definition.definition.workflow
    }

    /// Waits for the run to end and gives its output.
    ///
    /// # Errors
    /// When the run failed or was cancelled, when its output does not fit `O`, or when the
    /// engine is stopped meanwhile or its runtime ends (`SW0015`). The run itself is not touched by
    /// any of them.
    pub async fn result(&self) -> Result<O, Error> {
        let output = self.definition.definition.output_step();
        let waiter = || self.inner.awaited_runs.wait_for(self.key, output);
        self.read_result(self.end_of(waiter).await?)
    }

    /// As [`result`](Self::result), by a caller that has waited since before the start.
    pub(super) async fn result_of(&self, waiter: EndWaiter) -> Result<O, Error> {
        self.read_result(self.end_of(|| waiter).await?)
    }

    /// As [`Run::result`], waiting at most `timeout`.
    ///
    /// # Errors
    /// As there, and `SW0019` when the time is up. The run goes on.
    pub async fn result_within(&self, timeout: Duration) -> Result<O, Error> {
        tokio::select! {
            biased;
            result = self.result() => return result,
            () = self.inner.parts.clock.sleep(timeout) => {}
        }
        // The run may have ended a moment ago, with the hint still on its way.
        match self.end_so_far().await {
            Ok(Some(end)) => self.read_result(end),
            Ok(None) | Err(Error::Unavailable { .. }) => {
                Err(Error::WaitTimedOut { run: self.id.clone(), waited: timeout })
            }
            Err(error) => Err(error),
        }
    }

    /// Waits for the run to end, however it does.
    ///
    /// # Errors
    /// When the engine is stopped meanwhile, or its runtime ends.
    pub async fn ended(&self) -> Result<RunStatus, Error> {
        Ok(self.end_of(|| self.inner.awaited_runs.wait_for(self.key, None)).await?.status)
    }

    async fn end_of(&self, waiter: impl FnOnce() -> EndWaiter) -> Result<RunEnd, Error> {
        self.inner.check_open()?;
        tokio::select! {
            biased;
            Some(end) = waiter().ended() => Ok(end),
            () = self.inner.shutdown.over() => self.end_at_last().await,
        }
    }

    /// How the run has ended by the time its engine stops: the last drained step may have ended it.
    async fn end_at_last(&self) -> Result<RunEnd, Error> {
        let look = tokio::select! {
            biased;
            look = self.end_so_far() => look,
            () = self.inner.parts.clock.sleep(LAST_LOOK_TTL) => Ok(None),
        };
        match look {
            Ok(Some(end)) => Ok(end),
            Ok(None) | Err(Error::Unavailable { .. }) => Err(Error::stopped()),
            Err(error) => Err(error),
        }
    }

    /// How the run ended, if it has. Asked once: the caller's time is up, and nobody waits for the
    /// store to come back.
    async fn end_so_far(&self) -> Result<Option<RunEnd>, Error> {
        let output = self.definition.definition.output_step();
        let ended = self.inner.parts.store.ended(&[AwaitedRun { run: self.key, output }]).await?;
        Ok(ended.into_iter().next().map(|(_, end)| end))
    }

    fn read_result(&self, end: RunEnd) -> Result<O, Error> {
        match end.status {
            RunStatus::Cancelled => return Err(Error::RunCancelled { run: self.id.clone() }),
            RunStatus::Failed => {
                let failure = end.failure;
                let unknown = || Error::Corrupt { message: "a failed run has no failure".into() };
                let failure = failure.ok_or_else(unknown)?;
                return Err(Error::RunFailed { run: self.id.clone(), failure });
            }
            _ => {}
        }
        let payload = match end.output {
            EndOutput::Known(payload) => payload,
            EndOutput::Stored => {
                return Err(Error::Corrupt { message: "the output of a run was not read".into() });
            }
        };
        let definition = &self.definition.definition;
        let policy = definition.output_step().and_then(|node| definition.step_policy(node));
        let payload = payload.map(|payload| as_declared(policy, payload));
        (self.read)(self.inner.parts.codec.as_ref(), payload.as_ref())
    }

    /// How the run stands now.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub async fn status(&self) -> Result<RunStatus, Error> {
        self.inner.check_open()?;
        Ok(self.view().await?.row.status)
    }

    /// How the run stands now, with every step's output by name.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub async fn outcome(&self) -> Result<RunOutcome, Error> {
        self.inner.check_open()?;
        let row = self.view().await?.row;
        let outputs = self.outputs().await?;
        let failure = row.failure.map(|failure| *failure);
        Ok(RunOutcome { status: row.status, failure, outputs })
    }

    /// The output of a step: `T`, or `Option<T>` if it may be skipped.
    ///
    /// # Errors
    /// When the step has no output yet or was skipped although it cannot be, when it belongs to
    /// another workflow, or when its output does not fit `T`.
    pub async fn output<T, K>(&self, step: &StepRef<T, K>) -> Result<K::Output<T>, Error>
    where
        T: DeserializeOwned + Send + 'static,
        K: Kind,
    {
        self.inner.check_open()?;
        let name = self.inner.step_name(self.workflow(), step.node());
        let is_own = step.workflow == workflow_hash(self.workflow());
        let node = name.as_deref().and_then(|name| self.definition.definition.find(name));
        let (Some(name), Some(node), true) = (name, node, is_own) else {
            let message = "the step belongs to another workflow, or this engine lacks its code";
            return Err(Error::refused(Code::UnknownStep, message));
        };
        let payload = self.stored_output(node).await?;
        let what = format!("the output of step {name:?}");
        let codec = self.inner.parts.codec.as_ref();
        let value = payload.map(|payload| decode(codec, &what, &payload)).transpose()?;
        let missing = || {
            let message = format!("step {name:?} has no output: it has not completed");
            Error::refused(Code::StepSkipped, message)
        };
        K::output(value).ok_or_else(missing)
    }

    /// Outputs of all completed steps by name.
    ///
    /// # Errors
    /// When the store cannot be reached, or another codec wrote an output.
    pub async fn outputs(&self) -> Result<BTreeMap<String, Value>, Error> {
        self.inner.check_open()?;
        let outputs = self.read(|store| store.outputs(self.key)).await?;
        let codec = self.inner.parts.codec.as_ref();
        let definition = &self.definition.definition;
        // A sleep completes as well, but gives nothing.
        let gives = |(node, _): &(Node, Payload)| !definition.graph.kind(*node).is_sleep();
        let read = |(node, payload): (Node, Payload)| {
            let name = self.step_name(node).to_owned();
            let payload = as_declared(definition.step_policy(node), payload);
            let value: Value = decode(codec, &name, &payload)?;
            Ok((
                name,
                match payload.signal {
                    Some(signal) if signal.is_variant => json!({ &*signal.name: value }),
                    _ => value,
                },
            ))
        };
        outputs.into_iter().filter(gives).map(read).collect()
    }

    /// What a task of the run gave.
    async fn stored_output(&self, node: Node) -> Result<Option<Payload>, Error> {
        let payload = self.read(|store| store.output(self.key, node)).await?;
        let policy = self.definition.definition.step_policy(node);
        Ok(payload.map(|payload| as_declared(policy, payload)))
    }

    /// How every task of the run stands.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub async fn tasks(&self) -> Result<Vec<TaskStatus>, Error> {
        self.inner.check_open()?;
        let tasks = self.read(|store| store.tasks(self.key)).await?;
        // Whatever was told since then belongs to another attempt, or to the same.
        let is_running = tasks.iter().any(|task| task.claim().is_some());
        let told = if is_running {
            self.read(|store| store.progress(self.key)).await?
        } else {
            Vec::new()
        };
        let status = |task: &TaskRow| TaskStatus::of(self.step_name(task.node), task, &told);
        Ok(tasks.iter().map(status).collect())
    }

    /// The run's log: complete, in order, never rewritten.
    ///
    /// The order is that of the numbers. An event gets its number when it can no longer change:
    /// QUEUED and STARTED get theirs together with the end of their attempt, or before it when the
    /// run is cancelled or its deadline passes, so an event may carry an earlier time than the one
    /// before it. The events of one task are in the order in which they happened, and whatever ends
    /// other tasks as well stands after their QUEUED. What an open task has come to follows at the
    /// end, by time and without numbers; it may change until it has one.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub async fn events(&self) -> Result<Vec<RunEvent>, Error> {
        self.inner.check_open()?;
        let log = self.log().await?;
        let events = read_log(&log).into_iter().map(|event| {
            let step = event.node.map(|node| self.step_name(node).to_owned());
            RunEvent::of(step, event)
        });
        Ok(events.collect())
    }

    /// The finished attempts of the run, with the step's name.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub async fn attempts(&self) -> Result<Vec<(String, Attempt)>, Error> {
        self.inner.check_open()?;
        let attempts = self.log().await?.attempts.into_iter();
        Ok(attempts.map(|row| (self.step_name(row.node).to_owned(), Attempt::of(row))).collect())
    }

    /// What the run waits for, oldest first.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub async fn waits(&self) -> Result<Vec<OpenWait>, Error> {
        self.inner.check_open()?;
        let waits = self.read(|store| store.waits(self.key)).await?.into_iter();
        Ok(waits.map(|wait| OpenWait::of(self.step_name(wait.node), wait)).collect())
    }

    /// The signals that were sent to the run, in order, those that nobody got among them.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub async fn signals(&self) -> Result<Vec<SentSignal>, Error> {
        self.inner.check_open()?;
        let signals = self.read(|store| store.signals(self.key)).await?.into_iter();
        Ok(signals.map(|signal| SentSignal::of(signal, |node| self.step_name(node))).collect())
    }

    /// What functions of the run have done and begun, in the order in which they heard of it; what
    /// there is nothing to hear of yet comes last.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub async fn memos(&self) -> Result<Vec<Memo>, Error> {
        self.inner.check_open()?;
        let memos = self.read(|store| store.memos(self.key)).await?.into_iter();
        let mut memos: Vec<Memo> =
            memos.map(|memo| Memo::of(memo, |node| self.step_name(node))).collect();
        memos.sort_by_key(|memo| memo.number.unwrap_or(u64::MAX));
        Ok(memos)
    }

    /// Sends the run a signal. Await it; give it a key and attributes before, if need be.
    pub fn signal(&self, name: &str, payload: &impl Serialize) -> Signal<ToRun> {
        Signal::new(Arc::clone(&self.inner), name, payload).addressed_to(self.key)
    }

    /// Cancels the run when awaited; give a reason before. When `Cancelled` is answered, nothing
    /// of it starts any more, and what runs is told to stop.
    pub fn cancel(&self) -> Cancel {
        Cancel::new(Arc::clone(&self.inner), self.key, self.unknown())
    }

    fn step_name(&self, node: Node) -> &str {
        self.definition.definition.name(node)
    }

    async fn view(&self) -> Result<RunView, Error> {
        self.read(|store| store.run(self.key)).await?.ok_or_else(|| self.unknown())
    }

    async fn log(&self) -> Result<RunLog, Error> {
        self.read(|store| store.log(self.key)).await?.ok_or_else(|| self.unknown())
    }

    /// Reads from the store, patiently.
    async fn read<'s, A, F>(&'s self, read: impl Fn(&'s DynStore) -> F) -> Result<A, Error>
    where
        F: Future<Output = Result<A, StoreError>>,
    {
        let parts = &self.inner.parts;
        Ok(parts.patiently(|| read(&parts.store)).await?)
    }

    fn unknown(&self) -> Error {
        let (tenant, id) = (self.tenant.as_str(), self.id.as_str());
        Error::refused(Code::UnknownRun, format!("tenant {tenant:?} has no run {id:?}"))
    }
}
