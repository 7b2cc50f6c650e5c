//! What workers serve, and what that means for tasks that wait.

use std::collections::BTreeSet;

use stepwell_core::id::{DefinitionId, Node, RunKey};
use stepwell_core::queue::TenantNo;
use stepwell_core::workflow::MovedFrom;

use super::enqueue::place;
use super::limits::fill;
use super::positions::withdraw;
use crate::outbound::sqlite::rows;
use crate::outbound::sqlite::rows::queue::{ServicePlace, WaitingTask};
use crate::outbound::sqlite::writer::Transaction;
use crate::ports::{SETTLED_SERVICES_MAX, StoreError, WorkerRegistration};

/// Writes what a worker serves from now on.
pub(crate) fn set_services(
    transaction: &mut Transaction<'_, '_>,
    worker_no: i64,
    registration: &WorkerRegistration,
) -> Result<(), StoreError> {
    let file = transaction.file;
    clear_services(transaction, worker_no)?;
    for service in &registration.services {
        let stored = transaction.definitions.find(file, DefinitionId(service.id.0))?;
        if stored.is_none_or(|stored| stored.mark != service.mark) {
            return Err(StoreError::unknown_service());
        }
    }
    for (turn, queue) in (0_i64..).zip(&registration.queues) {
        rows::worker::insert_queue(file, worker_no, turn, queue)?;
        for service in &registration.services {
            rows::worker::insert_service(file, worker_no, queue, service.id)?;
        }
    }
    Ok(())
}

/// A worker serves nothing any more.
pub(crate) fn clear_services(
    transaction: &mut Transaction<'_, '_>,
    worker_no: i64,
) -> Result<(), StoreError> {
    transaction.cache.queues.forget_service();
    rows::worker::delete_services(transaction.file, worker_no)
}

/// Some of the tasks move that wait where they no longer belong: parked ones that are served by now
/// come back, stamped anew, and ready ones that no worker serves any more are parked. Where the
/// queue of a step has changed, its tasks that nobody serves follow. Says whether there are more.
pub(crate) fn settle(transaction: &mut Transaction<'_, '_>) -> Result<bool, StoreError> {
    let file = transaction.file;
    let (mut served, mut moved) = (Vec::new(), Vec::new());
    for place in rows::queue::parked_places(file)? {
        let waiting = |n_max| rows::queue::parked_at(file, &place, n_max);
        if is_served(transaction, &place)? {
            served.extend(waiting(SETTLED_SERVICES_MAX)?);
            continue;
        }
        match moved_from(transaction, &place)? {
            MovedFrom::None => {}
            MovedFrom::All => moved.extend(waiting(SETTLED_SERVICES_MAX)?),
            MovedFrom::Some(nodes) => {
                for node in nodes {
                    let n_max = SETTLED_SERVICES_MAX;
                    moved.extend(rows::queue::parked_of_node(file, &place, node, n_max)?);
                }
            }
        }
    }
    let mut unserved = Vec::new();
    for place in rows::queue::ready_places(file)? {
        if !is_served(transaction, &place)? {
            unserved.extend(rows::queue::ready_at(file, &place, SETTLED_SERVICES_MAX)?);
        }
    }
    let n_found = [served.len(), moved.len(), unserved.len()];
    for waiting in [&mut served, &mut moved] {
        waiting.sort_by_key(|task: &WaitingTask| task.number);
        waiting.truncate(SETTLED_SERVICES_MAX);
    }
    unserved.truncate(SETTLED_SERVICES_MAX);
    unpark(transaction, served, moved)?;
    park(transaction, &unserved)?;
    Ok(n_found.into_iter().any(|n| n >= SETTLED_SERVICES_MAX))
}

fn is_served(
    transaction: &mut Transaction<'_, '_>,
    (queue, service): &ServicePlace,
) -> Result<bool, StoreError> {
    transaction.cache.queues.is_served(transaction.file, queue, *service)
}

/// The steps of a service whose tasks have another queue by now.
fn moved_from(
    transaction: &Transaction<'_, '_>,
    (queue, service): &ServicePlace,
) -> Result<MovedFrom, StoreError> {
    let plan = transaction.definitions.find(transaction.file, DefinitionId(service.0))?;
    Ok(plan.map_or(MovedFrom::None, |stored| stored.definition.moved_from(queue)))
}

/// Lets parked tasks wait where they belong now, in the order of their arrival.
fn unpark(
    transaction: &mut Transaction<'_, '_>,
    served: Vec<WaitingTask>,
    moved: Vec<WaitingTask>,
) -> Result<(), StoreError> {
    let file = transaction.file;
    let mut back = served;
    for task in moved {
        back.push(follow(transaction, task)?);
    }
    back.sort_by_key(|task| task.number);
    for task in &back {
        rows::queue::delete_waiting(file, task.run_no, task.node)?;
    }
    back.into_iter().try_for_each(|task| place(transaction, task))
}

/// Parks ready tasks. Room that they leave is for those who waited behind the limit.
fn park(
    transaction: &mut Transaction<'_, '_>,
    unserved: &[(RunKey, Node)],
) -> Result<(), StoreError> {
    transaction.cache.write_rows(transaction.file)?;
    let withdrawn = withdraw(transaction, unserved)?;
    let tenants: BTreeSet<TenantNo> = withdrawn.iter().map(|task| task.tenant_no).collect();
    for tenant_no in tenants {
        fill(transaction, tenant_no)?;
    }
    for task in withdrawn {
        let task = follow(transaction, task)?;
        place(transaction, task)?;
    }
    Ok(())
}

/// A task that nobody serves waits in the queue that its step has now.
fn follow(transaction: &Transaction<'_, '_>, task: WaitingTask) -> Result<WaitingTask, StoreError> {
    let plan = transaction.definitions.find(transaction.file, DefinitionId(task.service.0))?;
    let queue = plan.map(|stored| stored.definition.queue(task.node));
    Ok(WaitingTask { queue: queue.unwrap_or_else(|| task.queue.clone()), ..task })
}
