use async_trait::async_trait;
use stepwell_core::id::Tenant;

use super::MemoryStore;
use crate::ports::{Hint, StoreError, TenantSettings, TenantView, Tenants};

#[async_trait]
impl Tenants for MemoryStore {
    async fn set_tenant(
        &self,
        tenant: &Tenant,
        settings: TenantSettings,
    ) -> Result<(), StoreError> {
        settings.check()?;
        self.transact(|tables| {
            tables.line.tenant(tenant)?.own = Some(settings);
            tables.line.shrink(tenant);
            tables.line.fill(tenant);
            tables.earn(Hint::Ready);
            Ok(())
        })
    }

    async fn set_default_tenant(&self, settings: TenantSettings) -> Result<(), StoreError> {
        settings.check()?;
        self.transact(|tables| {
            tables.line.defaults = settings;
            let tenants: Vec<Tenant> = tables.line.tenants.keys().cloned().collect();
            for tenant in tenants {
                tables.line.shrink(&tenant);
                tables.line.fill(&tenant);
            }
            tables.earn(Hint::Ready);
        });
        Ok(())
    }

    async fn tenant(&self, tenant: &Tenant) -> Result<Option<TenantView>, StoreError> {
        Ok(self.transact(|tables| {
            let entry = tables.line.tenants.get(tenant)?;
            Some(TenantView {
                group: entry.group,
                settings: entry.settings(tables.line.defaults),
                n_ready: entry.n_ready,
                n_running: entry.n_running,
                n_throttled: entry.throttled.len(),
                n_parked: entry.n_parked,
            })
        }))
    }
}
