//! Writing what the rules changed in a run.

use stepwell_core::id::{Node, RunKey};
use stepwell_core::run::{AttemptRow, AttemptState, Changes, Extras, ROUND_KEY, RunImage};

use super::happen::SignalPayloads;
use crate::outbound::sqlite::file::{File, corrupt};

use crate::outbound::sqlite::queue::{enqueue, limits};
use crate::outbound::sqlite::rows;
use crate::outbound::sqlite::rows::payload::is_small;
use crate::outbound::sqlite::rows::queue::WaitingTask;
use crate::outbound::sqlite::rows::task::TaskEnd;
use crate::outbound::sqlite::rows::wait::WaitingRun;
use crate::outbound::sqlite::writer::Transaction;
use crate::ports::{HintSet, Payload, StoreError, StoredDefinition};

/// Takes a changed image back: rows first, then claims that ended, then what became ready, so that
/// the room a claim leaves goes to those who waited longest.
pub(super) fn write(
    transaction: &mut Transaction<'_, '_>,
    image: RunImage<'_>,
    plan: &StoredDefinition,
    payloads: &SignalPayloads<'_>,
) -> Result<(), StoreError> {
    let (run, tasks, changes) = image.into_parts();
    let key = run.key;
    let cached = transaction.cache.runs.change(transaction.file, key)?;
    cached.set_row(run);
    for task in tasks.into_iter().filter(|task| changes.touched.contains(&task.node)) {
        cached.set_task(task);
    }
    write_changes(transaction, key, plan, &changes, payloads)
}

/// Writes what follows from changed rows.
pub(super) fn write_changes(
    transaction: &mut Transaction<'_, '_>,
    run: RunKey,
    plan: &StoredDefinition,
    changes: &Changes,
    payloads: &SignalPayloads<'_>,
) -> Result<(), StoreError> {
    let file = transaction.file;
    let cached = transaction.cache.runs.load(file, run)?;
    let (run_no, tenant_no) = (cached.no, cached.tenant_no);
    write_history(transaction, run, run_no, changes)?;
    if let Some(extras) = &changes.extras {
        write_inbox(transaction, run, extras, payloads)?;
        write_memos(file, run_no, extras)?;
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
    let output = plan.definition.output_step();
    let row = &transaction.cache.runs.load(file, run)?.row;
    transaction.earned.add_all(HintSet::earned_by(row, output, changes));
    Ok(())
}

/// Writes waits that close and open, signals, and who got which.
fn write_inbox(
    transaction: &mut Transaction<'_, '_>,
    key: RunKey,
    extras: &Extras,
    payloads: &SignalPayloads<'_>,
) -> Result<(), StoreError> {
    let file = transaction.file;
    let cached = transaction.cache.runs.load(file, key)?;
    let (no, tenant_no, definition) = (cached.no, cached.tenant_no, cached.row.definition);
    let run = WaitingRun { no, key, tenant_no, definition };
    for node in &extras.waits_closed {
        rows::wait::delete_all(file, no, *node)?;
    }
    for (node, key) in &extras.waits_ended {
        rows::wait::delete(file, no, *node, key)?;
    }
    for wait in &extras.waits_opened {
        rows::wait::insert(file, run, wait)?;
    }
    for signal in &extras.signals_stored {
        let payload = payloads.get(&*signal.key);
        let payload = payload.ok_or_else(|| corrupt("a signal has no payload"))?;
        rows::signal::insert(file, no, signal, payload)?;
    }
    for (number, node) in &extras.signals_consumed {
        rows::signal::consume(file, no, *number, *node)?;
    }
    Ok(())
}

/// Writes what functions have done. The input of a round is added by those who have it.
fn write_memos(file: File<'_, '_>, run_no: i64, extras: &Extras) -> Result<(), StoreError> {
    for node in &extras.memos_cleared {
        rows::memo::clear(file, run_no, *node)?;
    }
    for (node, key) in &extras.memos_forgotten {
        rows::memo::forget(file, run_no, *node, key)?;
    }
    for memo in &extras.memos {
        rows::memo::put(file, run_no, memo, None, None)?;
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

/// The input of the round that a function begins lies beside the memo of that round.
pub(crate) fn keep_round(
    transaction: &mut Transaction<'_, '_>,
    run: RunKey,
    node: Node,
    input: &Payload,
) -> Result<(), StoreError> {
    let run_no = transaction.cache.runs.load(transaction.file, run)?.no;
    rows::memo::set_payload(transaction.file, run_no, node, ROUND_KEY, input)
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
