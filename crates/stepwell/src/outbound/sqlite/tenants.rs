use async_trait::async_trait;
use stepwell_core::id::Tenant;

use super::file::File;
use super::queue::limits::apply_limit;
use super::{SqliteStore, rows};
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
            let (file, tenants) = (transaction.file, &mut transaction.cache.tenants);
            let tenant_no = tenants.number(file, &tenant)?;
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
        self.write(move |transaction| {
            rows::store::set_defaults(transaction.file, settings)?;
            transaction.cache.counters().defaults = settings;
            for (_, tenant) in rows::tenant::all(transaction.file)? {
                apply_limit(transaction, tenant.tenant_no)?;
            }
            transaction.earned.add(Hint::Ready);
            Ok(())
        })
        .await
    }

    async fn tenant(&self, tenant: &Tenant) -> Result<Option<TenantView>, StoreError> {
        let tenant = tenant.clone();
        self.read(move |transaction| view(transaction.file, &tenant)).await
    }
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
