use std::sync::atomic::Ordering;

use async_trait::async_trait;
use rusqlite::{Row, params};
use stepwell_core::decide::{self, is_suspect};
use stepwell_core::fair::take_turns;
use stepwell_core::id::{Node, Queue, RunKey, Token};
use stepwell_core::run::TaskState;

use super::error::corrupt;
use super::inputs::inputs_of;
use super::rows::{count, name, node, run_key, unsigned};
use super::transaction::Transaction;
use super::{SqliteStore, statements};
use crate::ports::{
    ClaimAnswer, ClaimRef, ClaimRequest, ClaimedTask, Claims, ParentInput, Payload, StoreError,
    TaskInputs,
};

/// A claim of few tasks does not wait for the disk: a power cut that takes it back ends its worker,
/// too, and the task is in line again. Among many the wait costs each hardly anything, and what
/// gathers meanwhile goes into one commit; so while claims are large, they wait.
const FEW: usize = 10;

#[async_trait]
impl Claims for SqliteStore {
    async fn claim(&self, request: ClaimRequest) -> Result<ClaimAnswer, StoreError> {
        let work = move |transaction: &mut Transaction<'_, '_>| claim(transaction, &request);
        let n_before = self.shared.n_claimed_last.load(Ordering::Relaxed);
        let answer = if n_before > FEW {
            self.write(work).await?
        } else {
            self.write_without_wait(work).await?
        };
        if let ClaimAnswer::Claimed { tasks, .. } = &answer {
            self.shared.n_claimed_last.store(tasks.len(), Ordering::Relaxed);
        }
        Ok(answer)
    }

    async fn inputs(&self, claims: &[ClaimRef]) -> Result<Vec<TaskInputs>, StoreError> {
        let claims = claims.to_vec();
        self.read(move |transaction| inputs_of(transaction, &claims)).await
    }
}

/// A ready task that may be claimed.
pub(super) struct Candidate {
    /// Its key in the fair order, and its number of arrival.
    pub(super) slot: (u64, u64),
    pub(super) losses: u32,
    pub(super) run: RunKey,
    pub(super) node: Node,
}

/// The worker that asks, and which of its queues comes first.
pub(super) struct Asking {
    pub(super) no: i64,
    next_turn: usize,
}

fn claim(
    transaction: &mut Transaction<'_, '_>,
    request: &ClaimRequest,
) -> Result<ClaimAnswer, StoreError> {
    let Some(asking) = find_worker(transaction, request)? else {
        return Ok(ClaimAnswer::NotRegistered);
    };
    let chosen = choose(transaction, &asking, request)?;
    let tasks = hand_out_all(transaction, &chosen, request)?;
    Ok(ClaimAnswer::Claimed { now: transaction.now, tasks })
}

/// The worker that asks, if it is registered and alive.
pub(super) fn find_worker(
    transaction: &Transaction<'_, '_>,
    request: &ClaimRequest,
) -> Result<Option<Asking>, StoreError> {
    transaction.first(statements::FIND_WORKER, [request.worker.as_str()], |row| {
        let next_turn = usize::try_from(unsigned(row, 1)?).unwrap_or_default();
        Ok(Asking { no: row.get(0)?, next_turn })
    })
}

/// The queues of a worker, in turn.
pub(super) fn queues(
    transaction: &Transaction<'_, '_>,
    asking: &Asking,
) -> Result<Vec<Queue>, StoreError> {
    transaction.all(statements::READ_QUEUES, [asking.no], |row| name(row, 0))
}

/// Marks chosen tasks as the worker's, under one token.
pub(super) fn hand_out_all(
    transaction: &mut Transaction<'_, '_>,
    chosen: &[Candidate],
    request: &ClaimRequest,
) -> Result<Vec<ClaimedTask>, StoreError> {
    if chosen.is_empty() {
        return Ok(Vec::new());
    }
    let counters = transaction.book.counters();
    counters.n_claims += 1;
    let token = Token::new(counters.n_claims, request.salt);
    let tasks = chosen.iter().map(|task| hand_out(transaction, token, task, request));
    tasks.collect()
}

/// Chooses ready tasks in fair order, taking turns between queues, with at most one suspect. The
/// next claim begins behind the queue that was served last.
fn choose(
    transaction: &Transaction<'_, '_>,
    asking: &Asking,
    request: &ClaimRequest,
) -> Result<Vec<Candidate>, StoreError> {
    let queues = queues(transaction, asking)?;
    let lines = queues.iter().map(|queue| candidates(transaction, asking.no, queue, request));
    let lines = lines.collect::<Result<Vec<_>, _>>()?;
    take_in_turn(transaction, asking, lines, request)
}

/// Chooses from the worker's queues in turn, and passes the turn on.
pub(super) fn take_in_turn(
    transaction: &Transaction<'_, '_>,
    asking: &Asking,
    lines: Vec<Vec<Candidate>>,
    request: &ClaimRequest,
) -> Result<Vec<Candidate>, StoreError> {
    let is_suspect = |task: &Candidate| is_suspect(task.losses, request.crash_limit);
    let (first, n_queues) = (asking.next_turn, lines.len());
    let chosen = take_turns(lines, first, request.tasks_max, request.suspect, is_suspect);
    if let Some((turn, _)) = chosen.last() {
        let next_turn = (turn + 1) % n_queues;
        if next_turn != asking.next_turn {
            let next = i64::try_from(next_turn).unwrap_or_default();
            transaction.run(statements::PASS_THE_TURN, [asking.no, next])?;
        }
    }
    Ok(chosen.into_iter().map(|(_, task)| task).collect())
}

/// The first tasks of a queue that the worker can take, one suspect among them if it may.
fn candidates(
    transaction: &Transaction<'_, '_>,
    worker: i64,
    queue: &Queue,
    request: &ClaimRequest,
) -> Result<Vec<Candidate>, StoreError> {
    let n = i64::try_from(request.tasks_max).unwrap_or(i64::MAX);
    let suspects_from = request.crash_limit.saturating_sub(1);
    let read = |row: &Row<'_>| {
        Ok(Candidate {
            slot: (unsigned(row, 0)?, unsigned(row, 1)?),
            losses: count(row, 2)?,
            run: run_key(row, 3)?,
            node: node(row, 4)?,
        })
    };
    let plain = params![queue.as_str(), worker, 0, suspects_from, n];
    let mut found = transaction.all(statements::FIRST_READY, plain, read)?;
    if request.suspect {
        let (name, from) = (queue.as_str(), suspects_from);
        found.extend(if suspects_from == 0 {
            // Everybody is a suspect.
            transaction.all(
                statements::FIRST_READY,
                params![name, worker, from, u32::MAX, 1],
                read,
            )?
        } else {
            transaction.all(statements::FIRST_SUSPECTS, params![name, worker, from, 1], read)?
        });
        found.sort_by_key(|task| task.slot);
    }
    Ok(found)
}

fn hand_out(
    transaction: &mut Transaction<'_, '_>,
    token: Token,
    candidate: &Candidate,
    request: &ClaimRequest,
) -> Result<ClaimedTask, StoreError> {
    let Candidate { run, node, losses, .. } = *candidate;
    let not_ready = || corrupt(format!("task {node:?} of run {run} is not ready"));
    let now = transaction.now;
    transaction.hold_ready(run, node)?;
    let task = transaction.change_task(run, node)?;
    let place = task.place.take().ok_or_else(not_ready)?;
    if !decide::claim(&mut task.row, &request.worker, token, now) {
        return Err(not_ready());
    }
    let attempt = task.row.attempt;
    let held = transaction.held(run)?;
    let (group, definition) = (held.group, held.row.definition);
    let (tenant, run_id) = (held.row.tenant.clone(), held.row.id.clone());
    transaction.dequeued(group, &place)?;
    Ok(ClaimedTask {
        claim: ClaimRef { run, node, token },
        tenant,
        run_id,
        definition: transaction.definition(definition)?,
        attempt,
        is_suspect: is_suspect(losses, request.crash_limit),
        inputs: inputs_at_hand(transaction, run, node)?,
    })
}

/// What a task is executed with, if that need not be read: the run's input was seen here, and its
/// parents complete in this call.
fn inputs_at_hand(
    transaction: &mut Transaction<'_, '_>,
    run: RunKey,
    node: Node,
) -> Result<Option<TaskInputs>, StoreError> {
    let held = transaction.held(run)?;
    let Some(input) = held.input.clone().filter(|_| node != Node::ON_FAILURE) else {
        return Ok(None);
    };
    let definition = held.row.definition;
    let stored = transaction.definition(definition)?;
    let tasks = &transaction.held(run)?.tasks;
    let left = |parent: Node| {
        let end = tasks.get(&parent)?.end.as_ref().filter(|end| !end.is_large)?;
        let output = end.output.clone().unwrap_or_else(Payload::empty);
        Some(ParentInput { node: parent, state: TaskState::Completed, output: Some(output) })
    };
    let parents = stored.definition.graph.parents(node).iter().map(|edge| left(edge.node));
    let parents: Option<Vec<ParentInput>> = parents.collect();
    Ok(parents.map(|parents| TaskInputs { input, parents, failure: None }))
}
