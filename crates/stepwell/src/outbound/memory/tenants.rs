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
            let own = &mut tables.queues.tenant(tenant)?.own;
            if own.replace(settings) == Some(settings) {
                return Ok(());
            }
            tables.queues.shrink(tenant);
            tables.queues.fill(tenant);
            tables.earn(Hint::Ready);
            Ok(())
        })
    }

    async fn set_default_tenant(&self, settings: TenantSettings) -> Result<(), StoreError> {
        settings.check()?;
        self.transact(|tables| {
            if std::mem::replace(&mut tables.queues.defaults, settings) == settings {
                return;
            }
            let tenants: Vec<Tenant> = tables.queues.tenants.keys().cloned().collect();
            for tenant in tenants {
                tables.queues.shrink(&tenant);
                tables.queues.fill(&tenant);
            }
            tables.earn(Hint::Ready);
        });
        Ok(())
    }

    async fn tenant(&self, tenant: &Tenant) -> Result<Option<TenantView>, StoreError> {
        Ok(self.transact(|tables| {
            let entry = tables.queues.tenants.get(tenant)?;
            Some(TenantView {
                tenant_no: entry.tenant_no,
                settings: entry.settings(tables.queues.defaults),
                n_ready: entry.n_ready,
                n_running: entry.n_running,
                n_throttled: entry.throttled.len(),
                n_parked: entry.n_parked,
            })
        }))
    }
}
