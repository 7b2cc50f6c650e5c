//! Limits of tenants: who comes in when room is left, and who goes back when there is too little.

use stepwell_core::id::{Node, RunKey};
use stepwell_core::queue::{TenantNo, surplus};

use super::enqueue::{place, throttle};
use super::positions::withdraw;
use crate::outbound::sqlite::rows;
use crate::outbound::sqlite::writer::Transaction;
use crate::ports::StoreError;

/// Takes cancelled tasks away, wherever they wait, and lets others into the room they leave.
pub(crate) fn remove_places(
    transaction: &mut Transaction<'_, '_>,
    run: RunKey,
    nodes: &[Node],
) -> Result<(), StoreError> {
    if nodes.is_empty() {
        return Ok(());
    }
    let (file, runs) = (transaction.file, &mut transaction.cache.runs);
    let cached = runs.load(file, run)?;
    let (run_no, tenant_no) = (cached.no, cached.tenant_no);
    for node in nodes {
        let task = runs.find_task(file, run, *node)?;
        if task.is_none_or(|task| task.place.is_none()) {
            rows::queue::delete_waiting(file, run_no, *node)?;
        }
    }
    let tasks: Vec<(RunKey, Node)> = nodes.iter().map(|node| (run, *node)).collect();
    withdraw(transaction, &tasks)?;
    fill(transaction, tenant_no).map(drop)
}

/// Claims of a tenant ended: lets others into the room they leave.
pub(crate) fn end_claims(
    transaction: &mut Transaction<'_, '_>,
    tenant_no: TenantNo,
    n_claims: usize,
) -> Result<(), StoreError> {
    let n = i32::try_from(n_claims).unwrap_or(i32::MAX);
    transaction.cache.tenants.count_admitted(transaction.file, tenant_no, 0, -n)?;
    fill(transaction, tenant_no).map(drop)
}

/// Moves tasks of a tenant into queues or out of them, as the settings in force ask for, and says
/// how many.
pub(crate) fn apply_limit(
    transaction: &mut Transaction<'_, '_>,
    tenant_no: TenantNo,
) -> Result<usize, StoreError> {
    let n_throttled = throttle_surplus(transaction, tenant_no)?;
    Ok(n_throttled + fill(transaction, tenant_no)?)
}

/// Lets throttled tasks of a tenant in, as far as its limit allows, oldest first, and says how
/// many.
pub(super) fn fill(
    transaction: &mut Transaction<'_, '_>,
    tenant_no: TenantNo,
) -> Result<usize, StoreError> {
    let file = transaction.file;
    let mut n_filled = 0;
    loop {
        let cache = &mut *transaction.cache;
        let may_have_throttled = cache.tenants.load(file, tenant_no)?.has_throttled != Some(false);
        if !may_have_throttled || cache.room_left(file, tenant_no)? == Some(0) {
            return Ok(n_filled);
        }
        match rows::queue::next_throttled(file, tenant_no)? {
            Some(task) => {
                place(transaction, task)?;
                n_filled += 1;
            }
            None => cache.tenants.load(file, tenant_no)?.has_throttled = Some(false),
        }
    }
}

/// Takes the youngest ready tasks of a tenant back behind its limit, and says how many.
fn throttle_surplus(
    transaction: &mut Transaction<'_, '_>,
    tenant_no: TenantNo,
) -> Result<usize, StoreError> {
    let (file, cache) = (transaction.file, &mut *transaction.cache);
    let limit = cache.settings(file, tenant_no)?.tasks_max;
    let n_admitted = cache.tenants.load(file, tenant_no)?.row.n_admitted();
    let n_surplus = surplus(n_admitted, limit);
    if n_surplus == 0 {
        return Ok(0);
    }
    cache.write_rows(file)?;
    let youngest = rows::queue::youngest_ready(file, tenant_no, n_surplus)?;
    let withdrawn = withdraw(transaction, &youngest)?;
    for task in &withdrawn {
        throttle(transaction, task)?;
    }
    Ok(withdrawn.len())
}
