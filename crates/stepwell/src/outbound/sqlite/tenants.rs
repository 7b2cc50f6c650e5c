use async_trait::async_trait;
use rusqlite::params;
use stepwell_core::fair::Group;
use stepwell_core::id::Tenant;

use super::error::corrupt;
use super::rows::count;
use super::standing::tenant_row;
use super::transaction::Transaction;
use super::{SqliteStore, statements};
use crate::ports::{Hint, StoreError, TenantSettings, TenantView, Tenants};

#[async_trait]
impl Tenants for SqliteStore {
    async fn set_tenant(
        &self,
        tenant: &Tenant,
        settings: TenantSettings,
    ) -> Result<(), StoreError> {
        settings.check()?;
        let tenant = tenant.clone();
        self.write(move |transaction| {
            let group = transaction.group(&tenant)?;
            let row = params![group, settings.weight, settings.tasks_max];
            transaction.run(statements::SET_TENANT, row)?;
            transaction.tenant_mut(group)?.own = Some(settings);
            resettle(transaction, group)
        })
        .await
    }

    async fn set_default_tenant(&self, settings: TenantSettings) -> Result<(), StoreError> {
        settings.check()?;
        self.write(move |transaction| {
            let row = params![settings.weight, settings.tasks_max];
            transaction.run(statements::SET_DEFAULTS, row)?;
            transaction.book.counters().defaults = settings;
            for group in transaction.all(statements::READ_TENANTS, [], |row| count(row, 0))? {
                resettle(transaction, group)?;
            }
            Ok(())
        })
        .await
    }

    async fn tenant(&self, tenant: &Tenant) -> Result<Option<TenantView>, StoreError> {
        let tenant = tenant.clone();
        self.read(move |transaction| view(transaction, &tenant)).await
    }
}

/// Moves tasks into queues or out of them, as the settings in force ask for.
fn resettle(transaction: &mut Transaction<'_, '_>, group: u32) -> Result<(), StoreError> {
    transaction.shrink(group)?;
    transaction.fill(group)?;
    transaction.earn(Hint::Ready);
    Ok(())
}

fn view(
    transaction: &Transaction<'_, '_>,
    tenant: &Tenant,
) -> Result<Option<TenantView>, StoreError> {
    let row = transaction.first(statements::FIND_TENANT, [tenant.as_str()], tenant_row)?;
    let Some(row) = row else { return Ok(None) };
    let defaults = transaction.first(statements::READ_DEFAULTS, [], |row| {
        Ok(TenantSettings { weight: count(row, 0)?, tasks_max: row.get(1)? })
    })?;
    let defaults = defaults.ok_or_else(|| corrupt("the counters are missing"))?;
    let count_of = |sql| transaction.first(sql, [row.group], |row| count(row, 0));
    Ok(Some(TenantView {
        group: Group(row.group),
        settings: row.own.unwrap_or(defaults),
        n_ready: row.n_ready as usize,
        n_running: row.n_running as usize,
        n_throttled: count_of(statements::COUNT_THROTTLED)?.unwrap_or(0) as usize,
        n_parked: count_of(statements::COUNT_PARKED)?.unwrap_or(0) as usize,
    }))
}
