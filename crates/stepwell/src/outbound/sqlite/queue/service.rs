//! What workers serve, and what that means for tasks that wait.

use std::collections::BTreeSet;

use super::enqueue::place;
use super::limits::fill;
use super::positions::withdraw;
use crate::outbound::sqlite::rows;
use crate::outbound::sqlite::writer::Transaction;
use crate::ports::{StoreError, WorkerRegistration};

/// Writes what a worker serves from now on.
pub(crate) fn set_services(
    transaction: &mut Transaction<'_, '_>,
    worker_no: i64,
    registration: &WorkerRegistration,
) -> Result<(), StoreError> {
    let file = transaction.file;
    clear_services(transaction, worker_no)?;
    for (turn, queue) in (0_i64..).zip(&registration.queues) {
        rows::worker::insert_queue(file, worker_no, turn, queue)?;
        for service in &registration.services {
            rows::worker::insert_service(file, worker_no, queue, *service)?;
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

/// Parked tasks that are served by now come back, stamped anew, and ready ones that no worker
/// serves any more are parked.
pub(crate) fn park_and_unpark(transaction: &mut Transaction<'_, '_>) -> Result<(), StoreError> {
    let file = transaction.file;
    let mut back = rows::queue::unpark(file)?;
    back.sort_by_key(|task| task.number);
    for task in back {
        place(transaction, task)?;
    }
    transaction.cache.write_rows(file)?;
    let unserved = rows::queue::unserved_ready(file)?;
    let mut tenants = BTreeSet::new();
    for task in withdraw(transaction, &unserved)? {
        tenants.insert(task.tenant_no);
        place(transaction, task)?;
    }
    tenants.into_iter().try_for_each(|tenant_no| fill(transaction, tenant_no).map(drop))
}
