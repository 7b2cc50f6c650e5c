use std::collections::VecDeque;

use async_trait::async_trait;
use stepwell_core::decide::{self, is_suspect};
use stepwell_core::id::{Node, Queue, Token, WorkerId};
use stepwell_core::run::{TaskRow, TaskState};

use super::line::{Lane, Queued};
use super::runs::output;
use super::tables::{RunBook, Tables};
use super::{MemoryStore, corrupt};
use crate::ports::{
    ClaimAnswer, ClaimRef, ClaimRequest, ClaimedTask, Claims, HandedOver, ParentInput, StoreError,
    TaskInputs,
};

#[async_trait]
impl Claims for MemoryStore {
    async fn claim(&self, request: ClaimRequest) -> Result<ClaimAnswer, StoreError> {
        self.transact(|tables| claim(tables, &request))
    }

    async fn inputs(&self, claims: &[ClaimRef]) -> Result<Vec<TaskInputs>, StoreError> {
        self.transact(|tables| claims.iter().map(|claim| inputs(tables, claim)).collect())
    }
}

/// Does some work, and hands what becomes ready by it to the worker that offers to take it, unless
/// something waits for that worker already.
pub(super) fn hand_over<T>(
    tables: &mut Tables,
    offer: Option<&ClaimRequest>,
    work: impl FnOnce(&mut Tables) -> Result<T, StoreError>,
) -> Result<(T, HandedOver), StoreError> {
    let offer = offer.filter(|offer| !anything_waits(tables, &offer.worker));
    let answer = work(tables)?;
    let Some(offer) = offer.filter(|_| tables.line.n_joined > 0) else {
        return Ok((answer, HandedOver::default()));
    };
    let handed_over = match claim(tables, offer)? {
        ClaimAnswer::Claimed { now, tasks } => HandedOver { now, tasks },
        ClaimAnswer::NotRegistered => HandedOver::default(),
    };
    tables.line.n_joined -= handed_over.tasks.len();
    Ok((answer, handed_over))
}

/// Whether anything is ready in the queues of a worker, whoever may take it.
fn anything_waits(tables: &Tables, worker: &WorkerId) -> bool {
    let Some(worker) = tables.workers.get(worker) else { return false };
    tables.line.lanes.keys().any(|lane| worker.queues.contains(&lane.queue))
}

fn claim(tables: &mut Tables, request: &ClaimRequest) -> Result<ClaimAnswer, StoreError> {
    let Some(worker) = tables.workers.get(&request.worker).filter(|worker| !worker.is_gone) else {
        return Ok(ClaimAnswer::NotRegistered);
    };
    let mut queues: VecDeque<_> = worker.queues.iter().cloned().collect();
    let definitions = worker.definitions.clone();
    tables.n_claims += 1;
    let token = Token::new(tables.n_claims, request.salt);
    let (mut tasks, mut suspect) = (Vec::new(), request.suspect);
    let mut served_last = None;
    while tasks.len() < request.tasks_max {
        let Some(queue) = queues.pop_front() else { break };
        let can_take = |lane: &Lane| {
            let is_suspect = is_suspect(lane.losses, request.crash_limit);
            lane.queue == queue
                && definitions.contains(&lane.definition)
                && (suspect || !is_suspect)
        };
        let Some(lane) = first_lane(tables, can_take) else { continue };
        let Some(first) = tables.line.claim_first(&lane) else { continue };
        let task = hand_out(tables, &request.worker, token, &first, request.crash_limit)?;
        suspect &= !task.is_suspect;
        tasks.push(task);
        served_last = Some(queue.clone());
        queues.push_back(queue);
    }
    if let Some(last) = &served_last {
        pass_the_turn(tables, &request.worker, last);
    }
    Ok(ClaimAnswer::Claimed { now: tables.now, tasks })
}

/// The next claim begins behind the queue that was served last, so that claims of one task each
/// take turns as well.
fn pass_the_turn(tables: &mut Tables, worker: &WorkerId, served_last: &Queue) {
    let Some(entry) = tables.workers.get_mut(worker) else { return };
    if let Some(ix) = entry.queues.iter().position(|queue| queue == served_last) {
        entry.queues.rotate_left(ix + 1);
    }
}

/// Among the lanes a worker can take from, the one whose first task comes first.
fn first_lane(tables: &Tables, can_take: impl Fn(&Lane) -> bool) -> Option<Lane> {
    let lanes = tables.line.lanes.iter().filter(|(lane, _)| can_take(lane));
    let firsts = lanes.filter_map(|(lane, rows)| Some((rows.first_key_value()?.0, lane)));
    firsts.min_by_key(|(slot, _)| **slot).map(|(_, lane)| lane.clone())
}

fn hand_out(
    tables: &mut Tables,
    worker: &WorkerId,
    token: Token,
    queued: &Queued,
    crash_limit: u32,
) -> Result<ClaimedTask, StoreError> {
    let definition = tables.definition(queued.definition)?;
    let now = tables.now;
    let Some(book) = tables.runs.get_mut(&queued.run) else {
        return Err(corrupt(format!("run {} is missing", queued.run)));
    };
    let is_claimed = |task| decide::claim(task, worker, token, now);
    if !book.tasks.get_mut(&queued.node).is_some_and(is_claimed) {
        return Err(corrupt(format!("task {:?} of run {} is not ready", queued.node, queued.run)));
    }
    let claim = ClaimRef { run: queued.run, node: queued.node, token };
    if let Some(entry) = tables.workers.get_mut(worker) {
        entry.claims.insert(claim);
    }
    let attempt = book.tasks.get(&queued.node).map_or(0, |task| task.attempt);
    Ok(ClaimedTask {
        claim,
        tenant: queued.tenant.clone(),
        run_id: book.row.id.clone(),
        definition,
        attempt,
        is_suspect: is_suspect(queued.losses, crash_limit),
        inputs: None,
    })
}

fn inputs(tables: &Tables, claim: &ClaimRef) -> Result<TaskInputs, StoreError> {
    let book = tables.book(claim.run)?;
    let stored = tables.definition(book.row.definition)?;
    let parents = stored.definition.graph.parents(claim.node);
    Ok(TaskInputs {
        input: book.input.clone(),
        parents: parents.iter().map(|edge| parent(book, edge.node)).collect(),
        failure: book.row.failure.clone().filter(|_| claim.node == Node::ON_FAILURE),
    })
}

fn parent(book: &RunBook, node: stepwell_core::id::Node) -> ParentInput {
    ParentInput {
        node,
        state: book.tasks.get(&node).map_or(TaskState::Pending, TaskRow::state),
        output: output(book, node),
    }
}
