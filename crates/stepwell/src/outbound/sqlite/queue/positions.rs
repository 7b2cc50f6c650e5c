//! The positions of tenants in queues: how they are taken and how they are given back.

use std::collections::BTreeSet;

use stepwell_core::id::{Node, Queue, RunKey};
use stepwell_core::queue::{
    OrderKey, Position, TenantNo, TenantPosition, last_after_cancel, order_key,
};

use crate::outbound::sqlite::rows;
use crate::outbound::sqlite::rows::queue::WaitingTask;
use crate::outbound::sqlite::rows::task::Place;
use crate::outbound::sqlite::writer::Transaction;
use crate::ports::StoreError;

/// Where a tenant stands in a queue.
pub(crate) fn of_tenant(
    transaction: &mut Transaction<'_, '_>,
    tenant_no: TenantNo,
    queue: &Queue,
) -> Result<TenantPosition, StoreError> {
    let (file, cache) = (transaction.file, &mut *transaction.cache);
    Ok(TenantPosition {
        weight: cache.settings(file, tenant_no)?.weight,
        last: cache.queues.last_position(file, tenant_no, queue)?,
        frontier: cache.queues.frontier(file, queue)?,
    })
}

/// Takes ready tasks out of their queues without a claim and gives their positions back.
/// Tasks that stand in no queue are left out.
pub(super) fn withdraw(
    transaction: &mut Transaction<'_, '_>,
    tasks: &[(RunKey, Node)],
) -> Result<Vec<WaitingTask>, StoreError> {
    let (file, cache) = (transaction.file, &mut *transaction.cache);
    let (mut withdrawn, mut shortened) = (Vec::new(), BTreeSet::new());
    for (run, node) in tasks.iter().copied() {
        let task = cache.runs.find_task(file, run, node)?;
        let Some(task) = task.filter(|task| task.place.is_some()) else { continue };
        let losses = task.row.losses;
        let Some(place) = cache.runs.change_task(file, run, node)?.place.take() else { continue };
        let cached = cache.runs.load(file, run)?;
        let (run_no, tenant_no) = (cached.no, cached.tenant_no);
        cache.tenants.count_admitted(file, tenant_no, -1, 0)?;
        shortened.insert((tenant_no, place.queue.clone()));
        let Place { queue, number, service, .. } = place;
        let task = WaitingTask { number, run, run_no, node, tenant_no, queue, service, losses };
        withdrawn.push(task);
    }
    for (tenant_no, queue) in shortened {
        let greatest = greatest_position(transaction, tenant_no, &queue)?;
        let queues = &mut transaction.cache.queues;
        let last = queues.last_position(file, tenant_no, &queue)?;
        let last = last_after_cancel(last, queues.frontier(file, &queue)?, greatest);
        if let Some(last) = last {
            queues.set_last_position(tenant_no, &queue, last);
        }
    }
    Ok(withdrawn)
}

/// The greatest position of a tenant's tasks in a queue, if it lies beyond the frontier. None
/// lies beyond the tenant's last position.
fn greatest_position(
    transaction: &mut Transaction<'_, '_>,
    tenant_no: TenantNo,
    queue: &Queue,
) -> Result<Option<Position>, StoreError> {
    let (file, cache) = (transaction.file, &mut *transaction.cache);
    let Some(last) = cache.queues.last_position(file, tenant_no, queue)? else { return Ok(None) };
    let frontier = cache.queues.frontier(file, queue)?;
    let (down_to, from) = (order_key(frontier, TenantNo(0)), order_key(last, tenant_no));
    cache.write_rows(file)?;
    let mut greatest_of_all = None;
    for service in rows::queue::services_in(file, queue)? {
        let mut greatest: Option<(OrderKey, Position)> = None;
        let read = |order: OrderKey, position: Position| {
            let is_own = order_key(position, tenant_no) == order;
            match &mut greatest {
                // Tasks of one tenant share a key within a block.
                Some((key, greatest)) if *key == order => *greatest = position.max(*greatest),
                Some(_) => return false,
                None if is_own => greatest = Some((order, position)),
                None => {}
            }
            true
        };
        rows::queue::each_ready_below(file, (queue, service), from, down_to, read)?;
        greatest_of_all = greatest_of_all.max(greatest.map(|(_, position)| position));
    }
    Ok(greatest_of_all)
}
