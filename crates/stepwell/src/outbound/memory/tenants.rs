use async_trait::async_trait;
use stepwell_core::code::Code;
use stepwell_core::id::Tenant;
use stepwell_core::limits::WEIGHT_MAX;

use super::MemoryStore;
use crate::ports::{Hint, StoreError, TenantSettings, TenantView, Tenants};

#[async_trait]
impl Tenants for MemoryStore {
    async fn set_tenant(
        &self,
        tenant: &Tenant,
        settings: TenantSettings,
    ) -> Result<(), StoreError> {
        check(settings)?;
        self.transact(|tables| {
            let refuse = |error: stepwell_core::fair::FairError| StoreError::Refused {
                code: Code::FairnessLimit,
                message: error.to_string(),
            };
            tables.line.tenant(tenant).map_err(refuse)?.own = Some(settings);
            tables.line.shrink(tenant);
            tables.line.fill(tenant);
            tables.earn(Hint::Ready);
            Ok(())
        })
    }

    async fn set_default_tenant(&self, settings: TenantSettings) -> Result<(), StoreError> {
        check(settings)?;
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

fn check(settings: TenantSettings) -> Result<(), StoreError> {
    let refuse = |message: String| StoreError::Refused { code: Code::BadConfig, message };
    if settings.weight == 0 || settings.weight > WEIGHT_MAX {
        let weight = settings.weight;
        return Err(refuse(format!("weight is {weight}, it must be 1 to {WEIGHT_MAX}")));
    }
    if settings.tasks_max == Some(0) {
        return Err(refuse(
            "tasks_max is 0, nothing would ever run; leave it out for no limit".into(),
        ));
    }
    Ok(())
}
