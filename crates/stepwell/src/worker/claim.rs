//! The claim loop: takes as many tasks as there are free slots, and waits for hints or the poll.

use std::sync::Arc;
use std::time::Duration;

use stepwell_core::time::Timestamp;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::UnboundedReceiver;

use super::context::TaskNames;
use super::{Handful, TaskArgs, TaskContext, Worker};
use crate::engine::{StepCode, refused};
use crate::ports::{
    ClaimAnswer, ClaimRef, ClaimRequest, ClaimedTask, CommitItem, Hint, Outcome, StoreError,
    TaskInputs,
};

/// How a look for work went.
enum Look {
    /// There may be more.
    Found,
    /// That was all there is now.
    All,
    /// There is nothing now.
    Nothing,
}

/// How long to wait after `n_empty` looks in vain: soon after there was work, and ever longer up to
/// the whole interval when there is none.
fn poll_span(interval: Duration, n_empty: u32) -> Duration {
    (interval / 16).saturating_mul(1 << n_empty.min(4)).min(interval)
}

impl Worker {
    /// Claims and executes until the engine begins to stop.
    pub(super) async fn claim_loop(self: Arc<Self>) {
        let _ended = self.claimed_last.clone().drop_guard();
        let mut hints = self.parts.store.hints();
        let mut n_empty = 0;
        loop {
            let slot = tokio::select! {
                biased;
                () = self.hands.stopping.cancelled() => return,
                slot = Arc::clone(&self.hands.slots).acquire_owned() => slot,
            };
            let Ok(slot) = slot else { return };
            hints.look(Hint::Ready);
            self.hands.looks();
            let look = self.look_for_work(slot).await;
            self.hands.looked(matches!(look, Ok(Look::Found)));
            match look {
                Ok(Look::Found) => {
                    n_empty = 0;
                    continue;
                }
                Ok(Look::All) => n_empty = 0,
                Ok(Look::Nothing) => {}
                Err(error) => {
                    self.parts.contact.broke();
                    tracing::warn!(%error, "claim tasks");
                }
            }
            let wait = self.poll_pause(n_empty);
            n_empty += 1;
            tokio::select! {
                biased;
                () = self.hands.stopping.cancelled() => return,
                () = hints.given(Hint::Ready) => n_empty = 0,
                () = self.hands.held.suspect_dropped() => {}
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

    async fn look_for_work(
        self: &Arc<Self>,
        slot: OwnedSemaphorePermit,
    ) -> Result<Look, StoreError> {
        let mut slots = vec![slot];
        slots.extend(self.hands.free_slots(usize::MAX));
        let request = self.hands.request(slots.len(), !self.hands.held.holds_suspect());
        let salt = request.salt;
        self.hands.calls.begin(salt);
        let look = self.look(request, slots).await;
        self.hands.calls.end(salt);
        look
    }

    async fn look(
        self: &Arc<Self>,
        request: ClaimRequest,
        slots: Vec<OwnedSemaphorePermit>,
    ) -> Result<Look, StoreError> {
        let answer = self.parts.store.claim(request).await?;
        self.parts.contact.answered();
        match answer {
            ClaimAnswer::NotRegistered => {
                let is_back = self.rise_again(&self.hands.held.refs()).await;
                Ok(if is_back { Look::Found } else { Look::Nothing })
            }
            ClaimAnswer::Claimed { tasks, .. } if tasks.is_empty() => Ok(Look::Nothing),
            ClaimAnswer::Claimed { now, tasks } => {
                let look = if tasks.len() < slots.len() { Look::All } else { Look::Found };
                let handful = self.hands.take_up(now, tasks, slots);
                self.execute_all(handful).await;
                Ok(look)
            }
        }
    }

    /// Executes what is handed over, until the engine closes.
    pub(super) async fn hand_over_loop(self: Arc<Self>, mut given: UnboundedReceiver<Handful>) {
        loop {
            let handful = tokio::select! {
                biased;
                () = self.parts.closing.cancelled() => return,
                handful = given.recv() => handful,
            };
            let Some(handful) = handful else { return };
            self.execute_all(handful).await;
        }
    }

    /// Reads what the claimed tasks need and starts each in its slot. If that cannot be read, the
    /// tasks go back.
    async fn execute_all(self: &Arc<Self>, Handful { now, tasks }: Handful) {
        let lacking = tasks.iter().filter(|(task, ..)| task.inputs.is_none());
        let lacking: Vec<ClaimRef> = lacking.map(|(task, ..)| task.claim).collect();
        let mut read = self.inputs(&lacking).await.into_iter();
        for (mut task, stop, slot) in tasks {
            let claim = task.claim;
            let missing = || Err(StoreError::Corrupt { what: "a task has no inputs".into() });
            let inputs = match task.inputs.take() {
                Some(inputs) => Ok(inputs),
                None => read.next().unwrap_or_else(missing),
            };
            let prepared = match inputs {
                // The registration says that this worker has the code, so `prepare` cannot fail;
                // if it does, the task is not lost.
                Ok(inputs) => self.prepare(task, inputs, stop, now).ok_or(Outcome::Released),
                Err(error) => Err(self.unreadable(&error)),
            };
            let (code, args) = match prepared {
                Ok(prepared) => prepared,
                Err(outcome) => {
                    self.hand_in(CommitItem { claim, outcome }, 0).await;
                    continue;
                }
            };
            let worker = Arc::clone(self);
            self.parts.spawner.spawn(Box::pin(async move {
                worker.attempt(code, args, slot).await;
            }));
        }
    }

    /// What claimed tasks are executed with. If they cannot be read together, each is read on its
    /// own: one that contradicts itself must not hold up the others.
    async fn inputs(&self, claims: &[ClaimRef]) -> Vec<Result<TaskInputs, StoreError>> {
        if claims.is_empty() {
            return Vec::new();
        }
        if let Ok(inputs) = self.parts.store.inputs(claims).await {
            return inputs.into_iter().map(Ok).collect();
        }
        let mut each = Vec::with_capacity(claims.len());
        for claim in claims {
            let inputs = self.parts.store.inputs(std::slice::from_ref(claim)).await;
            let missing = || StoreError::Corrupt { what: "a task has no inputs".into() };
            each.push(inputs.and_then(|inputs| inputs.into_iter().next().ok_or_else(missing)));
        }
        each
    }

    /// What becomes of a task whose inputs cannot be read: it fails if they contradict
    /// themselves, and goes back to the queue if the store could not be reached.
    fn unreadable(&self, error: &StoreError) -> Outcome {
        tracing::warn!(%error, "read inputs of a claimed task");
        match error {
            StoreError::Unavailable { .. } => Outcome::Released,
            error => refused(&self.parts, error),
        }
    }

    fn prepare(
        &self,
        task: ClaimedTask,
        inputs: TaskInputs,
        stop: super::held::Stop,
        now: Timestamp,
    ) -> Option<(StepCode, TaskArgs)> {
        let workflow = self.registry.get(task.definition.id)?;
        let node = task.claim.node;
        let code = workflow.step(node)?;
        let mut left = inputs.parents;
        left.sort_unstable_by_key(|parent| parent.node);
        let output = |node| {
            let found = left.binary_search_by_key(&node, |parent| parent.node);
            found.ok().and_then(|ix| left[ix].output.clone())
        };
        let parents = workflow.parents(node).map(output).collect();
        let names = TaskNames {
            claim: task.claim,
            run_id: task.run_id,
            tenant: task.tenant,
            attempt: task.attempt,
            failures: task.failures,
        };
        let context = TaskContext::new(Arc::clone(&self.parts), workflow, names, stop, now);
        let context = Arc::new(context);
        Some((code, TaskArgs { context, input: inputs.input, parents, failure: inputs.failure }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_in_vain_become_rarer_up_to_the_interval() {
        let second = Duration::from_secs(1);
        let spans = [0, 1, 2, 3, 4, 5, 1_000].map(|n| poll_span(second, n).as_micros());
        assert_eq!(spans, [62_500, 125_000, 250_000, 500_000, 1_000_000, 1_000_000, 1_000_000]);
    }
}
