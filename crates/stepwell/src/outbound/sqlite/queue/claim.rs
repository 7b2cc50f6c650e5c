//! Claims: a worker takes ready tasks in fair order.

use stepwell_core::decide::{self, is_suspect};
use stepwell_core::fair::take_turns;
use stepwell_core::id::{Queue, Token};

use crate::outbound::sqlite::file::{File, corrupt};
use crate::outbound::sqlite::rows;
use crate::outbound::sqlite::rows::queue::Candidate;
use crate::outbound::sqlite::rows::worker::ServingWorker;
use crate::outbound::sqlite::writer::Transaction;
use crate::ports::{ClaimRef, ClaimRequest, ClaimedTask, StoreError};

/// Claims ready tasks for a worker. Their inputs are left out. `None` if the worker is not
/// registered.
pub(crate) fn claim(
    transaction: &mut Transaction<'_, '_>,
    request: &ClaimRequest,
) -> Result<Option<Vec<ClaimedTask>>, StoreError> {
    let file = transaction.file;
    let Some(worker) = rows::worker::find(file, &request.worker)? else { return Ok(None) };
    let queues = rows::worker::queues(file, worker.no)?;
    let lines = queues.iter().map(|queue| candidates(file, worker.no, queue, request));
    let lines = lines.collect::<Result<Vec<_>, _>>()?;
    let chosen = take_in_turn(file, &worker, lines, request)?;
    hand_out(transaction, &chosen, request).map(Some)
}

/// The first tasks of a queue that the worker can take, one suspect among them if it may.
fn candidates(
    file: File<'_, '_>,
    worker_no: i64,
    queue: &Queue,
    request: &ClaimRequest,
) -> Result<Vec<Candidate>, StoreError> {
    let suspects_from = request.crash_limit.saturating_sub(1);
    let ready = |losses, n| rows::queue::first_ready(file, queue, worker_no, losses, n);
    let mut found = ready(0..suspects_from, request.tasks_max)?;
    if request.suspect {
        if suspects_from == 0 {
            // Every task is a suspect.
            found.extend(ready(suspects_from..u32::MAX, 1)?);
        } else {
            found.extend(rows::queue::first_suspect(file, queue, worker_no, suspects_from)?);
        }
        found.sort_by_key(|task| task.rank);
    }
    Ok(found)
}

/// Chooses from the worker's queues in turn, with at most one suspect. The next claim begins behind
/// the queue that was served last.
pub(super) fn take_in_turn(
    file: File<'_, '_>,
    worker: &ServingWorker,
    lines: Vec<Vec<Candidate>>,
    request: &ClaimRequest,
) -> Result<Vec<Candidate>, StoreError> {
    let is_suspect = |task: &Candidate| is_suspect(task.losses, request.crash_limit);
    let (first, n_queues) = (worker.next_turn, lines.len());
    let chosen = take_turns(lines, first, request.tasks_max, request.suspect, is_suspect);
    if let Some((turn, _)) = chosen.last() {
        let next_turn = (turn + 1) % n_queues;
        if next_turn != worker.next_turn {
            rows::worker::set_next_turn(file, worker.no, next_turn)?;
        }
    }
    Ok(chosen.into_iter().map(|(_, task)| task).collect())
}

/// Marks chosen tasks as the worker's, under one token.
pub(super) fn hand_out(
    transaction: &mut Transaction<'_, '_>,
    chosen: &[Candidate],
    request: &ClaimRequest,
) -> Result<Vec<ClaimedTask>, StoreError> {
    if chosen.is_empty() {
        return Ok(Vec::new());
    }
    let counters = transaction.cache.counters();
    counters.n_claims += 1;
    let token = Token::new(counters.n_claims, request.salt);
    chosen.iter().map(|task| hand_out_one(transaction, token, task, request)).collect()
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
    let attempt = task.row.attempt;
    cache.queues.advance_frontier(file, &place.queue, place.position)?;
    let cached = cache.runs.load(file, run)?;
    cache.tenants.count_admitted(file, cached.tenant_no, -1, 1)?;
    Ok(ClaimedTask {
        claim: ClaimRef { run, node, token },
        tenant: cached.row.tenant.clone(),
        run_id: cached.row.id.clone(),
        definition: transaction.definitions.load(file, cached.row.definition)?,
        attempt,
        is_suspect: is_suspect(losses, request.crash_limit),
        inputs: None,
    })
}

/// Whether a claim still holds its task.
pub(crate) fn holds(
    transaction: &mut Transaction<'_, '_>,
    claim: ClaimRef,
) -> Result<bool, StoreError> {
    let task = transaction.cache.runs.find_task(transaction.file, claim.run, claim.node)?;
    Ok(task.is_some_and(|task| task.row.is_held_by(claim.token)))
}

/// The claims of a worker with the losses of each task so far.
pub(crate) fn claims_of(
    transaction: &mut Transaction<'_, '_>,
    worker_no: i64,
) -> Result<Vec<(ClaimRef, u32)>, StoreError> {
    transaction.cache.write_rows(transaction.file)?;
    rows::task::claims_of(transaction.file, worker_no)
}
