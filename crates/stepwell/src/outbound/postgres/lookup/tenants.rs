//! Numbering tenants.

use std::collections::HashMap;

use stepwell_core::id::Tenant;
use stepwell_core::queue::tenant_no;
use tokio_postgres::Row;

use super::super::rows::{int32, tenant};
use super::super::session::PgResult;
use super::super::sql::{self, Sql};
use super::IdLookup;

/// Keeps others from numbering tenants at the same time.
const LOCK_TENANT_TABLE: Sql = sql::TENANT.named("lock_tenant_table");
const COUNT_TENANTS: Sql = sql::TENANT.named("count_tenants");
const INSERT_TENANTS: Sql = sql::TENANT.named("insert_tenants");
pub(crate) const READ_TENANTS_BY_NAME: Sql = sql::TENANT.named("read_tenants_by_name");

/// The numbers of tenants. New ones are numbered in this short transaction of its own, so that
/// nobody waits for a batch of starts. A tenant for which there is no number left is not among
/// them.
pub(crate) async fn open_and_number(
    ids: &IdLookup<'_>,
    tenants: &[Tenant],
) -> PgResult<HashMap<Tenant, u32>> {
    ids.open().await?;
    let mut numbers = read_tenant_nos(ids, tenants).await?;
    let mut inserted = Vec::new();
    if tenants.iter().any(|tenant| !numbers.contains_key(tenant)) {
        (numbers, inserted) = insert_tenants(ids, tenants).await?;
    }
    ids.session.close().await?;
    // Not before they are there for everybody.
    ids.remember_tenants(&inserted)?;
    Ok(numbers)
}

/// Numbers tenants that are new, in the order given. The lock on the table keeps others from
/// numbering theirs meanwhile.
async fn insert_tenants(
    ids: &IdLookup<'_>,
    tenants: &[Tenant],
) -> PgResult<(HashMap<Tenant, u32>, Vec<Row>)> {
    let session = ids.session;
    let (locked, known, count) = tokio::join!(
        biased;
        session.run(LOCK_TENANT_TABLE, &[]),
        read_tenant_nos(ids, tenants),
        session.one(COUNT_TENANTS, &[]),
    );
    locked?;
    let (mut numbers, count) = (known?, count?);
    let mut n_tenants = count.as_ref().map(tenant::read_count).transpose()?.unwrap_or_default();
    let (mut fresh, mut names) = (Vec::new(), Vec::new());
    for tenant in tenants {
        if numbers.contains_key(tenant) {
            continue;
        }
        let Ok(number) = tenant_no(n_tenants) else { break };
        n_tenants += 1;
        numbers.insert(tenant.clone(), number.0);
        fresh.push(int32(number.0));
        names.push(tenant.as_str());
    }
    if fresh.is_empty() {
        return Ok((numbers, Vec::new()));
    }
    let inserted = session.all(INSERT_TENANTS, &[&fresh, &names]).await?;
    Ok((numbers, inserted))
}

async fn read_tenant_nos(ids: &IdLookup<'_>, tenants: &[Tenant]) -> PgResult<HashMap<Tenant, u32>> {
    let names: Vec<&str> = tenants.iter().map(Tenant::as_str).collect();
    let rows = ids.session.all(READ_TENANTS_BY_NAME, &[&names]).await?;
    ids.remember_tenants(&rows)
}
