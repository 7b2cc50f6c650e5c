//! Letting a task wait where it belongs: in its queue, behind a limit, or for a worker.

use stepwell_core::queue::{WaitsIn, waits_in};

use super::positions;
use crate::outbound::sqlite::rows;
use crate::outbound::sqlite::rows::queue::WaitingTask;
use crate::outbound::sqlite::rows::task::Place;
use crate::outbound::sqlite::writer::Transaction;
use crate::ports::{Hint, StoreError};

/// Lets a task wait where it belongs.
pub(crate) fn place(
    transaction: &mut Transaction<'_, '_>,
    task: WaitingTask,
) -> Result<(), StoreError> {
    let (file, cache) = (transaction.file, &mut *transaction.cache);
    let is_served = cache.queues.is_served(file, &task.queue, task.service)?;
    match waits_in(is_served, cache.room_left(file, task.tenant_no)?) {
        WaitsIn::Parked => rows::queue::insert_parked(file, &task),
        WaitsIn::Throttled => throttle(transaction, &task),
        WaitsIn::Queue => enqueue(transaction, task),
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

/// Lets a task into its queue at its tenant's next position.
fn enqueue(transaction: &mut Transaction<'_, '_>, task: WaitingTask) -> Result<(), StoreError> {
    let WaitingTask { number, run, node, tenant_no, queue, service, .. } = task;
    let mut stands_at = positions::of_tenant(transaction, tenant_no, &queue)?;
    let (position, order) = stands_at.take(tenant_no);
    let (file, cache) = (transaction.file, &mut *transaction.cache);
    cache.queues.set_last_position(tenant_no, &queue, position);
    let place = Place { queue, order, number, position, service };
    cache.runs.change_task(file, run, node)?.place = Some(place);
    cache.tenants.count_admitted(file, tenant_no, 1, 0)?;
    match &mut transaction.offered {
        Some(offered) => offered.push((run, node)),
        None => transaction.earned.add(Hint::Ready),
    }
    Ok(())
}
