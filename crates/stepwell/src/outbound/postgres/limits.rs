//! Limits of tenants: slots are counted under the tenant's lock, never guessed.

use std::collections::{BTreeMap, BTreeSet};

use stepwell_core::id::{Node, RunKey};
use tokio_postgres::Row;
use uuid::Uuid;

use super::error::conflict;
use super::line::queued;
use super::rows::{self, count, int32, key, node, run_key, unsigned};
use super::statements;
use super::transaction::Transaction;
use crate::ports::{StoreError, TenantSettings};

/// How much room tenants have, by group.
pub(super) struct Room(BTreeMap<u32, Tenant>);

struct Tenant {
    settings: TenantSettings,
    /// Slots left; `None` without a limit.
    left: Option<u64>,
}

impl Room {
    /// Room without end, for tenants without limits.
    pub(super) fn without_limits(tenants: BTreeMap<u32, TenantSettings>) -> Self {
        let tenant = |(group, settings)| (group, Tenant { settings, left: None });
        Self(tenants.into_iter().map(tenant).collect())
    }

    /// Takes a slot, if there is one.
    pub(super) fn take(&mut self, group: u32) -> bool {
        match self.0.get_mut(&group).and_then(|tenant| tenant.left.as_mut()) {
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
            None => true,
        }
    }

    pub(super) fn is_limited(&self, group: u32) -> bool {
        self.0.get(&group).is_some_and(|tenant| tenant.left.is_some())
    }

    pub(super) fn weight(&self, group: u32) -> u32 {
        self.0.get(&group).map_or(1, |tenant| tenant.settings.weight)
    }

    fn left(&self, group: u32) -> Option<u64> {
        self.0.get(&group).and_then(|tenant| tenant.left)
    }
}

fn settings(row: &Row) -> Result<(u32, TenantSettings), StoreError> {
    let tasks_max: Option<i32> = row.try_get(3)?;
    let tasks_max = tasks_max.map(i32::unsigned_abs);
    Ok((count(row, 0)?, TenantSettings { weight: count(row, 2)?, tasks_max }))
}

impl Transaction {
    /// How much room tenants have. Those with a limit are locked until the commit, in order, and
    /// counted afterwards; the settings of the others are held still.
    pub(super) async fn room(&self, groups: impl Iterator<Item = u32>) -> Result<Room, StoreError> {
        let groups: BTreeSet<i32> = groups.map(int32).collect();
        let groups: Vec<i32> = groups.into_iter().collect();
        let tenants = self.settings(&groups).await?;
        let is_limited = |settings: &TenantSettings| settings.tasks_max.is_some();
        self.remember_limits(&tenants);
        let (limited, free): (Vec<_>, Vec<_>) =
            tenants.iter().partition(|(_, settings)| is_limited(settings));
        let groups_of = |tenants: &[(&u32, &TenantSettings)]| -> Vec<i32> {
            tenants.iter().map(|(group, _)| int32(**group)).collect()
        };
        self.all(statements::SHARE_TENANTS, &[&groups_of(&free)]).await?;
        let counts = self.count_slots(&groups_of(&limited)).await?;
        // Read again after the locks: somebody may have changed them while we waited.
        if self.settings(&groups).await? != tenants {
            return Err(conflict("a tenant's settings changed"));
        }
        let tenant = |(group, settings): (&u32, &TenantSettings)| {
            let taken = counts.get(group).copied().unwrap_or(0);
            let left = settings.tasks_max.map(|max| u64::from(max).saturating_sub(taken));
            (*group, Tenant { settings: *settings, left })
        };
        Ok(Room(tenants.iter().map(tenant).collect()))
    }

    pub(super) async fn settings(
        &self,
        groups: &[i32],
    ) -> Result<BTreeMap<u32, TenantSettings>, StoreError> {
        let rows = self.all(statements::READ_TENANTS, &[&groups]).await?;
        rows.iter().map(settings).collect()
    }

    /// The next transaction knows better which way to go.
    fn remember_limits(&self, tenants: &BTreeMap<u32, TenantSettings>) {
        let mut limited = self.limited();
        for (group, settings) in tenants {
            if settings.tasks_max.is_some() {
                limited.insert(*group);
            } else {
                limited.remove(group);
            }
        }
    }

    async fn count_slots(&self, limited: &[i32]) -> Result<BTreeMap<u32, u64>, StoreError> {
        if limited.is_empty() {
            return Ok(BTreeMap::new());
        }
        self.run(statements::HOLD_TENANTS, &[&limited]).await?;
        let rows = self.all(statements::COUNT_ADMITTED, &[&limited]).await?;
        rows.iter().map(|row| Ok((count(row, 0)?, unsigned(row, 1)?))).collect()
    }

    /// Slots that came free go to tasks of the same tenants that were held back.
    pub(super) async fn free_slots(&mut self, gone: &[(RunKey, Node)]) -> Result<(), StoreError> {
        if gone.is_empty() {
            return Ok(());
        }
        let runs: Vec<Uuid> = gone.iter().map(|(run, _)| key(*run)).collect();
        let nodes: Vec<i32> = gone.iter().map(|(_, node)| int32(node.0)).collect();
        let freed = self.all(statements::FREE_ADMITTED, &[&runs, &nodes]).await?;
        let groups: BTreeSet<u32> =
            freed.iter().map(|row| count(row, 0)).collect::<Result<_, _>>()?;
        for group in groups {
            self.fill(group).await?;
        }
        Ok(())
    }

    /// Lets held-back tasks of a tenant in, as far as its limit allows, oldest first.
    pub(super) async fn fill(&mut self, group: u32) -> Result<(), StoreError> {
        loop {
            let room = self.room([group].into_iter()).await?;
            let n = room.left(group).map_or(i64::from(i32::MAX), rows::int);
            let next = self.all(statements::NEXT_THROTTLED, &[&int32(group), &n]).await?;
            if next.is_empty() {
                return Ok(());
            }
            let mut next = rows::read_all(&next, queued)?;
            next.sort_by_key(|task| task.number);
            // Some may be parked instead and leave room for more.
            Box::pin(self.enqueue(next)).await?;
        }
    }

    /// Counts a tenant's slots anew after its settings changed, and takes the youngest ready
    /// tasks back behind a lowered limit.
    pub(super) async fn resettle(&mut self, group: u32) -> Result<(), StoreError> {
        let number = int32(group);
        self.run(statements::LOCK_TENANTS, &[&vec![number]]).await?;
        let tenant = self.all(statements::READ_TENANTS, &[&vec![number]]).await?;
        let Some(row) = tenant.first() else { return Ok(()) };
        let (_, settings) = settings(row)?;
        let Some(max) = settings.tasks_max else {
            self.run(statements::FORGET_ADMITTED, &[&number]).await?;
            return self.fill(group).await;
        };
        self.run(statements::ADMIT_EXISTING, &[&number]).await?;
        let counts = self.count_slots(&[number]).await?;
        let taken = counts.get(&group).copied().unwrap_or(0);
        let surplus = rows::int(taken.saturating_sub(u64::from(max)));
        let youngest = self.all(statements::YOUNGEST_READY, &[&number, &surplus]).await?;
        let read = |row: &Row| Ok((key(run_key(row, 0)?), int32(node(row, 1)?.0)));
        let (runs, nodes): (Vec<Uuid>, Vec<i32>) =
            rows::read_all(&youngest, read)?.into_iter().unzip();
        let withdrawn = self.all(statements::TAKE_READY, &[&runs, &nodes]).await?;
        let withdrawn = rows::read_all(&withdrawn, queued)?;
        self.give_back(&withdrawn).await?;
        self.all(statements::FREE_ADMITTED, &[&runs, &nodes]).await?;
        self.hold_back(&withdrawn).await?;
        self.fill(group).await
    }
}
