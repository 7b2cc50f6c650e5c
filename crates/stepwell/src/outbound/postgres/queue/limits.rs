//! Limits of tenants: admissions are counted under the tenant's lock, never guessed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use stepwell_core::queue::{WaitsIn, waits_in};

use super::super::lookup::id_cache::READ_TENANTS;
use super::super::rows::{int32, queue, tenant};
use super::super::session::{Conflict, PgResult};
use super::super::sql::{self, Sql};
use super::QueueSet;
use crate::ports::TenantSettings;

pub(crate) const LOCK_TENANTS: Sql = sql::TENANT.named("lock_tenants");
pub(super) const SHARE_TENANTS: Sql = sql::TENANT.named("share_tenants");
const LOCK_LIMITED_TENANTS: Sql = sql::TENANT.named("lock_limited_tenants");
const COUNT_ADMITTED: Sql = sql::QUEUE.named("count_admitted");

/// The settings of tenants, by number.
pub(super) type Settings = BTreeMap<u32, TenantSettings>;

/// How much room tenants have, by number.
pub(super) struct Room(BTreeMap<u32, TenantRoom>);

struct TenantRoom {
    settings: TenantSettings,
    /// Admissions left; `None` without a limit.
    left: Option<u64>,
}

impl Room {
    /// Where a task of this tenant waits that somebody serves. One that goes into its queue takes
    /// an admission.
    pub(super) fn admit(&mut self, tenant_no: u32) -> WaitsIn {
        let left = self.0.get_mut(&tenant_no).and_then(|tenant| tenant.left.as_mut());
        let waits_in = waits_in(true, left.as_deref().copied());
        if let Some(left) = left.filter(|_| waits_in == WaitsIn::Queue) {
            *left -= 1;
        }
        waits_in
    }

    pub(super) fn is_limited(&self, tenant_no: u32) -> bool {
        self.left(tenant_no).is_some()
    }

    pub(super) fn weight(&self, tenant_no: u32) -> u32 {
        self.0.get(&tenant_no).map_or(1, |tenant| tenant.settings.weight)
    }

    pub(super) fn left(&self, tenant_no: u32) -> Option<u64> {
        self.0.get(&tenant_no).and_then(|tenant| tenant.left)
    }
}

/// Whether tenants have limits, as far as a transaction looked.
#[derive(Default)]
pub(crate) struct LimitsSeen(Mutex<Vec<(u32, bool)>>);

impl LimitsSeen {
    fn add(&self, tenants: &Settings) {
        let seen = tenants.iter().map(|(no, settings)| (*no, settings.tasks_max.is_some()));
        self.0.lock().expect("no holder of the lock panics").extend(seen);
    }

    pub(super) fn take(&self) -> Vec<(u32, bool)> {
        std::mem::take(&mut *self.0.lock().expect("no holder of the lock panics"))
    }
}

impl QueueSet<'_> {
    /// How much room tenants have. Those with a limit are locked until the commit, in order, and
    /// counted afterwards; the settings of the others are held still.
    pub(super) async fn room(&self, tenants: impl Iterator<Item = u32>) -> PgResult<Room> {
        let asked: BTreeSet<i32> = tenants.map(int32).collect();
        let asked: Vec<i32> = asked.into_iter().collect();
        let tenants = self.settings(&asked).await?;
        self.limits_seen.add(&tenants);
        let (limited, free): (Vec<_>, Vec<_>) =
            tenants.iter().partition(|(_, settings)| settings.tasks_max.is_some());
        let numbers = |tenants: &[(&u32, &TenantSettings)]| -> Vec<i32> {
            tenants.iter().map(|(no, _)| int32(**no)).collect()
        };
        self.session.all(SHARE_TENANTS, &[&numbers(&free)]).await?;
        let counts = self.count_admitted(&numbers(&limited)).await?;
        // Read again after the locks: somebody may have changed them while we waited.
        if self.settings(&asked).await? != tenants {
            return Err(Conflict::SettingsChanged.into());
        }
        let room = |(no, settings): (&u32, &TenantSettings)| {
            let left = settings.room_left(counts.get(no).copied().unwrap_or(0));
            (*no, TenantRoom { settings: *settings, left })
        };
        Ok(Room(tenants.iter().map(room).collect()))
    }

    /// The settings of tenants in force.
    pub(super) async fn settings(&self, tenants: &[i32]) -> PgResult<Settings> {
        let rows = self.session.all(READ_TENANTS, &[&tenants]).await?;
        Ok(rows.iter().map(tenant::read_settings).collect::<Result<_, _>>()?)
    }

    /// How many admissions limited tenants use, counted under their locks.
    pub(super) async fn count_admitted(&self, limited: &[i32]) -> PgResult<BTreeMap<u32, u64>> {
        if limited.is_empty() {
            return Ok(BTreeMap::new());
        }
        self.session.run(LOCK_LIMITED_TENANTS, &[&limited]).await?;
        let rows = self.session.all(COUNT_ADMITTED, &[&limited]).await?;
        Ok(rows.iter().map(queue::read_admitted_count).collect::<Result<_, _>>()?)
    }
}
