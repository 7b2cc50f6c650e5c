use async_trait::async_trait;
use stepwell_core::id::Tenant;
use stepwell_core::queue::FairError;
use tokio_postgres::Row;

use super::lookup::tenants::READ_TENANTS_BY_NAME;
use super::queue::LOCK_TENANTS;
use super::rows::tenant::{self, DefaultTenant};
use super::rows::{corrupt, int32, read_all, rows_max};
use super::session::{Done, PgResult};
use super::sql::{self, Sql};
use super::{PostgresStore, Role};
use crate::ports::{
    Hint, SETTLED_TASKS_MAX, SETTLED_TENANTS_MAX, StoreError, TenantSettings, TenantView, Tenants,
};

const SET_TENANT: Sql = sql::TENANT.named("set_tenant");
const READ_DEFAULT_TENANT: Sql = sql::TENANT.named("read_default_tenant");
const LOCK_DEFAULT_TENANT: Sql = sql::TENANT.named("lock_default_tenant");
const SET_DEFAULT_TENANT: Sql = sql::TENANT.named("set_default_tenant");
const SET_SETTLE_FROM: Sql = sql::TENANT.named("set_settle_from");
const TENANTS_TO_SETTLE: Sql = sql::TENANT.named("tenants_to_settle");
const VIEW_TENANT: Sql = sql::TENANT.named("view_tenant");

#[async_trait]
impl Tenants for PostgresStore {
    async fn set_tenant(
        &self,
        tenant: &Tenant,
        settings: TenantSettings,
    ) -> Result<(), StoreError> {
        settings.check()?;
        let names = vec![tenant.as_str()];
        let rows = self.query_once(Role::Work, READ_TENANTS_BY_NAME, &[&names]).await?;
        let own = rows.first().map(tenant::read_own).transpose()?.flatten();
        if own == Some(settings) {
            return Ok(());
        }
        self.with_retries(|| self.set_tenant_once(tenant, settings)).await
    }

    async fn set_default_tenant(&self, settings: TenantSettings) -> Result<(), StoreError> {
        settings.check()?;
        let rows = self.query_once(Role::Work, READ_DEFAULT_TENANT, &[]).await?;
        let now = default_tenant(&rows)?;
        let mut is_left = now.settle_from.is_some();
        if now.settings != settings {
            is_left = self.with_retries(|| self.change_default_once(settings)).await?;
        }
        while is_left {
            is_left = self.with_retries(|| self.settle_once()).await?;
        }
        Ok(())
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
        let beliefs = self.shared.beliefs();
        let numbers = self.tenant_nos(asked).await?;
        let too_many = || StoreError::from(FairError::TooManyTenants);
        let tenant_no = numbers.get(tenant).copied().ok_or_else(too_many)?;
        let session = self.unopened(Role::Work).await?;
        let ids = self.shared.ids_by(&session, self.beliefs_since(beliefs));
        ids.open_serving().await?;
        let number = int32(tenant_no);
        // Waits for transactions that counted by the old settings.
        session.run(LOCK_TENANTS, &[&vec![number]]).await?;
        let (weight, tasks_max) = (int32(settings.weight), settings.tasks_max.map(int32));
        session.run(SET_TENANT, &[&number, &weight, &tasks_max]).await?;
        let queues = self.shared.queues(&session);
        queues.apply_settings(&[number], usize::MAX).await?;
        let learned = queues.learned();
        self.commit_session(session).await?;
        Ok(Done::telling((), Hint::Ready, learned))
    }

    /// Writes another default. Says whether it is still to be applied to tenants.
    async fn change_default_once(&self, settings: TenantSettings) -> PgResult<Done<bool>> {
        let session = self.begin(Role::Work).await?;
        let before = default_tenant(&session.all(LOCK_DEFAULT_TENANT, &[]).await?)?;
        let moves_tasks = settings.moves_tasks(before.settings);
        let settle_from = if moves_tasks { Some(0) } else { before.settle_from };
        let (weight, tasks_max) = (int32(settings.weight), settings.tasks_max.map(int32));
        session.run(SET_DEFAULT_TENANT, &[&weight, &tasks_max, &settle_from]).await?;
        self.commit_session(session).await?;
        Ok(Done::quiet(settle_from.is_some()))
    }

    /// Applies the default to the next tenants. Says whether there are more.
    ///
    /// Who counted a tenant's tasks by the former default holds that tenant, and is waited for;
    /// who comes later reads the new one.
    async fn settle_once(&self) -> PgResult<Done<bool>> {
        let session = self.begin(Role::Work).await?;
        self.shared.ids(&session).lock_serving_shared().await?;
        let default = default_tenant(&session.all(LOCK_DEFAULT_TENANT, &[]).await?)?;
        let queues = self.shared.queues(&session);
        let mut next = None;
        if let Some(from) = default.settle_from {
            let n_max = rows_max(SETTLED_TENANTS_MAX);
            let rows = session.all(TENANTS_TO_SETTLE, &[&from, &n_max]).await?;
            let tenants: Vec<i32> = read_all(&rows, tenant::read_int)?;
            let is_last = tenants.len() < SETTLED_TENANTS_MAX;
            let n_settled = queues.apply_settings(&tenants, SETTLED_TASKS_MAX).await?;
            next = match tenants.get(n_settled) {
                Some(unsettled) => Some(*unsettled),
                None if is_last => None,
                None => tenants.last().map(|last| last + 1),
            };
            session.run(SET_SETTLE_FROM, &[&next]).await?;
        }
        let learned = queues.learned();
        self.commit_session(session).await?;
        Ok(Done::telling(next.is_some(), Hint::Ready, learned))
    }
}

fn default_tenant(rows: &[Row]) -> PgResult<DefaultTenant> {
    let row = rows.first().ok_or_else(|| corrupt("the default of tenants is missing"))?;
    Ok(tenant::read_default(row)?)
}
