//! Handing what becomes ready straight to the worker that offers to take it. Such a task is written
//! once, as running, and never stands in line.

use std::collections::HashMap;
use std::sync::Arc;

use stepwell_core::decide::{self, is_suspect};
use stepwell_core::id::{Node, RunKey, Token};
use stepwell_core::run::{AttemptRow, AttemptState, TaskState};
use stepwell_core::time::Timestamp;
use uuid::Uuid;

use super::claims::Asking;
use super::inputs::{Left, assemble, left_by, parents_in, payloads};
use super::line::Queued;
use super::rows::{int32, key, token, unsigned};
use super::statements;
use super::transaction::Transaction;
use super::write::{Payloads, Written};
use crate::ports::{
    ClaimRef, ClaimRequest, ClaimedTask, HandedOver, Payload, StoreError, TaskInputs,
};

/// An idle worker that offers to take what becomes ready.
pub(super) struct Hands<'o> {
    pub(super) offer: &'o ClaimRequest,
    pub(super) asking: Asking,
    pub(super) token: Token,
}

/// Whose claims rows are written as: those that are running.
#[derive(Clone, Copy, Default)]
pub(super) struct Holder {
    pub(super) worker: Option<i64>,
    pub(super) token: Option<Uuid>,
    pub(super) started_at: Option<i64>,
}

impl Hands<'_> {
    /// Takes what the worker can take, as far as it has room, and leaves the rest. Whoever goes
    /// from hand to hand never stands in line, so nothing has to be known of it, nor locked. No
    /// tenant loses or wins by that more than its next place: nobody waits, so none stands ahead
    /// of the frontier. Where there is no room for all, those of one tenant and queue are taken in
    /// the order in which they come; between several the line decides.
    pub(super) fn take(&self, tasks: Vec<Queued>) -> (Vec<Queued>, Vec<Queued>) {
        let can_take = |task: &Queued| {
            // A failure handler is told of the failure, which is read when it is claimed.
            task.node != Node::ON_FAILURE
                && !is_suspect(task.losses, self.offer.crash_limit)
                && self.asking.queues.iter().any(|queue| queue == task.queue.as_str())
                && self.asking.definitions.contains(&int32(task.definition.0))
        };
        let mut takeable = tasks.iter().filter(|task| can_take(task));
        let n_takeable = takeable.clone().count();
        let is_alike = takeable.next().is_none_or(|first| {
            takeable.all(|task| task.group == first.group && task.queue == first.queue)
        });
        let mut room = self.offer.tasks_max;
        if n_takeable > room && !is_alike {
            return (Vec::new(), tasks);
        }
        tasks.into_iter().partition(|task| {
            let is_taken = room > 0 && can_take(task);
            room -= usize::from(is_taken);
            is_taken
        })
    }

    /// How rows of taken tasks are written.
    pub(super) fn holder(&self, transaction: &Transaction) -> Holder {
        Holder {
            worker: Some(self.asking.no),
            token: Some(token(self.token)),
            started_at: Some(transaction.now.as_micros()),
        }
    }
}

impl Transaction {
    /// The worker that makes an offer, if it is alive and nothing waits in its queues.
    pub(super) async fn idle<'o>(
        &self,
        offer: Option<&'o ClaimRequest>,
    ) -> Result<Option<Hands<'o>>, StoreError> {
        let Some(offer) = offer else { return Ok(None) };
        let row = self.one(statements::FIND_IDLE_WORKER, &[&offer.worker.as_str()]).await?;
        self.passing().looked();
        let hands = |row: tokio_postgres::Row| {
            let asking = Asking::of(&row)?;
            Ok(Hands { offer, asking, token: Token::new(unsigned(&row, 4)?, offer.salt) })
        };
        row.map(hands).transpose()
    }

    /// Writes taken tasks down as the worker's claims.
    pub(super) async fn hold(&self, hands: &Hands<'_>, taken: &[Queued]) -> Result<(), StoreError> {
        let runs: Vec<Uuid> = taken.iter().map(|task| key(task.run)).collect();
        let nodes: Vec<i32> = taken.iter().map(|task| int32(task.node.0)).collect();
        if runs.is_empty() {
            return Ok(());
        }
        let (no, token) = (hands.asking.no, token(hands.token));
        self.run(statements::HAND_OVER, &[&token, &no, &runs, &nodes]).await
    }

    /// Reads what taken tasks are executed with. Those of runs that just started have nothing but
    /// their runs' inputs, which are at hand.
    pub(super) async fn inputs_of(
        &self,
        taken: &[Queued],
        written: &Marked<'_>,
        given: Payloads<'_>,
    ) -> Result<Vec<Option<TaskInputs>>, StoreError> {
        if taken.is_empty() {
            return Ok(Vec::new());
        }
        let parents = |task: &Queued| {
            let stored = written.get(&task.run).map(|written| &written.stored);
            stored.map(|stored| parents_in(stored, task.run, task.node)).unwrap_or_default()
        };
        let parents: Vec<Vec<(RunKey, Node)>> = taken.iter().map(parents).collect();
        let mut left = left_now(written, given);
        let inputs = match given {
            Payloads::Inputs(inputs) => {
                inputs.iter().map(|(run, input)| (*run, (*input).clone())).collect()
            }
            _ => self.read_inputs_of(taken, &parents, &mut left).await?,
        };
        self.known().remember_inputs(&inputs);
        let tasks = taken.iter().zip(&parents);
        Ok(tasks.map(|(task, parents)| assemble(&inputs, &left, task.run, parents)).collect())
    }
}

impl Transaction {
    /// Reads the inputs of the runs of taken tasks, unless they are known, and what parents left
    /// that did not complete in this transaction.
    async fn read_inputs_of(
        &self,
        taken: &[Queued],
        parents: &[Vec<(RunKey, Node)>],
        left: &mut Left,
    ) -> Result<HashMap<RunKey, Payload>, StoreError> {
        let known = self.known().inputs(taken.iter().map(|task| &task.run));
        let runs: Vec<Uuid> = taken.iter().map(|task| key(task.run)).collect();
        let read = async {
            match known {
                Some(known) => Ok(known),
                None => payloads(&self.all(statements::READ_INPUTS, &[&runs]).await?),
            }
        };
        let earlier = parents.iter().flatten().filter(|parent| !left.contains_key(parent));
        let earlier: Vec<(RunKey, Node)> = earlier.copied().collect();
        let (inputs, earlier) = tokio::join!(biased; read, left_by(self, earlier));
        left.extend(earlier?);
        inputs
    }
}

/// What tasks left that complete in this transaction.
fn left_now(written: &Marked<'_>, given: Payloads<'_>) -> Left {
    let Payloads::Outputs(outputs) = given else { return Left::new() };
    let mut left = Left::new();
    for (run, written) in written {
        let completed = |attempt: &&AttemptRow| attempt.state == AttemptState::Completed;
        for attempt in written.changes.attempts.iter().filter(completed) {
            left.insert((*run, attempt.node), (TaskState::Completed, Some(Payload::empty())));
        }
    }
    for (run, node, output) in outputs {
        left.insert((*run, *node), (TaskState::Completed, Some((*output).clone())));
    }
    left
}

/// Decided runs by key.
pub(super) type Marked<'w> = HashMap<RunKey, &'w Written>;

/// Marks taken tasks as claimed.
pub(super) fn mark(written: &mut [Written], taken: &[Queued], hands: &Hands<'_>, now: Timestamp) {
    let mut nodes: HashMap<RunKey, Vec<Node>> = HashMap::new();
    for task in taken {
        nodes.entry(task.run).or_default().push(task.node);
    }
    for written in written {
        for node in nodes.remove(&written.run.key).unwrap_or_default() {
            if let Some(task) = written.tasks.get_mut(node) {
                decide::claim(task, &hands.offer.worker, hands.token, now);
            }
        }
    }
}

/// Taken tasks as their worker gets them.
pub(super) fn handed_over(
    taken: &[Queued],
    written: &Marked<'_>,
    inputs: Vec<Option<TaskInputs>>,
    hands: &Hands<'_>,
    now: Timestamp,
) -> HandedOver {
    let tasks = taken.iter().zip(inputs).filter_map(|(queued, inputs)| {
        let written = written.get(&queued.run)?;
        let task = written.tasks.get(queued.node)?;
        Some(ClaimedTask {
            claim: ClaimRef { run: queued.run, node: queued.node, token: hands.token },
            tenant: written.run.tenant.clone(),
            run_id: written.run.id.clone(),
            definition: Arc::clone(&written.stored),
            attempt: task.attempt,
            is_suspect: is_suspect(task.losses, hands.offer.crash_limit),
            inputs,
        })
    });
    HandedOver { now, tasks: tasks.collect() }
}
