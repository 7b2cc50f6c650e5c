//! Tenants: weights and limits.

use async_trait::async_trait;
use stepwell_core::code::Code;
use stepwell_core::id::Tenant;
use stepwell_core::limits::{TENANT_TASKS_MAX, WEIGHT_MAX};
use stepwell_core::queue::TenantNo;

use super::StoreError;

/// How a tenant is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TenantSettings {
    /// Its share relative to others, 1 up to 1,000.
    pub weight: u32,
    /// Most of its tasks that may be ready or running at once, 1 up to 2,147,483,647; `None` for no
    /// limit.
    pub tasks_max: Option<u32>,
}

impl Default for TenantSettings {
    fn default() -> Self {
        Self { weight: 1, tasks_max: None }
    }
}

impl TenantSettings {
    /// Refuses what makes no sense.
    pub(crate) fn check(self) -> Result<(), StoreError> {
        self.refusal()
            .map_or(Ok(()), |message| Err(StoreError::Refused { code: Code::BadConfig, message }))
    }

    /// What makes no sense, and what would.
    pub(crate) fn refusal(self) -> Option<String> {
        let Self { weight, tasks_max } = self;
        match tasks_max {
            _ if !(1..=WEIGHT_MAX).contains(&weight) => {
                Some(format!("weight is {weight}, it must be 1 to {WEIGHT_MAX}"))
            }
            Some(0) => {
                Some("tasks_max is 0, nothing would ever run; leave it out for no limit".to_owned())
            }
            Some(n) if n > TENANT_TASKS_MAX => Some(format!(
                "tasks_max is {n}, the greatest is {TENANT_TASKS_MAX}; leave it out for no limit"
            )),
            _ => None,
        }
    }
}

/// Most tenants to which another default is applied in one transaction.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) const SETTLED_TENANTS_MAX: usize = 100;

/// With this many tasks moved, another default waits for the next transaction with the remaining
/// tenants.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) const SETTLED_TASKS_MAX: usize = 1_000;

impl TenantSettings {
    /// Whether tasks have to move when these settings follow others: a weight holds for what comes.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) fn moves_tasks(self, before: Self) -> bool {
        self.tasks_max != before.tasks_max
    }

    /// What holds for a tenant: its own settings, or the defaults.
    pub(crate) fn in_force(own: Option<Self>, defaults: Self) -> Self {
        own.unwrap_or(defaults)
    }

    /// How many more tasks may be ready or running; `None` without a limit.
    pub(crate) fn room_left(self, n_admitted: u64) -> Option<u64> {
        self.tasks_max.map(|limit| u64::from(limit).saturating_sub(n_admitted))
    }
}

/// A tenant and its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TenantView {
    /// Its number.
    pub tenant_no: TenantNo,
    /// The settings in force.
    pub settings: TenantSettings,
    /// Its tasks in queues.
    pub n_ready: usize,
    /// Its tasks under claims.
    pub n_running: usize,
    /// Its tasks held back by the limit.
    pub n_throttled: usize,
    /// Its tasks that no live worker serves.
    pub n_parked: usize,
}

/// Keeps tenants.
#[async_trait]
pub trait Tenants {
    /// Sets a tenant's weight and limit, at once: a raised limit lets held-back tasks into their
    /// queues, a lowered one takes the last ready ones back. Tasks that already run go on. Settings
    /// that it has already are not written again.
    async fn set_tenant(&self, tenant: &Tenant, settings: TenantSettings)
    -> Result<(), StoreError>;

    /// Sets what holds for tenants without settings of their own. What holds already is not written
    /// again. Another limit is applied to so many tenants at a time; if the caller goes meanwhile,
    /// the next call for whatever default goes on with the rest.
    async fn set_default_tenant(&self, settings: TenantSettings) -> Result<(), StoreError>;

    /// A tenant the store has seen.
    async fn tenant(&self, tenant: &Tenant) -> Result<Option<TenantView>, StoreError>;
}
