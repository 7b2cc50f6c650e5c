//! Handing what becomes ready straight to the worker that offers to take it. Such a task is written
//! once, as running, and never stands in a queue.

use std::collections::BTreeSet;

use stepwell_core::id::{DefinitionId, Node, Queue, RunKey};

use super::claim::{hand_out, take_in_turn};
use crate::outbound::sqlite::file::File;
use crate::outbound::sqlite::rows;
use crate::outbound::sqlite::rows::queue::Candidate;
use crate::outbound::sqlite::rows::worker::ServingWorker;
use crate::outbound::sqlite::writer::Transaction;
use crate::ports::{ClaimRequest, HandedOver, Hint, StoreError};

/// Does some work, and hands what becomes ready by it to the worker that offers to take it,
/// unless something waits for that worker already. The inputs of such tasks are left out.
pub(crate) fn hand_over<T>(
    transaction: &mut Transaction<'_, '_>,
    offer: Option<&ClaimRequest>,
    work: impl FnOnce(&mut Transaction<'_, '_>) -> Result<T, StoreError>,
) -> Result<(T, HandedOver), StoreError> {
    let file = transaction.file;
    let worker = offer.map(|offer| find_idle_worker(file, offer)).transpose()?.flatten();
    let Some((offer, worker)) = offer.zip(worker) else {
        return Ok((work(transaction)?, HandedOver::default()));
    };
    transaction.offered = Some(Vec::new());
    let answer = work(transaction);
    let offered = transaction.offered.take().unwrap_or_default();
    let answer = answer?;
    if offered.is_empty() {
        return Ok((answer, HandedOver::default()));
    }
    let lines = candidates(transaction, &worker, &offered)?;
    let chosen = take_in_turn(file, &worker, lines, offer)?;
    let tasks = hand_out(transaction, &chosen, offer)?;
    if tasks.len() < offered.len() {
        transaction.earn(Hint::Ready);
    }
    Ok((answer, HandedOver { now: transaction.now, tasks }))
}

/// The worker that makes an offer, if it is alive and nothing waits in its queues.
fn find_idle_worker(
    file: File<'_, '_>,
    offer: &ClaimRequest,
) -> Result<Option<ServingWorker>, StoreError> {
    let Some(worker) = rows::worker::find(file, &offer.worker)? else { return Ok(None) };
    Ok((!rows::queue::any_ready(file, worker.no)?).then_some(worker))
}

/// What the worker can take of the tasks that just entered queues: for each of its queues, in fair
/// order.
fn candidates(
    transaction: &mut Transaction<'_, '_>,
    worker: &ServingWorker,
    offered: &[(RunKey, Node)],
) -> Result<Vec<Vec<Candidate>>, StoreError> {
    let file = transaction.file;
    let queues = rows::worker::queues(file, worker.no)?;
    let served = rows::worker::services(file, worker.no)?.into_iter().collect();
    let mut lines: Vec<Vec<Candidate>> = queues.iter().map(|_| Vec::new()).collect();
    for (run, node) in offered {
        if let Some((ix, task)) = candidate(transaction, *run, *node, &queues, &served)? {
            lines[ix].push(task);
        }
    }
    for line in &mut lines {
        line.sort_by_key(|task| task.rank);
    }
    Ok(lines)
}

/// A task that just entered a queue, with the number of that queue, if it is one that the worker
/// can take.
fn candidate(
    transaction: &mut Transaction<'_, '_>,
    run: RunKey,
    node: Node,
    queues: &[Queue],
    served: &BTreeSet<DefinitionId>,
) -> Result<Option<(usize, Candidate)>, StoreError> {
    let task = transaction.cache.runs.find_task(transaction.file, run, node)?;
    let Some(task) = task else { return Ok(None) };
    // It may have been withdrawn again.
    let place = task.place.as_ref().filter(|place| served.contains(&place.definition));
    Ok(place.and_then(|place| {
        let ix = queues.iter().position(|queue| *queue == place.queue)?;
        let rank = (place.order.0, place.number);
        Some((ix, Candidate { rank, losses: task.row.losses, run, node }))
    }))
}
