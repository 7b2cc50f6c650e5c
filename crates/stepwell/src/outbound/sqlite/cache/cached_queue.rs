//! What a place in a queue depends on: who serves the queue, how far it was served, and where
//! tenants stand in it.

use std::collections::{BTreeMap, BTreeSet};

use stepwell_core::id::{Queue, ServiceId};
use stepwell_core::queue::{Position, TenantNo};

use crate::outbound::sqlite::file::File;
use crate::outbound::sqlite::rows;
use crate::ports::StoreError;

/// What is known of one queue.
#[derive(Default)]
struct CachedQueue {
    frontier: Option<Position>,
    is_moved: bool,
    /// The last position of each tenant.
    positions: BTreeMap<TenantNo, Option<Position>>,
    positions_changed: BTreeSet<TenantNo>,
    served: BTreeMap<ServiceId, bool>,
}

/// Queues by name.
#[derive(Default)]
pub(crate) struct CachedQueues(BTreeMap<Queue, CachedQueue>);

impl CachedQueues {
    fn of(&mut self, queue: &Queue) -> &mut CachedQueue {
        if !self.0.contains_key(queue) {
            self.0.insert(queue.clone(), CachedQueue::default());
        }
        self.0.get_mut(queue).expect("it was just inserted")
    }

    /// Whether a live worker has a service in a queue.
    pub(crate) fn is_served(
        &mut self,
        file: File<'_, '_>,
        queue: &Queue,
        service: ServiceId,
    ) -> Result<bool, StoreError> {
        let cached = self.of(queue);
        if let Some(known) = cached.served.get(&service) {
            return Ok(*known);
        }
        let is_served = rows::worker::is_served(file, queue, service)?;
        cached.served.insert(service, is_served);
        Ok(is_served)
    }

    /// Which worker serves what is about to change.
    pub(crate) fn forget_service(&mut self) {
        for queue in self.0.values_mut() {
            queue.served.clear();
        }
    }

    /// The last position of a tenant in a queue.
    pub(crate) fn last_position(
        &mut self,
        file: File<'_, '_>,
        tenant_no: TenantNo,
        queue: &Queue,
    ) -> Result<Option<Position>, StoreError> {
        let cached = self.of(queue);
        if let Some(known) = cached.positions.get(&tenant_no) {
            return Ok(*known);
        }
        let found = rows::queue::position(file, tenant_no, queue)?;
        cached.positions.insert(tenant_no, found);
        Ok(found)
    }

    pub(crate) fn set_last_position(&mut self, tenant_no: TenantNo, queue: &Queue, last: Position) {
        let cached = self.of(queue);
        cached.positions.insert(tenant_no, Some(last));
        cached.positions_changed.insert(tenant_no);
    }

    /// The greatest position that was taken from a queue.
    pub(crate) fn frontier(
        &mut self,
        file: File<'_, '_>,
        queue: &Queue,
    ) -> Result<Position, StoreError> {
        let cached = self.of(queue);
        if let Some(known) = cached.frontier {
            return Ok(known);
        }
        let frontier = rows::queue::frontier(file, queue)?.unwrap_or_default();
        cached.frontier = Some(frontier);
        Ok(frontier)
    }

    /// Moves the frontier on to a position that was taken. It never goes back.
    pub(crate) fn advance_frontier(
        &mut self,
        file: File<'_, '_>,
        queue: &Queue,
        taken: Position,
    ) -> Result<(), StoreError> {
        if self.frontier(file, queue)? < taken {
            let cached = self.of(queue);
            (cached.frontier, cached.is_moved) = (Some(taken), true);
        }
        Ok(())
    }

    /// Writes frontiers and positions that changed.
    pub(crate) fn write(&mut self, file: File<'_, '_>) -> Result<(), StoreError> {
        for (queue, cached) in &mut self.0 {
            if std::mem::take(&mut cached.is_moved) {
                let frontier = cached.frontier.unwrap_or_default();
                rows::queue::set_frontier(file, queue, frontier)?;
            }
            for tenant_no in std::mem::take(&mut cached.positions_changed) {
                if let Some(Some(last)) = cached.positions.get(&tenant_no) {
                    rows::queue::set_position(file, tenant_no, queue, *last)?;
                }
            }
        }
        Ok(())
    }
}
