//! What a place in a queue depends on: tenants, where they stand, and how far queues were served.

use rusqlite::{Row, params};
use stepwell_core::fair::{Position, group};
use stepwell_core::id::{DefinitionId, Queue, Tenant};

use super::book::{QueueBook, TenantRow};
use super::error::corrupt;
use super::rows::{count, int, unsigned};
use super::statements;
use super::transaction::Transaction;
use crate::ports::{StoreError, TenantSettings};

/// A tenant from its row.
pub(super) fn tenant_row(row: &Row<'_>) -> Result<TenantRow, StoreError> {
    let has_own: bool = row.get(2)?;
    let settings = TenantSettings { weight: count(row, 3)?, tasks_max: row.get(4)? };
    Ok(TenantRow {
        group: count(row, 0)?,
        own: has_own.then_some(settings),
        n_ready: count(row, 5)?,
        n_running: count(row, 6)?,
        holds_back: None,
    })
}

impl Transaction<'_, '_> {
    /// The group of a tenant, which is stored when it is first seen.
    pub(super) fn group(&mut self, name: &Tenant) -> Result<u32, StoreError> {
        if let Some(known) = self.book.groups.get(name) {
            return Ok(*known);
        }
        let found = self.first(statements::FIND_TENANT, [name.as_str()], |row| count(row, 0))?;
        let known = if let Some(known) = found {
            known
        } else {
            let n_tenants = self.first(statements::COUNT_TENANTS, [], |row| count(row, 0))?;
            let group = group(n_tenants.unwrap_or(0) as usize)?;
            self.run(statements::INSERT_TENANT, params![group.0, name.as_str()])?;
            group.0
        };
        self.book.groups.insert(name.clone(), known);
        Ok(known)
    }

    pub(super) fn tenant_mut(&mut self, group: u32) -> Result<&mut TenantRow, StoreError> {
        if !self.book.tenants.contains_key(&group) {
            let row = self.first(statements::READ_TENANT, [group], tenant_row)?;
            let row = row.ok_or_else(|| corrupt(format!("tenant {group} is missing")))?;
            self.book.tenants.insert(group, row);
        }
        self.book.tenants.get_mut(&group).ok_or_else(|| corrupt("a tenant is missing"))
    }

    /// The settings that hold for a tenant.
    pub(super) fn settings(&mut self, group: u32) -> Result<TenantSettings, StoreError> {
        let defaults = self.book.counters().defaults;
        Ok(self.tenant_mut(group)?.own.unwrap_or(defaults))
    }

    pub(super) fn has_room(&mut self, group: u32) -> Result<bool, StoreError> {
        let limit = self.settings(group)?.tasks_max;
        let tenant = self.tenant_mut(group)?;
        Ok(limit.is_none_or(|limit| tenant.n_ready + tenant.n_running < limit))
    }

    /// Counts tasks of a tenant that became ready or running, or no longer are.
    pub(super) fn count_admitted(
        &mut self,
        group: u32,
        ready: i32,
        running: i32,
    ) -> Result<(), StoreError> {
        let tenant = self.tenant_mut(group)?;
        let n_ready = tenant.n_ready.checked_add_signed(ready);
        let n_running = tenant.n_running.checked_add_signed(running);
        let counts = n_ready.zip(n_running);
        let below = || corrupt(format!("the tasks of tenant {group} count below zero"));
        (tenant.n_ready, tenant.n_running) = counts.ok_or_else(below)?;
        self.book.tenants_changed.insert(group);
        Ok(())
    }

    fn queue_book(&mut self, queue: &Queue) -> &mut QueueBook {
        if !self.book.queues.contains_key(queue) {
            self.book.queues.insert(queue.clone(), QueueBook::default());
        }
        self.book.queues.get_mut(queue).expect("it was just put there")
    }

    /// Whether a live worker serves a queue and definition.
    pub(super) fn is_served(
        &mut self,
        queue: &Queue,
        definition: DefinitionId,
    ) -> Result<bool, StoreError> {
        if let Some(known) = self.queue_book(queue).served.get(&definition) {
            return Ok(*known);
        }
        let lot = params![queue.as_str(), definition.0];
        let is_served = self.first(statements::IS_SERVED, lot, |_| Ok(()))?.is_some();
        self.queue_book(queue).served.insert(definition, is_served);
        Ok(is_served)
    }

    /// The last position of a tenant in a queue.
    pub(super) fn standing(
        &mut self,
        group: u32,
        queue: &Queue,
    ) -> Result<Option<Position>, StoreError> {
        if let Some(known) = self.queue_book(queue).standings.get(&group) {
            return Ok(*known);
        }
        let read = |row: &Row<'_>| unsigned(row, 0).map(Position);
        let found = self.first(statements::READ_STANDING, params![group, queue.as_str()], read)?;
        self.queue_book(queue).standings.insert(group, found);
        Ok(found)
    }

    pub(super) fn set_standing(&mut self, group: u32, queue: &Queue, last: Position) {
        let book = self.queue_book(queue);
        book.standings.insert(group, Some(last));
        book.standings_changed.insert(group);
    }

    /// The greatest position taken from a queue.
    pub(super) fn frontier(&mut self, queue: &Queue) -> Result<Position, StoreError> {
        if let Some(known) = self.queue_book(queue).frontier {
            return Ok(known);
        }
        let read = |row: &Row<'_>| unsigned(row, 0).map(Position);
        let found = self.first(statements::READ_FRONTIER, [queue.as_str()], read)?;
        let frontier = found.unwrap_or_default();
        self.queue_book(queue).frontier = Some(frontier);
        Ok(frontier)
    }

    pub(super) fn set_frontier(&mut self, queue: &Queue, frontier: Position) {
        let book = self.queue_book(queue);
        (book.frontier, book.is_moved) = (Some(frontier), true);
    }

    /// Writes what has changed here.
    pub(super) fn write_line(&mut self) -> Result<(), StoreError> {
        let file = self.file;
        for group in std::mem::take(&mut self.book.tenants_changed) {
            if let Some(tenant) = self.book.tenants.get(&group) {
                let row = [tenant.group, tenant.n_ready, tenant.n_running];
                file.run(statements::SET_ADMITTED, row)?;
            }
        }
        for (queue, book) in &mut self.book.queues {
            if std::mem::take(&mut book.is_moved) {
                let frontier = book.frontier.unwrap_or_default();
                file.run(statements::SET_FRONTIER, params![queue.as_str(), int(frontier.0)])?;
            }
            for group in std::mem::take(&mut book.standings_changed) {
                if let Some(Some(last)) = book.standings.get(&group) {
                    let row = params![group, queue.as_str(), int(last.0)];
                    file.run(statements::SET_STANDING, row)?;
                }
            }
        }
        Ok(())
    }
}
