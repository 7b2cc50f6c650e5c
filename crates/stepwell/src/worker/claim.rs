//! The claim loop: takes as many tasks as there are free slots, and waits for hints or the poll.

use std::sync::Arc;
use std::time::Duration;

use stepwell_core::run::MemoOutcome;
use stepwell_core::time::Timestamp;
use stepwell_core::trial::TrialTimes;
use tokio::sync::mpsc::UnboundedReceiver;

use super::Worker;
use crate::engine::{
    ClaimedBatch, Slot, StepBody, Stop, TaskArgs, TaskContext, TaskNames, as_declared,
    is_about_data, refused_outcome,
};
use crate::ports::{
    ClaimAnswer, ClaimRequest, ClaimedTask, CommitItem, Hint, History, InputsOf, Outcome, Payload,
    StoreError, Take, TaskInputs,
};

/// What a claim call told.
pub(super) struct Told {
    pub(super) found: Found,
    /// Whether a suspect waits that was not handed out.
    pub(super) suspect_waits: bool,
}

/// What a claim call found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// A task for every slot, so there may be more.
    PerhapsMore,
    /// Fewer tasks than there were slots: that was all there is now.
    All,
    /// No task at all.
    Nothing,
}

/// How long to wait after `n_empty` claim calls in vain: a short while after there was work, and
/// ever longer up to the whole interval when there is none.
fn poll_span(interval: Duration, n_empty: u32) -> Duration {
    (interval / 16).saturating_mul(1 << n_empty.min(4)).min(interval)
}

impl Worker {
    /// Claims and executes until the engine begins to stop.
    pub(super) async fn claim_loop(self: Arc<Self>) {
        let _ended = self.claim_loop_ended.clone().drop_guard();
        let mut hints = self.parts.store.hints();
        let mut n_empty = 0;
        // How long a claim call took that left tasks waiting.
        let mut backlog_span = None;
        let mut trial_times = TrialTimes::default();
        loop {
            let slot = tokio::select! {
                biased;
                () = self.slots.stopping.cancelled() => return,
                slot = self.slots.free_slot() => slot,
            };
            let Some(slot) = slot else { return };
            if let Some(span) = backlog_span.take() {
                self.slots.gather_free(span).await;
            }
            hints.look(Hint::Ready);
            self.slots.claim_begins();
            let since = self.parts.clock.elapsed();
            let told = self.claim(slot).await;
            let is_more = told.as_ref().is_ok_and(|told| told.found == Found::PerhapsMore);
            let span = self.parts.clock.elapsed().saturating_sub(since);
            self.slots.claim_ended(is_more);
            let (mut trial_pause, mut others_run) = (None, false);
            match told {
                Ok(told) => {
                    let has_held_trial = self.meets_suspect(&told, &mut trial_times).await;
                    if has_held_trial || told.found != Found::Nothing {
                        n_empty = 0;
                    }
                    if has_held_trial || is_more {
                        backlog_span = (!has_held_trial).then_some(span);
                        continue;
                    }
                    let pause = || trial_times.pause(self.parts.clock.elapsed());
                    trial_pause = told.suspect_waits.then(pause);
                    others_run = told.suspect_waits && self.slots.held.len() > 0;
                }
                Err(error) => tracing::warn!(%error, "claim tasks"),
            }
            let wait = self.poll_pause(n_empty);
            let wait = trial_pause.map_or(wait, |pause| pause.min(wait));
            n_empty += 1;
            tokio::select! {
                biased;
                () = self.slots.stopping.cancelled() => return,
                () = hints.given(Hint::Ready) => n_empty = 0,
                // Perhaps nobody else is left to be served before suspects.
                () = self.slots.held.emptied(), if others_run => {}
                () = self.parts.clock.sleep(wait) => {}
            }
        }
    }

    /// The poll, spread by a fifth so that a fleet does not ask all at once.
    fn poll_pause(&self, n_empty: u32) -> Duration {
        let full = poll_span(self.parts.config.poll_interval, n_empty);
        let spread = u32::try_from(self.parts.ids.random() >> 32).unwrap_or_default();
        let spread = (full / 5).mul_f64(f64::from(spread) / f64::from(u32::MAX));
        full.saturating_sub(spread)
    }

    /// Claims tasks for this slot and all others that are free, and executes them.
    async fn claim(self: &Arc<Self>, slot: Slot) -> Result<Told, StoreError> {
        let mut slots = vec![slot];
        slots.extend(self.slots.free_slots(usize::MAX));
        let request = self.slots.claim_request(slots.len(), Take::Plain);
        self.claim_into(slots, request).await
    }

    /// Makes a claim call for these slots, and executes what it brings.
    pub(super) async fn claim_into(
        self: &Arc<Self>,
        slots: Vec<Slot>,
        request: ClaimRequest,
    ) -> Result<Told, StoreError> {
        let salt = request.salt;
        self.slots.calls.begin(salt);
        let told = match self.parts.store.claim(request).await {
            Ok(answer) => Ok(self.claimed(slots, answer).await),
            Err(error) => Err(error),
        };
        self.slots.calls.end(salt);
        told
    }

    async fn claimed(self: &Arc<Self>, slots: Vec<Slot>, answer: ClaimAnswer) -> Told {
        match answer {
            ClaimAnswer::NotRegistered => {
                let is_back = self.register_again(&self.slots.held.refs()).await;
                let found = if is_back { Found::PerhapsMore } else { Found::Nothing };
                Told { found, suspect_waits: false }
            }
            ClaimAnswer::NoTrial => Told { found: Found::Nothing, suspect_waits: false },
            ClaimAnswer::Claimed { tasks, suspect_waits, .. } if tasks.is_empty() => {
                Told { found: Found::Nothing, suspect_waits }
            }
            ClaimAnswer::Claimed { now, tasks, suspect_waits } => {
                let has_slots_left = tasks.len() < slots.len();
                self.execute_all(self.slots.take_up(now, tasks, slots)).await;
                let found = if has_slots_left { Found::All } else { Found::PerhapsMore };
                Told { found, suspect_waits }
            }
        }
    }

    /// Executes the tasks that starts and commits hand over, until the engine closes.
    pub(super) async fn hand_over_loop(
        self: Arc<Self>,
        mut handed_over: UnboundedReceiver<ClaimedBatch>,
    ) {
        loop {
            let batch = tokio::select! {
                biased;
                () = self.parts.closing.cancelled() => return,
                batch = handed_over.recv() => batch,
            };
            let Some(batch) = batch else { return };
            self.execute_all(batch).await;
        }
    }

    /// Reads the inputs that did not come with the claims, and starts each task in its slot. Tasks
    /// whose inputs cannot be read are failed or handed back.
    async fn execute_all(self: &Arc<Self>, ClaimedBatch { now, tasks }: ClaimedBatch) {
        let lacking = tasks.iter().filter(|(task, ..)| task.inputs.is_none());
        let lacking: Vec<InputsOf> = lacking.map(|(task, ..)| task.inputs_of()).collect();
        let mut read = self.inputs(&lacking).await.into_iter();
        let mut is_any_unknown = false;
        for (mut task, stop, slot) in tasks {
            let claim = task.claim;
            let missing = || Err(StoreError::Corrupt { what: "a task has no inputs".into() });
            let inputs = match task.inputs.take() {
                Some(inputs) => Ok(inputs),
                None => read.next().unwrap_or_else(missing),
            };
            let prepared = match inputs {
                _ if stop.hands_back() => Err(Outcome::Released),
                Ok(inputs) => self.prepare(task, inputs, &stop, now).ok_or_else(|| {
                    is_any_unknown = true;
                    Outcome::Released
                }),
                Err(error) => Err(self.unreadable(&error)),
            };
            let (body, args) = match prepared {
                Ok(prepared) => prepared,
                Err(outcome) => {
                    self.slots.held.execution_ended(&stop);
                    self.hand_in(CommitItem { claim, outcome }, 0).await;
                    continue;
                }
            };
            let worker = Arc::clone(self);
            self.parts.spawner.spawn(Box::pin(async move {
                worker.attempt(body, args, slot).await;
            }));
        }
        if is_any_unknown {
            self.register_what_it_has().await;
        }
    }

    /// The store takes this worker to have code that it has not: numbers stand for something else
    /// than when it registered.
    async fn register_what_it_has(&self) {
        tracing::warn!(worker = %self.parts.worker, "claimed what it has no code of, registering");
        if let Err(error) = self.register().await {
            tracing::warn!(%error, "register worker");
        }
    }

    /// The inputs of claimed tasks. If they cannot be read together, each is read on its own: one
    /// task whose inputs contradict themselves must not hold up the others.
    async fn inputs(&self, tasks: &[InputsOf]) -> Vec<Result<TaskInputs, StoreError>> {
        if tasks.is_empty() {
            return Vec::new();
        }
        if let Ok(inputs) = self.parts.store.inputs(tasks).await {
            return inputs.into_iter().map(Ok).collect();
        }
        let mut each = Vec::with_capacity(tasks.len());
        for task in tasks {
            let inputs = self.parts.store.inputs(std::slice::from_ref(task)).await;
            let missing = || StoreError::Corrupt { what: "a task has no inputs".into() };
            each.push(inputs.and_then(|inputs| inputs.into_iter().next().ok_or_else(missing)));
        }
        each
    }

    /// What becomes of a task whose inputs cannot be read: it fails if they contradict
    /// themselves, and goes back to the queue if the store could not be reached or read.
    fn unreadable(&self, error: &StoreError) -> Outcome {
        tracing::warn!(%error, "read inputs of a claimed task");
        if is_about_data(error) { refused_outcome(&self.parts, error) } else { Outcome::Released }
    }

    /// The code of a claimed task, and what it is called with.
    fn prepare(
        &self,
        task: ClaimedTask,
        inputs: TaskInputs,
        stop: &Stop,
        now: Timestamp,
    ) -> Option<(StepBody, TaskArgs)> {
        let workflow = self.registry.get(&task.definition)?;
        let node = task.claim.node;
        let body = workflow.step(node)?;
        let mut stored = inputs.parents;
        stored.sort_unstable_by_key(|parent| parent.node);
        let output = |node| {
            let found = stored.binary_search_by_key(&node, |parent| parent.node);
            let output = found.ok().and_then(|ix| stored[ix].output.clone())?;
            Some(as_declared(workflow.policy(node), output))
        };
        let parents = workflow.parents(node).map(output).collect();
        let input = input_of_round(inputs.history.as_deref()).unwrap_or(inputs.input);
        let names = TaskNames {
            claim: task.claim,
            run_id: task.run_id,
            tenant: task.tenant,
            attempt: task.attempt,
            failures: task.failures,
            resumed: inputs.resumed,
            history: inputs.history,
        };
        let context = TaskContext::new(Arc::clone(&self.parts), workflow, names, stop.clone(), now);
        let context = Arc::new(context);
        Some((body, TaskArgs { context, input, parents, failure: inputs.failure }))
    }
}

/// The input that a function went on with, if it did.
fn input_of_round(history: Option<&History>) -> Option<Payload> {
    let memos = history?.memos.iter();
    let mut rounds = memos.filter(|memo| matches!(memo.row.outcome, MemoOutcome::Round(_)));
    rounds.next().and_then(|round| round.payload.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claim_calls_in_vain_become_rarer_up_to_the_interval() {
        let second = Duration::from_secs(1);
        let spans = [0, 1, 2, 3, 4, 5, 1_000].map(|n| poll_span(second, n).as_micros());
        assert_eq!(spans, [62_500, 125_000, 250_000, 500_000, 1_000_000, 1_000_000, 1_000_000]);
    }
}
