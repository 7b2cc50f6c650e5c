//! Trials of workers: a suspect goes to a worker that holds nothing else.

use stepwell_core::decide::suspects_from;
use stepwell_core::queue::take_turns;
use stepwell_core::trial::{may_begin, may_serve_others};

use super::claim::{claims_of, take};
use crate::outbound::sqlite::file::File;
use crate::outbound::sqlite::rows;
use crate::outbound::sqlite::rows::queue::{Asked, Candidate};
use crate::outbound::sqlite::rows::worker::ServingWorker;
use crate::outbound::sqlite::writer::Transaction;
use crate::ports::{ClaimAnswer, ClaimRequest, StoreError};

/// Hands a suspect to a worker that may hold a trial, once it holds nothing else.
pub(super) fn claim_suspect(
    transaction: &mut Transaction<'_, '_>,
    worker: &ServingWorker,
    request: &ClaimRequest,
) -> Result<ClaimAnswer, StoreError> {
    let (file, now) = (transaction.file, transaction.now);
    let queues = rows::worker::queues(file, worker.no)?;
    let services = rows::worker::services(file, worker.no)?;
    let mut suspects: Vec<Vec<Candidate>> = Vec::with_capacity(queues.len());
    for queue in &queues {
        let asked: Vec<Asked<'_>> =
            services.iter().map(|service| Asked { queue, service: *service, now }).collect();
        suspects.push(first_suspect(file, &asked, request)?.into_iter().collect());
    }
    let nothing =
        |suspect_waits| Ok(ClaimAnswer::Claimed { now, tasks: Vec::new(), suspect_waits });
    if suspects.iter().all(Vec::is_empty) {
        return nothing(false);
    }
    if !worker.in_trial {
        if !may_begin(&rows::worker::crews(file, worker.no)?) {
            return Ok(ClaimAnswer::NoTrial);
        }
        rows::worker::set_in_trial(file, worker.no, true)?;
    }
    if request.tasks_max == 0 || !claims_of(transaction, worker.no)?.is_empty() {
        return nothing(true);
    }
    take(transaction, worker, &take_turns(suspects, worker.next_turn, 1), false, request)
}

/// Ends the trial of a worker that asks for other tasks, unless it holds a suspect. Says whether it
/// has ended.
pub(super) fn has_ended(
    transaction: &mut Transaction<'_, '_>,
    worker: &ServingWorker,
    request: &ClaimRequest,
) -> Result<bool, StoreError> {
    let held = claims_of(transaction, worker.no)?;
    let losses = held.into_iter().map(|(_, losses)| losses);
    let has_ended = may_serve_others(losses, request.crash_limit);
    if has_ended {
        rows::worker::set_in_trial(transaction.file, worker.no, false)?;
    }
    Ok(has_ended)
}

/// The first suspect of several services in a queue.
pub(super) fn first_suspect(
    file: File<'_, '_>,
    asked: &[Asked<'_>],
    request: &ClaimRequest,
) -> Result<Option<Candidate>, StoreError> {
    let losses_min = suspects_from(request.crash_limit);
    let mut first: Option<Candidate> = None;
    for asked in asked {
        let found = rows::queue::first_suspect(file, *asked, losses_min)?;
        first = first.into_iter().chain(found).min_by_key(|task| task.place);
    }
    Ok(first)
}
