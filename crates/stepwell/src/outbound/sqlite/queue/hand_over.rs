//! Handing what becomes ready straight to the worker that offers to take it. Such a task is written
//! once, as running, and never stands in a queue.

use std::collections::BTreeSet;

use stepwell_core::id::{Node, Queue, RunKey, ServiceId};
use stepwell_core::queue::{Order, ReadyTask, SlotOffer, split};

use super::claim::{hand_out, may_start, pass_turn};
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
    let queues = rows::worker::queues(file, worker.no)?;
    let ready = ready_tasks(transaction, &worker, &queues, &offered)?;
    let slots = SlotOffer {
        tasks_max: offer.tasks_max,
        crash_limit: offer.crash_limit,
        n_queues: queues.len(),
        next_turn: worker.next_turn,
    };
    let split = split(&slots, ready, Order::Known, |(_, seen)| *seen);
    pass_turn(file, &worker, split.next_turn)?;
    let tasks = hand_out(transaction, split.taken.iter().map(|(task, _)| task), offer)?;
    transaction.earned.add_if(Hint::Ready, !split.left.is_empty());
    Ok((answer, HandedOver { now: transaction.now, tasks }))
}

/// The worker that makes an offer, if it is alive, holds no trial and nothing waits in its queues.
fn find_idle_worker(
    file: File<'_, '_>,
    offer: &ClaimRequest,
) -> Result<Option<ServingWorker>, StoreError> {
    let Some(worker) = rows::worker::find(file, &offer.worker)? else { return Ok(None) };
    let is_idle = !worker.in_trial && !rows::queue::any_ready(file, worker.no)?;
    Ok(is_idle.then_some(worker))
}

/// The tasks that just entered queues and still stand there, each as the rule of hand-over sees it
/// if it is one that the worker can take.
fn ready_tasks(
    transaction: &mut Transaction<'_, '_>,
    worker: &ServingWorker,
    queues: &[Queue],
    offered: &[(RunKey, Node)],
) -> Result<Vec<(Candidate, Option<ReadyTask>)>, StoreError> {
    let (file, now) = (transaction.file, transaction.now);
    let runs = &mut transaction.cache.runs;
    let services: BTreeSet<ServiceId> =
        rows::worker::services(file, worker.no)?.into_iter().collect();
    let mut ready = Vec::with_capacity(offered.len());
    for (run, node) in offered.iter().copied() {
        let of_run = runs.load(file, run)?;
        let (tenant, may_start) = (of_run.tenant_no, may_start(&of_run.row, now));
        let Some(task) = runs.find_task(file, run, node)? else { continue };
        // It may have been withdrawn again.
        let Some(place) = &task.place else { continue };
        let losses = task.row.losses;
        let candidate = Candidate { place: (place.order, place.number), losses, run, node };
        let queue = queues.iter().position(|queue| *queue == place.queue);
        let queue = queue.filter(|_| may_start && services.contains(&place.service));
        let place = candidate.place;
        let seen = queue.map(|queue| ReadyTask { queue, tenant, losses, place });
        ready.push((candidate, seen));
    }
    Ok(ready)
}
