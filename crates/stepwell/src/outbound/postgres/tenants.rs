use async_trait::async_trait;
use stepwell_core::id::Tenant;
use stepwell_core::queue::FairError;

use super::lookup::tenants::{LOCK_TENANT_TABLE, tenant_nos};
use super::queue::LOCK_TENANTS;
use super::queue::service::lock_serving_shared;
use super::rows::{int32, read_all, tenant};
use super::session::{Done, PgResult};
use super::sql::{self, Sql};
use super::{PostgresStore, Role};
use crate::ports::{Hint, StoreError, TenantSettings, TenantView, Tenants};

const SET_TENANT: Sql = sql::TENANT.named("set_tenant");
const SET_DEFAULT_TENANT: Sql = sql::TENANT.named("set_default_tenant");
const ALL_TENANTS: Sql = sql::TENANT.named("all_tenants");
const VIEW_TENANT: Sql = sql::TENANT.named("view_tenant");

#[async_trait]
impl Tenants for PostgresStore {
    async fn set_tenant(
        &self,
        tenant: &Tenant,
        settings: TenantSettings,
    ) -> Result<(), StoreError> {
        settings.check()?;
        self.with_retries(|| self.set_tenant_once(tenant, settings)).await
    }

    async fn set_default_tenant(&self, settings: TenantSettings) -> Result<(), StoreError> {
        settings.check()?;
        self.with_retries(|| self.set_default_once(settings)).await
    }

    async fn tenant(&self, tenant: &Tenant) -> Result<Option<TenantView>, StoreError> {
        let session = self.begin(Role::Work).await?;
        let row = session.one(VIEW_TENANT, &[&tenant.as_str()]).await?;
        let view = row.as_ref().map(tenant::read_view).transpose()?;
        self.commit_session(session).await?;
        Ok(view)
    }
}

impl PostgresStore {
    async fn set_tenant_once(
        &self,
        tenant: &Tenant,
        settings: TenantSettings,
    ) -> PgResult<Done<()>> {
        let asked = std::slice::from_ref(tenant);
        let numbers = tenant_nos(&self.shared.pool, &self.shared.ids, asked).await?;
        let too_many = || StoreError::from(FairError::TooManyTenants);
        let tenant_no = numbers.get(tenant).copied().ok_or_else(too_many)?;
        let session = self.begin(Role::Work).await?;
        lock_serving_shared(&session).await?;
        let number = int32(tenant_no);
        // Waits for transactions that counted by the old settings.
        session.run(LOCK_TENANTS, &[&vec![number]]).await?;
        let (weight, tasks_max) = (int32(settings.weight), settings.tasks_max.map(int32));
        session.run(SET_TENANT, &[&number, &weight, &tasks_max]).await?;
        let queues = self.shared.queues(&session);
        queues.apply_settings(tenant_no).await?;
        let learned = queues.learned();
        self.commit_session(session).await?;
        Ok(Done::telling((), Hint::Ready, learned))
    }

    async fn set_default_once(&self, settings: TenantSettings) -> PgResult<Done<()>> {
        let session = self.begin(Role::Work).await?;
        lock_serving_shared(&session).await?;
        // No tenant may appear between the look and the locks.
        session.run(LOCK_TENANT_TABLE, &[]).await?;
        let all = session.all(ALL_TENANTS, &[]).await?;
        let numbers: Vec<i32> = read_all(&all, tenant::read_int)?;
        session.run(LOCK_TENANTS, &[&numbers]).await?;
        let (weight, tasks_max) = (int32(settings.weight), settings.tasks_max.map(int32));
        session.run(SET_DEFAULT_TENANT, &[&weight, &tasks_max]).await?;
        let queues = self.shared.queues(&session);
        for number in numbers {
            queues.apply_settings(number.unsigned_abs()).await?;
        }
        let learned = queues.learned();
        self.commit_session(session).await?;
        Ok(Done::telling((), Hint::Ready, learned))
    }
}
