//! Whether the tenants of starts still get positions in queues.
//!
//! A start finds out when it enqueues its first tasks, after everything else was written. It is
//! tried again then, and whoever has no room is refused before anything of it is stored.

use std::collections::{BTreeMap, BTreeSet};

use stepwell_core::id::Queue;
use stepwell_core::queue::{TenantNo, TenantPosition};

use super::super::rows::int32;
use super::super::rows::position::TenantInQueue;
use super::super::session::PgResult;
use super::QueueSet;
use super::positions::read_positions;

/// Room for starts.
#[derive(Default)]
pub(crate) struct RoomForStarts {
    /// Which starts have none, by their place.
    pub(crate) refused: BTreeSet<usize>,
    /// Tenants that have positions left after all.
    pub(crate) not_full: Vec<TenantInQueue>,
}

impl QueueSet<'_> {
    /// Looks for room for starts, each with its tenant and the queues of its first tasks, where
    /// queues are taken to be full.
    pub(crate) async fn look_for_room(
        &self,
        starts: &[(u32, BTreeSet<Queue>)],
    ) -> PgResult<RoomForStarts> {
        let places = |(no, queues): &(u32, BTreeSet<Queue>)| -> Vec<TenantInQueue> {
            queues.iter().map(|queue| (*no, queue.clone())).collect()
        };
        let suspected = starts.iter().flat_map(places);
        let suspected: BTreeSet<TenantInQueue> =
            suspected.filter(|tenant| self.guesses.is_full(tenant)).collect();
        if suspected.is_empty() {
            return Ok(RoomForStarts::default());
        }
        let mut positions = self.positions_of(&suspected).await?;
        let mut room = RoomForStarts::default();
        let mut full: BTreeSet<TenantInQueue> = BTreeSet::new();
        for (ix, start) in starts.iter().enumerate() {
            let asked = places(start);
            let is_full =
                |place: &&TenantInQueue| positions.get(place).is_some_and(|at| at.check().is_err());
            let without_room: Vec<&TenantInQueue> = asked.iter().filter(is_full).collect();
            if !without_room.is_empty() {
                room.refused.insert(ix);
                full.extend(without_room.into_iter().cloned());
                continue;
            }
            for place in &asked {
                if let Some(at) = positions.get_mut(place) {
                    at.take(TenantNo(place.0));
                }
            }
        }
        room.not_full = suspected.difference(&full).cloned().collect();
        Ok(room)
    }

    /// Where tenants stand in queues. Nothing is locked: if others take the last positions
    /// meanwhile, the start is tried once more.
    async fn positions_of(
        &self,
        tenants: &BTreeSet<TenantInQueue>,
    ) -> PgResult<BTreeMap<TenantInQueue, TenantPosition>> {
        let numbers: BTreeSet<i32> = tenants.iter().map(|(no, _)| int32(*no)).collect();
        let settings = self.settings(&numbers.into_iter().collect::<Vec<_>>()).await?;
        let last = read_positions(self.session, tenants).await?;
        let frontiers = self.frontiers(tenants).await?;
        let position = |tenant: &TenantInQueue| TenantPosition {
            frontier: frontiers.get(&tenant.1).copied().unwrap_or_default(),
            last: last.get(tenant).copied().flatten(),
            weight: settings.get(&tenant.0).map_or(1, |settings| settings.weight),
        };
        Ok(tenants.iter().map(|tenant| (tenant.clone(), position(tenant))).collect())
    }
}
