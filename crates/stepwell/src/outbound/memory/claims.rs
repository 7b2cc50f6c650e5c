use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use stepwell_core::decide::{self, is_suspect};
use stepwell_core::id::{Node, Queue, ServiceId, Token, WorkerId};
use stepwell_core::queue::{Turns, take_turns};
use stepwell_core::run::{TaskRow, TaskState};
use stepwell_core::trial::{Crew, may_begin, may_serve_others};

use super::memos::history;
use super::queues::{Candidate, Queued, ReadyKey};
use super::runs::output;
use super::signals::resumed_with;
use super::tables::{StoredRun, Tables, WorkerEntry};
use super::{MemoryStore, corrupt};
use crate::ports::{
    ClaimAnswer, ClaimRef, ClaimRequest, ClaimedTask, Claims, HandedOver, InputsOf, ParentInput,
    StoreError, Take, TaskInputs,
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
    let offer = offer.filter(|offer| is_idle(tables, &offer.worker));
    let answer = work(tables)?;
    let Some(offer) = offer.filter(|_| tables.queues.n_enqueued > 0) else {
        return Ok((answer, HandedOver::default()));
    };
    let handed_over = match claim(tables, offer)? {
        ClaimAnswer::Claimed { now, tasks, .. } => HandedOver { now, tasks },
        ClaimAnswer::NoTrial | ClaimAnswer::NotRegistered => HandedOver::default(),
    };
    tables.queues.n_enqueued -= handed_over.tasks.len();
    Ok((answer, handed_over))
}

/// Whether a worker holds no trial, and nothing is ready in its queues that it could take.
fn is_idle(tables: &Tables, worker: &WorkerId) -> bool {
    let Some(worker) = tables.workers.get(worker) else { return false };
    let is_for_it = |key: &ReadyKey| {
        worker.queues.contains(&key.queue) && worker.services.contains(&key.service)
    };
    !worker.in_trial && !tables.queues.ready.keys().any(is_for_it)
}

fn claim(tables: &mut Tables, request: &ClaimRequest) -> Result<ClaimAnswer, StoreError> {
    let Some(worker) = tables.workers.get(&request.worker).filter(|worker| !worker.is_gone) else {
        return Ok(ClaimAnswer::NotRegistered);
    };
    let suspects = first_ready(tables, worker, request, 1, Take::Suspect);
    let suspect_waits = suspects.iter().any(|queue| !queue.is_empty());
    let (candidates, in_trial, suspect_waits) = match request.take {
        Take::Plain => {
            let losses = worker.claims.iter().filter_map(|claim| losses(tables, claim));
            if worker.in_trial && !may_serve_others(losses, request.crash_limit) {
                return Ok(nothing(tables, false));
            }
            let plain = first_ready(tables, worker, request, request.tasks_max, Take::Plain);
            (plain, false, suspect_waits)
        }
        Take::Suspect if !suspect_waits => return Ok(nothing(tables, false)),
        Take::Suspect if !worker.in_trial && !may_begin(&crews(tables, request)) => {
            return Ok(ClaimAnswer::NoTrial);
        }
        Take::Suspect if worker.claims.is_empty() && request.tasks_max > 0 => {
            (suspects, true, false)
        }
        Take::Suspect => (Vec::new(), true, true),
    };
    let tasks_max = if in_trial { 1 } else { request.tasks_max };
    let Turns { chosen, next_turn } = take_turns(candidates, worker.next_turn, tasks_max);
    if let Some(worker) = tables.workers.get_mut(&request.worker) {
        worker.in_trial = in_trial;
        if !chosen.is_empty() {
            worker.next_turn = next_turn;
        }
    }
    tables.n_claims += 1;
    let token = Token::new(tables.n_claims, request.salt);
    let mut tasks = Vec::with_capacity(chosen.len());
    for (_, candidate) in chosen {
        let Some(queued) = tables.queues.claim(&candidate) else { continue };
        tasks.push(hand_out(tables, token, &queued, request)?);
    }
    Ok(ClaimAnswer::Claimed { now: tables.now, tasks, suspect_waits })
}

fn nothing(tables: &Tables, suspect_waits: bool) -> ClaimAnswer {
    ClaimAnswer::Claimed { now: tables.now, tasks: Vec::new(), suspect_waits }
}

/// The first tasks of each of a worker's queues that are suspects, or that are not.
fn first_ready(
    tables: &Tables,
    worker: &WorkerEntry,
    request: &ClaimRequest,
    n_max: usize,
    take: Take,
) -> Vec<Vec<Candidate>> {
    let is_asked_for =
        |losses: u32| is_suspect(losses, request.crash_limit) == (take == Take::Suspect);
    let of_queue = |queue: &Queue| {
        tables.queues.first_ready(queue, &worker.services, n_max, tables.now, is_asked_for)
    };
    worker.queues.iter().map(of_queue).collect()
}

/// How many workers the task of a claim has lost.
fn losses(tables: &Tables, claim: &ClaimRef) -> Option<u32> {
    Some(tables.runs.get(&claim.run)?.tasks.get(&claim.node)?.losses)
}

/// Those who have a service of the worker that asks, and those who have it in a queue of its own.
fn crews(tables: &Tables, request: &ClaimRequest) -> Vec<Crew> {
    let mut crews: BTreeMap<(ServiceId, Option<&Queue>), Crew> = BTreeMap::new();
    let serves = |worker: &WorkerEntry| !worker.is_gone && !worker.queues.is_empty();
    for (id, worker) in tables.workers.iter().filter(|(_, worker)| serves(worker)) {
        let n_in_trial = usize::from(worker.in_trial && *id != request.worker);
        let queues: BTreeSet<&Queue> = worker.queues.iter().collect();
        let services: BTreeSet<ServiceId> = worker.services.iter().copied().collect();
        for service in services {
            for queue in queues.iter().copied().map(Some).chain([None]) {
                let none = Crew { n_workers: 0, n_in_trial: 0 };
                let crew = crews.entry((service, queue)).or_insert(none);
                crew.n_workers += 1;
                crew.n_in_trial += n_in_trial;
            }
        }
    }
    let Some(asks) = tables.workers.get(&request.worker) else { return Vec::new() };
    let is_its = |(service, queue): &(ServiceId, Option<&Queue>)| {
        asks.services.contains(service) && queue.is_none_or(|queue| asks.queues.contains(queue))
    };
    crews.into_iter().filter(|(key, _)| is_its(key)).map(|(_, crew)| crew).collect()
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
