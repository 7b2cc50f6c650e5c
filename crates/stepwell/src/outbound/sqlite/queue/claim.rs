//! Claims: a worker takes ready tasks in fair order.

use std::ops::Range;

use stepwell_core::decide::{self, is_suspect, suspects_from};
use stepwell_core::id::Token;
use stepwell_core::queue::{Turns, take_turns};
use stepwell_core::run::RunRow;
use stepwell_core::time::Timestamp;

use super::trial;
use crate::outbound::sqlite::file::{File, corrupt};
use crate::outbound::sqlite::rows;
use crate::outbound::sqlite::rows::queue::{Asked, Candidate};
use crate::outbound::sqlite::rows::worker::ServingWorker;
use crate::outbound::sqlite::writer::Transaction;
use crate::ports::{ClaimAnswer, ClaimRef, ClaimRequest, ClaimedTask, StoreError, Take};

/// How many tasks of each of several services are read beyond its part of what is asked for.
const LOOK_AHEAD: usize = 8;

/// Claims ready tasks for a worker. Their inputs are left out.
pub(crate) fn claim(
    transaction: &mut Transaction<'_, '_>,
    request: &ClaimRequest,
) -> Result<ClaimAnswer, StoreError> {
    let Some(worker) = rows::worker::find(transaction.file, &request.worker)? else {
        return Ok(ClaimAnswer::NotRegistered);
    };
    match request.take {
        Take::Plain => claim_plain(transaction, &worker, request),
        Take::Suspect => trial::claim_suspect(transaction, &worker, request),
    }
}

fn claim_plain(
    transaction: &mut Transaction<'_, '_>,
    worker: &ServingWorker,
    request: &ClaimRequest,
) -> Result<ClaimAnswer, StoreError> {
    if worker.in_trial && !trial::has_ended(transaction, worker, request)? {
        let (now, tasks, suspect_waits) = (transaction.now, Vec::new(), false);
        return Ok(ClaimAnswer::Claimed { now, tasks, suspect_waits });
    }
    let (file, now) = (transaction.file, transaction.now);
    let queues = rows::worker::queues(file, worker.no)?;
    let services = rows::worker::services(file, worker.no)?;
    let mut suspect_waits = false;
    let mut ready = Vec::with_capacity(queues.len());
    for queue in &queues {
        let asked: Vec<Asked<'_>> =
            services.iter().map(|service| Asked { queue, service: *service, now }).collect();
        suspect_waits = suspect_waits || trial::first_suspect(file, &asked, request)?.is_some();
        let plain = 0..suspects_from(request.crash_limit);
        ready.push(first_ready(file, &asked, &plain, request.tasks_max)?);
    }
    let turns = take_turns(ready, worker.next_turn, request.tasks_max);
    take(transaction, worker, &turns, suspect_waits, request)
}

/// Hands out what was chosen by turns.
pub(super) fn take(
    transaction: &mut Transaction<'_, '_>,
    worker: &ServingWorker,
    turns: &Turns<Candidate>,
    suspect_waits: bool,
    request: &ClaimRequest,
) -> Result<ClaimAnswer, StoreError> {
    pass_turn(transaction.file, worker, turns.next_turn)?;
    let tasks = hand_out(transaction, turns.chosen.iter().map(|(_, task)| task), request)?;
    Ok(ClaimAnswer::Claimed { now: transaction.now, tasks, suspect_waits })
}

/// The first tasks of several services in a queue, in fair order.
fn first_ready(
    file: File<'_, '_>,
    asked: &[Asked<'_>],
    losses: &Range<u32>,
    n_max: usize,
) -> Result<Vec<Candidate>, StoreError> {
    // As much of each as is likely to be taken; who has more is asked again.
    let n_each = (n_max / asked.len().max(1) + LOOK_AHEAD).min(n_max);
    let read = |asked, behind| rows::queue::first_ready(file, asked, losses, behind, n_each);
    if let [asked] = asked {
        return rows::queue::first_ready(file, *asked, losses, None, n_max);
    }
    let mut lines = Vec::with_capacity(asked.len());
    for asked in asked {
        lines.push(read(*asked, None)?.into_iter().peekable());
    }
    let mut found = Vec::new();
    while found.len() < n_max {
        let heads = lines.iter_mut().enumerate();
        let heads = heads.filter_map(|(ix, line)| Some((line.peek()?.place, ix)));
        let Some((place, ix)) = heads.min() else { break };
        found.extend(lines[ix].next());
        if lines[ix].peek().is_none() {
            lines[ix] = read(asked[ix], Some(place))?.into_iter().peekable();
        }
    }
    Ok(found)
}

/// Whether tasks of a run may start now.
pub(super) fn may_start(run: &RunRow, now: Timestamp) -> bool {
    decide::may_start(run.standing_deadline(), now)
}

/// The next claim of a worker begins with this one of its queues.
pub(super) fn pass_turn(
    file: File<'_, '_>,
    worker: &ServingWorker,
    next_turn: usize,
) -> Result<(), StoreError> {
    if next_turn == worker.next_turn {
        return Ok(());
    }
    rows::worker::set_next_turn(file, worker.no, next_turn)
}

/// Marks chosen tasks as the worker's, under one token.
pub(super) fn hand_out<'t>(
    transaction: &mut Transaction<'_, '_>,
    chosen: impl ExactSizeIterator<Item = &'t Candidate>,
    request: &ClaimRequest,
) -> Result<Vec<ClaimedTask>, StoreError> {
    if chosen.len() == 0 {
        return Ok(Vec::new());
    }
    let counters = transaction.cache.counters();
    counters.n_claims += 1;
    let token = Token::new(counters.n_claims, request.salt);
    chosen.map(|task| hand_out_one(transaction, token, task, request)).collect()
}

fn hand_out_one(
    transaction: &mut Transaction<'_, '_>,
    token: Token,
    candidate: &Candidate,
    request: &ClaimRequest,
) -> Result<ClaimedTask, StoreError> {
    let Candidate { run, node, losses, .. } = *candidate;
    let not_ready = || corrupt(format!("task {node:?} of run {run} is not ready"));
    let (file, cache, now) = (transaction.file, &mut *transaction.cache, transaction.now);
    cache.runs.load_ready(file, run, node)?;
    let task = cache.runs.change_task(file, run, node)?;
    let place = task.place.take().ok_or_else(not_ready)?;
    if !decide::claim(&mut task.row, &request.worker, token, now) {
        return Err(not_ready());
    }
    let (attempt, failures, resumed) = (task.row.attempt, task.row.failures, task.row.resumed);
    cache.queues.advance_frontier(file, &place.queue, place.position)?;
    let cached = cache.runs.load(file, run)?;
    cache.tenants.count_admitted(file, cached.tenant_no, -1, 1)?;
    Ok(ClaimedTask {
        claim: ClaimRef { run, node, token },
        tenant: cached.row.tenant.clone(),
        run_id: cached.row.id.clone(),
        definition: transaction.definitions.plan_of(file, cached.row.definition)?,
        attempt,
        failures,
        resumed,
        is_suspect: is_suspect(losses, request.crash_limit),
        inputs: None,
    })
}

/// The claims of a worker with the losses of each task so far.
pub(crate) fn claims_of(
    transaction: &mut Transaction<'_, '_>,
    worker_no: i64,
) -> Result<Vec<(ClaimRef, u32)>, StoreError> {
    transaction.cache.write_rows(transaction.file)?;
    rows::task::claims_of(transaction.file, worker_no)
}
