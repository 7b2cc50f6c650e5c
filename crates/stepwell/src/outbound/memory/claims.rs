use async_trait::async_trait;
use stepwell_core::decide::{self, is_suspect};
use stepwell_core::id::{Node, Token, WorkerId};
use stepwell_core::queue::{Turns, take_turns};
use stepwell_core::run::{TaskRow, TaskState};

use super::memos::history;
use super::queues::{Candidate, Queued, ReadyKey};
use super::runs::output;
use super::signals::resumed_with;
use super::tables::{StoredRun, Tables};
use super::{MemoryStore, corrupt};
use crate::ports::{
    ClaimAnswer, ClaimRef, ClaimRequest, ClaimedTask, Claims, HandedOver, InputsOf, ParentInput,
    StoreError, TaskInputs,
};

#[async_trait]
impl Claims for MemoryStore {
    async fn claim(&self, request: ClaimRequest) -> Result<ClaimAnswer, StoreError> {
        self.transact(|tables| claim(tables, &request))
    }

    async fn inputs(&self, tasks: &[InputsOf]) -> Result<Vec<TaskInputs>, StoreError> {
        self.transact(|tables| tasks.iter().map(|task| inputs(tables, task)).collect())
    }
}

/// Does some work, and hands what becomes ready by it to the worker that offers to take it, unless
/// something waits for that worker already. Under one lock that is a claim right after.
pub(super) fn hand_over<T>(
    tables: &mut Tables,
    offer: Option<&ClaimRequest>,
    work: impl FnOnce(&mut Tables) -> Result<T, StoreError>,
) -> Result<(T, HandedOver), StoreError> {
    let offer = offer.filter(|offer| !anything_waits(tables, &offer.worker));
    let answer = work(tables)?;
    let Some(offer) = offer.filter(|_| tables.queues.n_enqueued > 0) else {
        return Ok((answer, HandedOver::default()));
    };
    let handed_over = match claim(tables, offer)? {
        ClaimAnswer::Claimed { now, tasks } => HandedOver { now, tasks },
        ClaimAnswer::NotRegistered => HandedOver::default(),
    };
    tables.queues.n_enqueued -= handed_over.tasks.len();
    Ok((answer, handed_over))
}

/// Whether anything is ready in the queues of a worker that it could take.
fn anything_waits(tables: &Tables, worker: &WorkerId) -> bool {
    let Some(worker) = tables.workers.get(worker) else { return false };
    let is_for_it = |key: &ReadyKey| {
        worker.queues.contains(&key.queue) && worker.services.contains(&key.service)
    };
    tables.queues.ready.keys().any(is_for_it)
}

fn claim(tables: &mut Tables, request: &ClaimRequest) -> Result<ClaimAnswer, StoreError> {
    let Some(worker) = tables.workers.get(&request.worker).filter(|worker| !worker.is_gone) else {
        return Ok(ClaimAnswer::NotRegistered);
    };
    let is_suspect = |losses: u32| is_suspect(losses, request.crash_limit);
    let n_max = request.tasks_max;
    let queues = worker.queues.iter().map(|queue| {
        tables.queues.first_ready(queue, &worker.services, n_max, tables.now, is_suspect)
    });
    let is_suspect = |candidate: &Candidate| is_suspect(candidate.key.losses);
    let Turns { chosen, next_turn } =
        take_turns(queues.collect(), worker.next_turn, n_max, request.suspect, is_suspect);
    if let Some(worker) = tables.workers.get_mut(&request.worker) {
        worker.next_turn = next_turn;
    }
    tables.n_claims += 1;
    let token = Token::new(tables.n_claims, request.salt);
    let mut tasks = Vec::with_capacity(chosen.len());
    for (_, candidate) in chosen {
        let Some(queued) = tables.queues.claim(&candidate) else { continue };
        tasks.push(hand_out(tables, token, &queued, request)?);
    }
    Ok(ClaimAnswer::Claimed { now: tables.now, tasks })
}

fn hand_out(
    tables: &mut Tables,
    token: Token,
    queued: &Queued,
    request: &ClaimRequest,
) -> Result<ClaimedTask, StoreError> {
    let now = tables.now;
    let Queued { run: key, node, .. } = *queued;
    let definition = tables.plan_of(tables.run(key)?)?;
    let Some(run) = tables.runs.get_mut(&key) else {
        return Err(corrupt(format!("run {key} is missing")));
    };
    let is_claimed = |task: &mut TaskRow| decide::claim(task, &request.worker, token, now);
    let Some(task) = run.tasks.get_mut(&node).and_then(|task| is_claimed(task).then_some(&*task))
    else {
        return Err(corrupt(format!("task {node:?} of run {key} is not ready")));
    };
    let claim = ClaimRef { run: key, node, token };
    if let Some(entry) = tables.workers.get_mut(&request.worker) {
        entry.claims.insert(claim);
    }
    Ok(ClaimedTask {
        claim,
        tenant: queued.tenant.clone(),
        run_id: run.row.id.clone(),
        definition,
        attempt: task.attempt,
        failures: task.failures,
        resumed: task.resumed,
        is_suspect: is_suspect(task.losses, request.crash_limit),
        inputs: None,
    })
}

fn inputs(tables: &Tables, task: &InputsOf) -> Result<TaskInputs, StoreError> {
    let InputsOf { claim, resumed, .. } = task;
    let run = tables.run(claim.run)?;
    let stored = tables.plan_of(run)?;
    let parents = stored.definition.graph.parents(claim.node);
    Ok(TaskInputs {
        input: run.input.clone(),
        parents: parents.iter().map(|edge| parent(run, edge.node)).collect(),
        failure: run.row.failure.clone().filter(|_| claim.node == Node::ON_FAILURE),
        resumed: resumed.map(|resumed| resumed_with(run, resumed)),
        history: history(run, task),
    })
}

fn parent(run: &StoredRun, node: Node) -> ParentInput {
    ParentInput {
        node,
        state: run.tasks.get(&node).map_or(TaskState::Pending, TaskRow::state),
        output: output(run, node),
    }
}
