//! Numbering tenants.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use stepwell_core::id::Tenant;

use super::super::connection::pool::Pool;
use super::super::connection::role::Role;
use super::super::rows::tenant;
use super::super::session::{PgResult, Session};
use super::super::sql::{self, Sql};
use super::IdCache;

/// Keeps others from numbering tenants at the same time.
pub(crate) const LOCK_TENANT_TABLE: Sql = sql::TENANT.named("lock_tenant_table");
const INSERT_TENANT: Sql = sql::TENANT.named("insert_tenant");
const READ_TENANTS_BY_NAME: Sql = sql::TENANT.named("read_tenants_by_name");

/// The numbers of tenants. New ones are numbered in a short transaction of its own, so that nobody
/// waits for a batch of starts.
pub(crate) async fn tenant_nos(
    pool: &Arc<Pool>,
    cache: &IdCache,
    tenants: &[Tenant],
) -> PgResult<HashMap<Tenant, u32>> {
    if let Some(cached) = cache.cached_tenant_nos(tenants) {
        return Ok(cached);
    }
    let session = Session::unopened(pool, Role::Work).await?;
    session.open().await?;
    let mut numbers = read_tenant_nos(&session, tenants).await?;
    // The lock on the table keeps others away meanwhile.
    let (mut fresh, mut seen) = (Vec::new(), HashSet::new());
    for tenant in tenants {
        if !numbers.contains_key(tenant) && seen.insert(tenant) {
            fresh.push(tenant);
        }
    }
    if !fresh.is_empty() {
        session.run(LOCK_TENANT_TABLE, &[]).await?;
        for tenant in fresh {
            session.run(INSERT_TENANT, &[&tenant.as_str()]).await?;
        }
        numbers = read_tenant_nos(&session, tenants).await?;
    }
    session.close().await?;
    session.end();
    cache.remember_tenant_nos(&numbers);
    Ok(numbers)
}

async fn read_tenant_nos(session: &Session, tenants: &[Tenant]) -> PgResult<HashMap<Tenant, u32>> {
    let names: Vec<&str> = tenants.iter().map(Tenant::as_str).collect();
    let rows = session.all(READ_TENANTS_BY_NAME, &[&names]).await?;
    let read = |row| tenant::read_name(row).map(|(no, name)| (name, no));
    Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
}
