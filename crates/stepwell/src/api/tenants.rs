//! Weights and limits of tenants.

use stepwell_core::id::Tenant;

use super::engine::Engine;
use super::start::bad_name;
use crate::error::Error;
use crate::ports::{TenantSettings, TenantView};

impl Engine {
    /// Sets a tenant's weight and limit, at once and for all workers.
    ///
    /// # Errors
    /// When a value makes no sense, or the store cannot be reached.
    pub async fn set_tenant(&self, tenant: &str, settings: TenantSettings) -> Result<(), Error> {
        self.inner.check_open()?;
        let (parts, tenant) = (&self.inner.parts, name(tenant)?);
        Ok(parts.patiently(|| parts.store.set_tenant(&tenant, settings)).await?)
    }

    /// A tenant's settings and how much of its work waits and runs. `None` for one that the
    /// store has not seen.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub async fn tenant(&self, tenant: &str) -> Result<Option<TenantView>, Error> {
        self.inner.check_open()?;
        let (parts, tenant) = (&self.inner.parts, name(tenant)?);
        Ok(parts.patiently(|| parts.store.tenant(&tenant)).await?)
    }
}

fn name(tenant: &str) -> Result<Tenant, Error> {
    Tenant::new(tenant).map_err(|why| bad_name("tenant", tenant, why))
}
