//! Letting a task wait where it belongs: in its queue, behind a limit, or for a worker.

use stepwell_core::fair::{Group, POSITION_MAX, Position, order_key};

use super::positions;
use crate::outbound::sqlite::rows;
use crate::outbound::sqlite::rows::queue::WaitingTask;
use crate::outbound::sqlite::rows::task::Place;
use crate::outbound::sqlite::writer::Transaction;
use crate::ports::{Hint, StoreError};

/// Lets a task wait where it belongs: parked if no worker serves it, throttled if its tenant is at
/// its limit, else in its queue.
pub(crate) fn place(
    transaction: &mut Transaction<'_, '_>,
    task: WaitingTask,
) -> Result<(), StoreError> {
    let (file, cache) = (transaction.file, &mut *transaction.cache);
    if !cache.queues.is_served(file, &task.queue, task.definition)? {
        return rows::queue::insert_parked(file, &task);
    }
    if cache.has_room(file, task.tenant_no)? {
        enqueue(transaction, task)
    } else {
        throttle(transaction, &task)
    }
}

/// Lets a task wait behind its tenant's limit.
pub(super) fn throttle(
    transaction: &mut Transaction<'_, '_>,
    task: &WaitingTask,
) -> Result<(), StoreError> {
    let file = transaction.file;
    rows::queue::insert_throttled(file, task)?;
    transaction.cache.tenants.load(file, task.tenant_no)?.has_throttled = Some(true);
    Ok(())
}

/// Lets a task into its queue at its tenant's next position. Starts are refused before the
/// positions are used up; what is already under way shares the last one, in order of arrival.
fn enqueue(transaction: &mut Transaction<'_, '_>, task: WaitingTask) -> Result<(), StoreError> {
    let WaitingTask { number, run, node, tenant_no, queue, definition, .. } = task;
    let next = positions::of_tenant(transaction, tenant_no, &queue)?.next();
    let position = next.unwrap_or(Position(POSITION_MAX));
    let (file, cache) = (transaction.file, &mut *transaction.cache);
    cache.queues.set_last_position(tenant_no, &queue, position);
    let order = order_key(position, Group(tenant_no));
    let place = Place { queue, order, number, position, definition };
    cache.runs.change_task(file, run, node)?.place = Some(place);
    cache.tenants.count_admitted(file, tenant_no, 1, 0)?;
    match &mut transaction.offered {
        Some(offered) => offered.push((run, node)),
        None => transaction.earn(Hint::Ready),
    }
    Ok(())
}
