use async_trait::async_trait;
use stepwell_core::fair::Group;
use stepwell_core::id::Tenant;
use tokio_postgres::Row;

use super::rows::{self, count, int32, unsigned};
use super::{PostgresStore, statements};
use crate::ports::{Hint, StoreError, TenantSettings, TenantView, Tenants};

#[async_trait]
impl Tenants for PostgresStore {
    async fn set_tenant(
        &self,
        tenant: &Tenant,
        settings: TenantSettings,
    ) -> Result<(), StoreError> {
        settings.check()?;
        self.with_retries(|| self.set_once(tenant, settings)).await
    }

    async fn set_default_tenant(&self, settings: TenantSettings) -> Result<(), StoreError> {
        settings.check()?;
        self.with_retries(|| self.set_default_once(settings)).await
    }

    async fn tenant(&self, tenant: &Tenant) -> Result<Option<TenantView>, StoreError> {
        let transaction = self.begin().await?;
        let row = transaction.one(statements::VIEW_TENANT, &[&tenant.as_str()]).await?;
        let view = row.map(|row| view(&row)).transpose()?;
        self.commit_transaction(transaction).await?;
        Ok(view)
    }
}

impl PostgresStore {
    async fn set_once(&self, tenant: &Tenant, settings: TenantSettings) -> Result<(), StoreError> {
        let groups = self.groups(std::slice::from_ref(tenant)).await?;
        let group = groups.get(tenant).copied().unwrap_or_default();
        let mut transaction = self.begin().await?;
        transaction.share_service().await?;
        let number = int32(group);
        // Waits for transactions that counted by the old settings.
        transaction.run(statements::LOCK_TENANTS, &[&vec![number]]).await?;
        let (weight, tasks_max) = (int32(settings.weight), settings.tasks_max.map(int32));
        transaction.run(statements::SET_TENANT, &[&number, &weight, &tasks_max]).await?;
        transaction.resettle(group).await?;
        transaction.earn(Hint::Ready);
        self.commit_transaction(transaction).await
    }

    async fn set_default_once(&self, settings: TenantSettings) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        transaction.share_service().await?;
        // No tenant may appear between the look and the locks.
        transaction.run(statements::LOCK_TENANT_TABLE, &[]).await?;
        let all = transaction.all(statements::ALL_TENANTS, &[]).await?;
        let groups: Vec<i32> = rows::read_all(&all, |row| Ok(row.try_get(0)?))?;
        transaction.run(statements::LOCK_TENANTS, &[&groups]).await?;
        let (weight, tasks_max) = (int32(settings.weight), settings.tasks_max.map(int32));
        transaction.run(statements::SET_DEFAULT_TENANT, &[&weight, &tasks_max]).await?;
        for group in groups {
            transaction.resettle(group.unsigned_abs()).await?;
        }
        transaction.earn(Hint::Ready);
        self.commit_transaction(transaction).await
    }
}

fn view(row: &Row) -> Result<TenantView, StoreError> {
    let tasks_max: Option<i32> = row.try_get(2)?;
    let size = |column| unsigned(row, column).map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    Ok(TenantView {
        group: Group(count(row, 0)?),
        settings: TenantSettings {
            weight: count(row, 1)?,
            tasks_max: tasks_max.map(i32::unsigned_abs),
        },
        n_ready: size(3)?,
        n_running: size(4)?,
        n_throttled: size(5)?,
        n_parked: size(6)?,
    })
}
