use async_trait::async_trait;
use stepwell_core::id::Tenant;
use stepwell_core::queue::TenantNo;

use super::file::File;
use super::queue::limits::apply_limit;
use super::writer::Transaction;
use super::{SqliteStore, rows};
use crate::ports::{
    Hint, SETTLED_TASKS_MAX, SETTLED_TENANTS_MAX, StoreError, TenantSettings, TenantView, Tenants,
};

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
            let (file, tenants) = (transaction.file, &mut transaction.cache.tenants);
            let tenant_no = tenants.number(file, &tenant)?;
            if tenants.load(file, tenant_no)?.row.own == Some(settings) {
                return Ok(());
            }
            rows::tenant::set_own(file, tenant_no, settings)?;
            tenants.load(file, tenant_no)?.row.own = Some(settings);
            apply_limit(transaction, tenant_no)?;
            transaction.earned.add(Hint::Ready);
            Ok(())
        })
        .await
    }

    async fn set_default_tenant(&self, settings: TenantSettings) -> Result<(), StoreError> {
        settings.check()?;
        let change = move |transaction: &mut Transaction<'_, '_>| change(transaction, settings);
        let mut is_left = self.write(change).await?;
        while is_left {
            is_left = self.write(settle).await?;
        }
        Ok(())
    }

    async fn tenant(&self, tenant: &Tenant) -> Result<Option<TenantView>, StoreError> {
        let tenant = tenant.clone();
        self.read(move |transaction| view(transaction.file, &tenant)).await
    }
}

/// Writes another default. Says whether it is still to be applied to tenants.
fn change(
    transaction: &mut Transaction<'_, '_>,
    settings: TenantSettings,
) -> Result<bool, StoreError> {
    let counters = transaction.cache.counters();
    if counters.defaults != settings {
        if settings.moves_tasks(counters.defaults) {
            counters.settle_from = Some(TenantNo(0));
        }
        counters.defaults = settings;
        rows::store::set_defaults(transaction.file, counters)?;
    }
    Ok(counters.settle_from.is_some())
}

/// Applies the default to the next tenants. Says whether there are more.
fn settle(transaction: &mut Transaction<'_, '_>) -> Result<bool, StoreError> {
    let (file, from) = (transaction.file, transaction.cache.counters().settle_from);
    let Some(from) = from else { return Ok(false) };
    let tenants = rows::tenant::to_settle(file, from, SETTLED_TENANTS_MAX)?;
    let (mut n_moved, mut last) = (0, None);
    for tenant_no in &tenants {
        if n_moved >= SETTLED_TASKS_MAX {
            break;
        }
        n_moved += apply_limit(transaction, *tenant_no)?;
        last = Some(*tenant_no);
    }
    let is_done = tenants.len() < SETTLED_TENANTS_MAX && last == tenants.last().copied();
    let next = last.filter(|_| !is_done).map(|last| TenantNo(last.0 + 1));
    let counters = transaction.cache.counters();
    counters.settle_from = next;
    rows::store::set_defaults(file, counters)?;
    transaction.earned.add(Hint::Ready);
    Ok(next.is_some())
}

fn view(file: File<'_, '_>, tenant: &Tenant) -> Result<Option<TenantView>, StoreError> {
    let Some(row) = rows::tenant::find(file, tenant)? else { return Ok(None) };
    let defaults = rows::store::counters(file)?.defaults;
    Ok(Some(TenantView {
        tenant_no: row.tenant_no,
        settings: TenantSettings::in_force(row.own, defaults),
        n_ready: row.n_ready as usize,
        n_running: row.n_running as usize,
        n_throttled: rows::queue::n_throttled(file, row.tenant_no)? as usize,
        n_parked: rows::queue::n_parked(file, row.tenant_no)? as usize,
    }))
}
