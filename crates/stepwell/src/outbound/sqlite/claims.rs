use std::collections::VecDeque;

use async_trait::async_trait;
use rusqlite::{Row, params};
use stepwell_core::decide::{self, is_suspect};
use stepwell_core::id::{Node, Queue, RunKey, Token, WorkerId};
use stepwell_core::run::TaskState;

use super::error::corrupt;
use super::rows::{self, count, key, name, node, run_key, unsigned};
use super::transaction::Transaction;
use super::{SqliteStore, statements};
use crate::ports::{
    ClaimAnswer, ClaimRef, ClaimRequest, ClaimedTask, Claims, ParentInput, Payload, StoreError,
    TaskInputs,
};

#[async_trait]
impl Claims for SqliteStore {
    async fn claim(&self, request: ClaimRequest) -> Result<ClaimAnswer, StoreError> {
        self.write(move |transaction| claim(transaction, &request)).await
    }

    async fn inputs(&self, claims: &[ClaimRef]) -> Result<Vec<TaskInputs>, StoreError> {
        let claims = claims.to_vec();
        self.read(move |transaction| {
            claims.iter().map(|claim| inputs(transaction, claim)).collect()
        })
        .await
    }
}

/// A ready task that may be claimed.
struct Candidate {
    slot: (u64, u64),
    losses: u32,
    run: RunKey,
    node: Node,
}

/// The worker that asks, and which of its queues comes first.
struct Asking {
    no: i64,
    next_turn: usize,
}

fn claim(
    transaction: &mut Transaction<'_>,
    request: &ClaimRequest,
) -> Result<ClaimAnswer, StoreError> {
    let read = |row: &Row<'_>| {
        let next_turn = usize::try_from(unsigned(row, 1)?).unwrap_or_default();
        Ok(Asking { no: row.get(0)?, next_turn })
    };
    let asking = transaction.first(statements::FIND_WORKER, [request.worker.as_str()], read)?;
    let Some(asking) = asking else {
        return Ok(ClaimAnswer::NotRegistered);
    };
    let salt = request.salt;
    let token = transaction.first(statements::TAKE_COUNTER, [0, 1, 0], |row| {
        Ok(Token::new(unsigned(row, 1)?, salt))
    })?;
    let token = token.ok_or_else(|| corrupt("the counters are missing"))?;
    let mut tasks = Vec::new();
    for (run, node) in choose(transaction, &asking, request)? {
        tasks.push(hand_out(transaction, &request.worker, token, (run, node), request)?);
    }
    Ok(ClaimAnswer::Claimed { now: transaction.now, tasks })
}

/// Chooses ready tasks in fair order, taking turns between queues, with at most one suspect. The
/// next claim begins behind the queue that was served last.
fn choose(
    transaction: &Transaction<'_>,
    asking: &Asking,
    request: &ClaimRequest,
) -> Result<Vec<(RunKey, Node)>, StoreError> {
    let queues: Vec<Queue> =
        transaction.all(statements::READ_QUEUES, [asking.no], |row| name(row, 0))?;
    let n_queues = queues.len().max(1);
    let mut lines: VecDeque<(usize, VecDeque<Candidate>)> = VecDeque::new();
    for turn in (0..queues.len()).map(|ix| (asking.next_turn + ix) % n_queues) {
        let line = candidates(transaction, asking.no, &queues[turn], request)?;
        lines.push_back((turn, line.into()));
    }
    let (mut chosen, mut suspect, mut served_last) = (Vec::new(), request.suspect, None);
    while chosen.len() < request.tasks_max {
        let Some((turn, mut line)) = lines.pop_front() else { break };
        let taken = loop {
            match line.pop_front() {
                Some(task) if is_suspect(task.losses, request.crash_limit) && !suspect => {}
                taken => break taken,
            }
        };
        let Some(task) = taken else { continue };
        suspect &= !is_suspect(task.losses, request.crash_limit);
        chosen.push((task.run, task.node));
        served_last = Some(turn);
        lines.push_back((turn, line));
    }
    if let Some(turn) = served_last {
        let next = i64::try_from((turn + 1) % n_queues).unwrap_or_default();
        transaction.run(statements::PASS_THE_TURN, [asking.no, next])?;
    }
    Ok(chosen)
}

/// The first tasks of a queue that the worker can take, one suspect among them if it may.
fn candidates(
    transaction: &Transaction<'_>,
    worker: i64,
    queue: &Queue,
    request: &ClaimRequest,
) -> Result<Vec<Candidate>, StoreError> {
    let n = i64::try_from(request.tasks_max).unwrap_or(i64::MAX);
    let suspects_from = request.crash_limit.saturating_sub(1);
    let read = |row: &Row<'_>| {
        Ok(Candidate {
            slot: (unsigned(row, 0)?, unsigned(row, 1)?),
            losses: count(row, 5)?,
            run: run_key(row, 6)?,
            node: node(row, 7)?,
        })
    };
    let plain = params![queue.as_str(), worker, 0, suspects_from, n];
    let mut found = transaction.all(statements::FIRST_READY, plain, read)?;
    if request.suspect {
        let suspects = params![queue.as_str(), worker, suspects_from, u32::MAX, 1];
        found.extend(transaction.all(statements::FIRST_READY, suspects, read)?);
        found.sort_by_key(|task| task.slot);
    }
    Ok(found)
}

fn hand_out(
    transaction: &mut Transaction<'_>,
    worker: &WorkerId,
    token: Token,
    (run, node): (RunKey, Node),
    request: &ClaimRequest,
) -> Result<ClaimedTask, StoreError> {
    let queued = transaction.take_to_worker(run, node)?;
    let stored_run = transaction.known_run(run)?;
    let not_ready = || corrupt(format!("task {node:?} of run {run} is not ready"));
    let mut task = transaction.task(run, node)?.ok_or_else(not_ready)?;
    if !decide::claim(&mut task, worker, token, transaction.now) {
        return Err(not_ready());
    }
    transaction.upsert_task(run, &task)?;
    Ok(ClaimedTask {
        claim: ClaimRef { run, node, token },
        tenant: stored_run.row.tenant,
        run_id: stored_run.row.id,
        definition: transaction.definition(queued.definition)?,
        attempt: task.attempt,
        is_suspect: is_suspect(queued.losses, request.crash_limit),
    })
}

fn inputs(transaction: &Transaction<'_>, claim: &ClaimRef) -> Result<TaskInputs, StoreError> {
    let run = transaction.known_run(claim.run)?;
    let stored = transaction.definition(run.row.definition)?;
    let input =
        transaction.first(statements::READ_INPUT, [key(claim.run)], |row| rows::payload(row, 0))?;
    let mut parents = Vec::new();
    for edge in stored.definition.graph.parents(claim.node) {
        let task = transaction.task(claim.run, edge.node)?;
        parents.push(ParentInput {
            node: edge.node,
            state: task.map_or(TaskState::Pending, |task| task.state()),
            output: output(transaction, claim.run, edge.node)?,
        });
    }
    let input =
        input.ok_or_else(|| corrupt(format!("the input of run {} is missing", claim.run)))?;
    let failure = run.row.failure.filter(|_| claim.node == Node::ON_FAILURE);
    Ok(TaskInputs { input, parents, failure })
}

/// What a task left: a completed one without an output of its own has the empty payload.
pub(super) fn output(
    transaction: &Transaction<'_>,
    run: RunKey,
    node: Node,
) -> Result<Option<Payload>, StoreError> {
    let task = transaction.task(run, node)?;
    if task.is_none_or(|task| task.state() != TaskState::Completed) {
        return Ok(None);
    }
    let read = |row: &Row<'_>| rows::payload(row, 0);
    let output = transaction.first(statements::READ_OUTPUT, params![key(run), node.0], read)?;
    Ok(Some(output.unwrap_or_else(Payload::empty)))
}
