//! Writing what the rules changed in a run.

use stepwell_core::id::{Node, RunKey};
use stepwell_core::run::{AttemptRow, AttemptState, Changes, Extras, RunImage};

use crate::outbound::sqlite::queue::{enqueue, limits};
use crate::outbound::sqlite::rows;
use crate::outbound::sqlite::rows::payload::is_small;
use crate::outbound::sqlite::rows::queue::WaitingTask;
use crate::outbound::sqlite::rows::task::TaskEnd;
use crate::outbound::sqlite::rows::wait::WaitingRun;
use crate::outbound::sqlite::writer::Transaction;
use crate::ports::{HintSet, Payload, StoreError, StoredDefinition};

/// Takes a changed image back: rows first, then claims that ended, then what became ready, so that
/// the room a claim leaves goes to those who waited longest. Gives what has changed: signals that
/// are to be stored are left to those who know their payloads.
pub(super) fn write(
    transaction: &mut Transaction<'_, '_>,
    image: RunImage<'_>,
    plan: &StoredDefinition,
) -> Result<Changes, StoreError> {
    let (run, tasks, changes) = image.into_parts();
    let key = run.key;
    let cached = transaction.cache.runs.change(transaction.file, key)?;
    cached.set_row(run);
    for task in tasks.into_iter().filter(|task| changes.touched.contains(&task.node)) {
        cached.set_task(task);
    }
    write_changes(transaction, key, plan, &changes)?;
    Ok(changes)
}

/// Writes what follows from changed rows.
pub(super) fn write_changes(
    transaction: &mut Transaction<'_, '_>,
    run: RunKey,
    plan: &StoredDefinition,
    changes: &Changes,
) -> Result<(), StoreError> {
    let file = transaction.file;
    let cached = transaction.cache.runs.load(file, run)?;
    let (run_no, tenant_no) = (cached.no, cached.tenant_no);
    write_history(transaction, run, run_no, changes)?;
    if let Some(extras) = &changes.extras {
        write_inbox(transaction, run, extras)?;
    }
    for node in changes.all_timers_cleared() {
        rows::timer::delete(file, run_no, node)?;
    }
    limits::remove_places(transaction, run, &changes.dequeued)?;
    if !changes.claims_ended.is_empty() {
        limits::end_claims(transaction, tenant_no, changes.claims_ended.len())?;
    }
    for node in changes.enqueued.iter().copied() {
        let task = transaction.cache.runs.find_task(file, run, node)?;
        let losses = task.map_or(0, |task| task.row.losses);
        let (queue, service) = (plan.definition.queue(node), plan.service());
        let number = transaction.cache.next_number();
        let task = WaitingTask { number, run, run_no, node, tenant_no, queue, service, losses };
        enqueue::place(transaction, task)?;
    }
    for timer in &changes.timers {
        let due_at = transaction.now.after(timer.after);
        let number = transaction.cache.next_number();
        rows::timer::set(file, due_at, number, run_no, timer.node)?;
    }
    transaction.earned.add_all(HintSet::earned_by(changes));
    Ok(())
}

/// Writes waits that close and open, and who got which signal.
fn write_inbox(
    transaction: &mut Transaction<'_, '_>,
    key: RunKey,
    extras: &Extras,
) -> Result<(), StoreError> {
    let file = transaction.file;
    let cached = transaction.cache.runs.load(file, key)?;
    let (no, tenant_no, definition) = (cached.no, cached.tenant_no, cached.row.definition);
    let run = WaitingRun { no, key, tenant_no, definition };
    for node in &extras.waits_closed {
        rows::wait::delete(file, no, *node)?;
    }
    for wait in &extras.waits_opened {
        rows::wait::insert(file, run, wait)?;
    }
    for (number, node) in &extras.signals_consumed {
        rows::signal::consume(file, no, *number, *node)?;
    }
    Ok(())
}

fn write_history(
    transaction: &mut Transaction<'_, '_>,
    run: RunKey,
    run_no: i64,
    changes: &Changes,
) -> Result<(), StoreError> {
    let file = transaction.file;
    for attempt in &changes.attempts {
        if !keep_end(transaction, run, attempt)? {
            let worker_no = transaction.cache.workers.load(file, &attempt.claim.worker)?;
            rows::attempt::insert(file, run_no, worker_no, attempt)?;
        }
    }
    changes.events.iter().try_for_each(|event| rows::event::insert(file, run_no, event))
}

/// Lets the row of a task that completed carry its last attempt, unless there is more to tell
/// than the row has room for.
fn keep_end(
    transaction: &mut Transaction<'_, '_>,
    run: RunKey,
    attempt: &AttemptRow,
) -> Result<bool, StoreError> {
    let is_plain = attempt.state == AttemptState::Completed
        && attempt.notes.is_empty()
        && attempt.failure.is_none()
        && attempt.retry.is_none();
    let task = transaction.cache.runs.find_task(transaction.file, run, attempt.node)?;
    let Some(task) = task.filter(|_| is_plain) else { return Ok(false) };
    Ok(task.keep_end(TaskEnd {
        ended_at: attempt.ended_at,
        first_event: attempt.first_event,
        with_queued: attempt.with_queued,
        output: None,
        is_large: false,
    }))
}

/// A small output goes with the row of its task, which is about to be written anyway.
pub(crate) fn keep_output(
    transaction: &mut Transaction<'_, '_>,
    run: RunKey,
    node: Node,
    output: Payload,
) -> Result<(), StoreError> {
    let file = transaction.file;
    let cached = transaction.cache.runs.load(file, run)?;
    let end = cached.tasks.get_mut(&node).and_then(|task| task.end.as_mut());
    if let Some(end) = end {
        end.is_large = !is_small(&output);
        if !end.is_large {
            end.output = Some(output);
            return Ok(());
        }
    }
    rows::payload::insert_output(file, cached.no, node, &output)
}
