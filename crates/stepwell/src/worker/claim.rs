//! The claim loop: takes as many tasks as there are free slots, and waits for hints or the poll.

use std::sync::Arc;
use std::time::Duration;

use stepwell_core::time::Timestamp;
use tokio::sync::OwnedSemaphorePermit;

use super::context::TaskNames;
use super::{TaskArgs, TaskContext, Worker};
use crate::engine::StepCode;
use crate::ports::{ClaimAnswer, ClaimRequest, ClaimedTask, Hint, Outcome, StoreError, TaskInputs};

/// How a look for work went.
enum Look {
    /// There may be more.
    Found,
    /// There is nothing now.
    Nothing,
}

impl Worker {
    /// Claims and executes until the engine begins to stop.
    pub(super) async fn claim_loop(self) {
        let mut hints = self.parts.store.hints();
        loop {
            let slot = tokio::select! {
                biased;
                () = self.stopping.cancelled() => return,
                slot = Arc::clone(&self.slots).acquire_owned() => slot,
            };
            let Ok(slot) = slot else { return };
            hints.look(Hint::Ready);
            self.calls.begin();
            let look = self.look_for_work(slot).await;
            self.calls.end();
            let wait = match look {
                Ok(Look::Found) => continue,
                Ok(Look::Nothing) => self.poll_pause(),
                Err(error) => {
                    self.parts.contact.broke();
                    tracing::warn!(%error, "claim tasks");
                    self.poll_pause()
                }
            };
            tokio::select! {
                biased;
                () = self.stopping.cancelled() => return,
                () = hints.given(Hint::Ready) => {}
                () = self.parts.clock.sleep(wait) => {}
            }
        }
    }

    /// The poll, spread by a fifth so that a fleet does not ask all at once.
    fn poll_pause(&self) -> Duration {
        let fifth = self.parts.config.poll_interval / 5;
        let spread = u32::try_from(self.parts.ids.random() >> 32).unwrap_or_default();
        let spread = fifth.mul_f64(f64::from(spread) / f64::from(u32::MAX));
        self.parts.config.poll_interval.saturating_sub(spread)
    }

    async fn look_for_work(&self, slot: OwnedSemaphorePermit) -> Result<Look, StoreError> {
        let mut slots = vec![slot];
        while let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() {
            slots.push(slot);
        }
        let request = ClaimRequest {
            worker: self.parts.worker.clone(),
            tasks_max: slots.len(),
            suspect: !self.held.holds_suspect(),
            crash_limit: self.parts.config.crash_limit,
            salt: self.parts.ids.random(),
        };
        let answer = self.parts.store.claim(request).await?;
        self.parts.contact.answered();
        match answer {
            ClaimAnswer::NotRegistered => {
                self.rise_again().await;
                Ok(Look::Found)
            }
            ClaimAnswer::Claimed { tasks, .. } if tasks.is_empty() => Ok(Look::Nothing),
            ClaimAnswer::Claimed { now, tasks } => {
                self.execute_all(now, tasks, slots).await;
                Ok(Look::Found)
            }
        }
    }

    /// Reads what the claimed tasks need and starts each in a slot of its own. If that cannot be
    /// read, the tasks go back.
    async fn execute_all(
        &self,
        now: Timestamp,
        tasks: Vec<ClaimedTask>,
        slots: Vec<OwnedSemaphorePermit>,
    ) {
        let stops: Vec<_> =
            tasks.iter().map(|task| self.held.take(task.claim, task.is_suspect)).collect();
        let claims: Vec<_> = tasks.iter().map(|task| task.claim).collect();
        let inputs = match self.parts.store.inputs(&claims).await {
            Ok(inputs) => inputs,
            Err(error) => {
                tracing::warn!(%error, "read inputs of claimed tasks, handing them back");
                for claim in claims {
                    let item = crate::ports::CommitItem { claim, outcome: Outcome::Released };
                    let _ = self.committer.commit(item).await;
                    self.held.drop_claim(claim);
                }
                return;
            }
        };
        for (((task, stop), inputs), slot) in tasks.into_iter().zip(stops).zip(inputs).zip(slots) {
            let claim = task.claim;
            let Some((code, args)) = self.prepare(task, inputs, stop, now) else {
                // The registration says that this worker has the code, so this cannot happen;
                // if it does, the task is not lost.
                let item = crate::ports::CommitItem { claim, outcome: Outcome::Released };
                let _ = self.committer.commit(item).await;
                self.held.drop_claim(claim);
                continue;
            };
            let worker = self.clone();
            self.parts.spawner.spawn(Box::pin(async move {
                worker.attempt(code, args).await;
                drop(slot);
            }));
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
        let output = |node| {
            let of_node = |parent: &&crate::ports::ParentInput| parent.node == node;
            inputs.parents.iter().find(of_node).and_then(|parent| parent.output.clone())
        };
        let parents = workflow.parents(node).into_iter().map(output).collect();
        let names = TaskNames {
            claim: task.claim,
            run_id: task.run_id,
            tenant: task.tenant,
            attempt: task.attempt,
        };
        let context = TaskContext::new(self.parts.clone(), workflow, names, stop, now);
        let context = Arc::new(context);
        Some((code, TaskArgs { context, input: inputs.input, parents, failure: inputs.failure }))
    }
}
