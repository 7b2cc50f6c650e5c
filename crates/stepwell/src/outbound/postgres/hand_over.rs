//! Handing what becomes ready straight to the worker that offers to take it. Such a task is written
//! once, as running, and never stands in line.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use stepwell_core::decide::{self, is_suspect};
use stepwell_core::fair::{Position, take_turns};
use stepwell_core::id::{Node, Queue, RunKey, Token};
use stepwell_core::time::Timestamp;
use uuid::Uuid;

use super::claims::Asking;
use super::inputs::{Left, assemble, left_by, parents_in, payloads};
use super::line::{Queued, Slots};
use super::rows::{int, int32, key, token, unsigned};
use super::statements;
use super::transaction::{Params, Transaction};
use super::write::{Payloads, Written};
use crate::ports::{ClaimRef, ClaimRequest, ClaimedTask, HandedOver, StoreError, TaskInputs};

/// An idle worker that offers to take what becomes ready.
pub(super) struct Hands<'o> {
    pub(super) offer: &'o ClaimRequest,
    pub(super) asking: Asking,
    pub(super) token: Token,
}

/// Tasks that a worker takes, and how far it gets in their queues.
#[derive(Default)]
pub(super) struct Taken {
    pub(super) tasks: Vec<Queued>,
    frontiers: BTreeMap<Queue, Position>,
}

/// Whose claims rows are written as: those that are running.
#[derive(Clone, Copy, Default)]
pub(super) struct Holder {
    pub(super) worker: Option<i64>,
    pub(super) token: Option<Uuid>,
    pub(super) started_at: Option<i64>,
}

impl Hands<'_> {
    /// Takes what a claim right after would take, and leaves the rest with its places.
    pub(super) fn take(&self, tasks: &mut Vec<Queued>, slots: &mut Slots) -> Taken {
        let mut lines: Vec<Vec<usize>> = self.asking.queues.iter().map(|_| Vec::new()).collect();
        for (ix, task) in tasks.iter().enumerate() {
            let queue = self.asking.queues.iter().position(|queue| queue == task.queue.as_str());
            // A failure handler is told of the failure, which is read when it is claimed.
            let is_plain = task.node != Node::ON_FAILURE;
            let can_take = self.asking.definitions.contains(&int32(task.definition.0)) && is_plain;
            if let Some(queue) = queue.filter(|_| can_take) {
                lines[queue].push(ix);
            }
        }
        for line in &mut lines {
            line.sort_by_key(|ix| (slots.orders[*ix], tasks[*ix].number));
        }
        let is_suspect = |ix: &usize| is_suspect(tasks[*ix].losses, self.offer.crash_limit);
        let (first, n) = (self.asking.next_turn, self.offer.tasks_max);
        let chosen = take_turns(lines, first, n, self.offer.suspect, is_suspect);
        let mut taken = Taken::default();
        for (_, ix) in &chosen {
            let task = tasks[*ix].clone();
            let position = Position(slots.positions[*ix].unsigned_abs());
            let frontier = taken.frontiers.entry(task.queue.clone()).or_default();
            *frontier = position.max(*frontier);
            taken.tasks.push(task);
        }
        let mut is_taken = vec![false; tasks.len()];
        for (_, ix) in chosen {
            is_taken[ix] = true;
        }
        slots.retain(|ix| !is_taken[ix]);
        let mut stay = is_taken.iter().map(|is_taken| !is_taken);
        tasks.retain(|_| stay.next().unwrap_or(true));
        taken
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
        let hands = |row: tokio_postgres::Row| {
            let asking = Asking::of(&row)?;
            Ok(Hands { offer, asking, token: Token::new(unsigned(&row, 4)?, offer.salt) })
        };
        row.map(hands).transpose()
    }

    /// Writes taken tasks down as the worker's claims.
    pub(super) async fn hold(&self, hands: &Hands<'_>, taken: &Taken) -> Result<(), StoreError> {
        let runs: Vec<Uuid> = taken.tasks.iter().map(|task| key(task.run)).collect();
        let nodes: Vec<i32> = taken.tasks.iter().map(|task| int32(task.node.0)).collect();
        let queues: Vec<&str> = taken.frontiers.keys().map(Queue::as_str).collect();
        let positions: Vec<i64> = taken.frontiers.values().map(|p| int(p.0)).collect();
        if runs.is_empty() {
            return Ok(());
        }
        let (no, token) = (hands.asking.no, token(hands.token));
        self.run(statements::HAND_OVER, &[&token, &no, &runs, &nodes, &queues, &positions]).await
    }

    /// Reads what taken tasks are executed with. Those of runs that just started have nothing but
    /// their runs' inputs, which are at hand.
    pub(super) async fn inputs_of(
        &self,
        taken: &Taken,
        written: &Marked<'_>,
        given: Payloads<'_>,
    ) -> Result<Vec<Option<TaskInputs>>, StoreError> {
        if taken.tasks.is_empty() {
            return Ok(Vec::new());
        }
        let parents = |task: &Queued| {
            let stored = written.get(&task.run).map(|written| &written.stored);
            stored.map(|stored| parents_in(stored, task.run, task.node)).unwrap_or_default()
        };
        let parents: Vec<Vec<(RunKey, Node)>> = taken.tasks.iter().map(parents).collect();
        let (inputs, left) = if let Payloads::Inputs(inputs) = given {
            let inputs = inputs.iter().map(|(run, input)| (*run, (*input).clone()));
            (inputs.collect(), Left::new())
        } else {
            let runs: Vec<Uuid> = taken.tasks.iter().map(|task| key(task.run)).collect();
            let keys: Params<'_> = &[&runs];
            let (inputs, left) = tokio::join!(
                biased;
                self.all(statements::READ_INPUTS, keys),
                left_by(self, parents.iter().flatten().copied()),
            );
            (payloads(&inputs?)?, left?)
        };
        let tasks = taken.tasks.iter().zip(&parents);
        Ok(tasks.map(|(task, parents)| assemble(&inputs, &left, task.run, parents)).collect())
    }
}

/// Decided runs by key.
pub(super) type Marked<'w> = HashMap<RunKey, &'w Written>;

/// Marks taken tasks as claimed.
pub(super) fn mark(written: &mut [Written], taken: &Taken, hands: &Hands<'_>, now: Timestamp) {
    let mut nodes: HashMap<RunKey, Vec<Node>> = HashMap::new();
    for task in &taken.tasks {
        nodes.entry(task.run).or_default().push(task.node);
    }
    for written in written {
        for node in nodes.remove(&written.run.key).unwrap_or_default() {
            if let Some(task) = written.tasks.get_mut(&node) {
                decide::claim(task, &hands.offer.worker, hands.token, now);
            }
        }
    }
}

/// Taken tasks as their worker gets them.
pub(super) fn handed_over(
    taken: &Taken,
    written: &Marked<'_>,
    inputs: Vec<Option<TaskInputs>>,
    hands: &Hands<'_>,
    now: Timestamp,
) -> HandedOver {
    let tasks = taken.tasks.iter().zip(inputs).filter_map(|(queued, inputs)| {
        let written = written.get(&queued.run)?;
        let task = written.tasks.get(&queued.node)?;
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
