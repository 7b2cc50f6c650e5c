//! Where queued tasks wait: in a queue, behind a limit, or for a worker that serves them.

use rusqlite::{Row, params};
use stepwell_core::fair::{
    Group, POSITION_MAX, Position, last_after_cancel, next_position, order_key, stride,
};
use stepwell_core::id::{DefinitionId, Node, Queue, RunKey};

use super::error::corrupt;
use super::rows::{self, count, int, key, name, node, run_key, unsigned};
use super::statements;
use super::transaction::Transaction;
use crate::ports::{StoreError, TenantSettings};

/// A task that waits to be claimed.
#[derive(Clone, Debug)]
pub(super) struct Queued {
    /// Its place in the order of arrival.
    pub(super) number: u64,
    pub(super) run: RunKey,
    pub(super) node: Node,
    pub(super) group: u32,
    pub(super) queue: Queue,
    pub(super) definition: DefinitionId,
    pub(super) losses: u32,
}

/// A tenant's row.
pub(super) struct TenantRow {
    pub(super) group: u32,
    pub(super) settings: TenantSettings,
    pub(super) n_ready: u32,
    pub(super) n_running: u32,
}

impl TenantRow {
    fn has_room(&self) -> bool {
        self.settings.tasks_max.is_none_or(|limit| self.n_ready + self.n_running < limit)
    }
}

impl Transaction<'_> {
    pub(super) fn next_number(&self) -> Result<u64, StoreError> {
        let number = self.first(statements::TAKE_COUNTER, [1, 0, 0], |row| unsigned(row, 0))?;
        number.ok_or_else(|| corrupt("the counters are missing"))
    }

    pub(super) fn defaults(&self) -> Result<TenantSettings, StoreError> {
        let read =
            |row: &Row<'_>| Ok(TenantSettings { weight: count(row, 0)?, tasks_max: row.get(1)? });
        let defaults = self.first(statements::READ_DEFAULTS, [], read)?;
        defaults.ok_or_else(|| corrupt("the counters are missing"))
    }

    pub(super) fn read_tenant_row(&self, row: &Row<'_>) -> Result<TenantRow, StoreError> {
        let has_own: bool = row.get(2)?;
        let settings = if has_own {
            TenantSettings { weight: count(row, 3)?, tasks_max: row.get(4)? }
        } else {
            self.defaults()?
        };
        Ok(TenantRow {
            group: count(row, 0)?,
            settings,
            n_ready: count(row, 5)?,
            n_running: count(row, 6)?,
        })
    }

    pub(super) fn tenant_row(&self, group: u32) -> Result<TenantRow, StoreError> {
        let row = self.first(statements::READ_TENANT, [group], |row| self.read_tenant_row(row))?;
        row.ok_or_else(|| corrupt(format!("tenant {group} is missing")))
    }

    fn count_admitted(&self, group: u32, ready: i64, running: i64) -> Result<(), StoreError> {
        self.run(statements::COUNT_ADMITTED, params![group, ready, running])?;
        Ok(())
    }

    /// Lets a task wait where it belongs: parked if nobody serves it, held back if its tenant is
    /// at its limit, else in its queue.
    pub(super) fn put(&mut self, task: Queued) -> Result<(), StoreError> {
        let lot = params![task.queue.as_str(), task.definition.0];
        let is_served = self.first(statements::IS_SERVED, lot, |_| Ok(()))?.is_some();
        if !is_served {
            self.run(
                statements::INSERT_PARKED,
                params![
                    task.queue.as_str(),
                    task.definition.0,
                    int(task.number),
                    task.group,
                    task.losses,
                    key(task.run),
                    task.node.0,
                ],
            )?;
            return Ok(());
        }
        let tenant = self.tenant_row(task.group)?;
        if tenant.has_room() { self.admit(&task, &tenant) } else { self.hold_back(&task) }
    }

    fn hold_back(&self, task: &Queued) -> Result<(), StoreError> {
        self.run(
            statements::INSERT_THROTTLED,
            params![
                task.group,
                int(task.number),
                task.queue.as_str(),
                task.definition.0,
                task.losses,
                key(task.run),
                task.node.0,
            ],
        )?;
        Ok(())
    }

    /// Puts a task into its queue at its tenant's next position. Starts are refused before the
    /// positions are used up; what is already under way shares the last one, in order of arrival.
    fn admit(&self, task: &Queued, tenant: &TenantRow) -> Result<(), StoreError> {
        let last = self.standing(task.group, &task.queue)?;
        let frontier = self.frontier(&task.queue)?;
        let position = next_position(frontier, last, stride(tenant.settings.weight))
            .unwrap_or(Position(POSITION_MAX));
        let order = order_key(position, Group(task.group));
        let queue = task.queue.as_str();
        self.run(statements::SET_STANDING, params![task.group, queue, int(position.0)])?;
        self.run(
            statements::INSERT_READY,
            params![
                queue,
                int(order.0),
                int(task.number),
                int(position.0),
                task.group,
                task.definition.0,
                task.losses,
                key(task.run),
                task.node.0,
            ],
        )?;
        self.count_admitted(task.group, 1, 0)
    }

    pub(super) fn standing(
        &self,
        group: u32,
        queue: &Queue,
    ) -> Result<Option<Position>, StoreError> {
        let read = |row: &Row<'_>| unsigned(row, 0).map(Position);
        self.first(statements::READ_STANDING, params![group, queue.as_str()], read)
    }

    pub(super) fn frontier(&self, queue: &Queue) -> Result<Position, StoreError> {
        let read = |row: &Row<'_>| unsigned(row, 0).map(Position);
        Ok(self.first(statements::READ_FRONTIER, [queue.as_str()], read)?.unwrap_or_default())
    }

    /// Removes a task from its queue, to a worker or for good.
    fn take_ready(
        &self,
        run: RunKey,
        node: Node,
    ) -> Result<Option<(Queued, Position)>, StoreError> {
        self.first(statements::TAKE_READY, params![key(run), node.0], |row| {
            let task = Queued {
                queue: name(row, 0)?,
                number: unsigned(row, 2)?,
                group: count(row, 4)?,
                definition: DefinitionId(count(row, 5)?),
                losses: count(row, 6)?,
                run,
                node,
            };
            Ok((task, Position(unsigned(row, 3)?)))
        })
    }

    /// Takes a ready task to a worker and moves the frontier on.
    pub(super) fn take_to_worker(&self, run: RunKey, node: Node) -> Result<Queued, StoreError> {
        let taken = self.take_ready(run, node)?;
        let (task, position) = taken.ok_or_else(|| corrupt("a ready task went away"))?;
        let frontier = params![task.queue.as_str(), int(position.0)];
        self.run(statements::RAISE_FRONTIER, frontier)?;
        self.count_admitted(task.group, -1, 1)?;
        Ok(task)
    }

    /// Takes a ready task out of its queue without a claim and gives its position back.
    fn withdraw(&self, run: RunKey, node: Node) -> Result<Option<Queued>, StoreError> {
        let Some((task, _)) = self.take_ready(run, node)? else { return Ok(None) };
        self.count_admitted(task.group, -1, 0)?;
        let queue = task.queue.as_str();
        let greatest =
            self.first(statements::GREATEST_POSITION, params![task.group, queue], |row| {
                let position: Option<i64> = row.get(0)?;
                Ok(position.map(|position| Position(position.unsigned_abs())))
            })?;
        let last = last_after_cancel(self.frontier(&task.queue)?, greatest.flatten());
        self.run(statements::SET_STANDING, params![task.group, queue, int(last.0)])?;
        Ok(Some(task))
    }

    /// Takes cancelled tasks off, wherever they wait, and lets others into the room they leave.
    pub(super) fn cancel_queued(
        &mut self,
        run: RunKey,
        group: u32,
        nodes: &[Node],
    ) -> Result<(), StoreError> {
        for node in nodes {
            if self.withdraw(run, *node)?.is_none() {
                self.run(statements::FORGET_THROTTLED, params![key(run), node.0])?;
                self.run(statements::FORGET_PARKED, params![key(run), node.0])?;
            }
        }
        if nodes.is_empty() { Ok(()) } else { self.fill(group) }
    }

    /// A claim of the tenant ended.
    pub(super) fn free_slot(&mut self, group: u32) -> Result<(), StoreError> {
        self.count_admitted(group, 0, -1)?;
        self.fill(group)
    }

    /// Lets held-back tasks of a tenant in, as far as its limit allows, oldest first.
    pub(super) fn fill(&mut self, group: u32) -> Result<(), StoreError> {
        loop {
            let tenant = self.tenant_row(group)?;
            if !tenant.has_room() {
                return Ok(());
            }
            let next = self.first(statements::NEXT_THROTTLED, [group], |row| queued(row, group))?;
            let Some(task) = next else { return Ok(()) };
            self.put(task)?;
        }
    }

    /// Takes the youngest ready tasks of a tenant back behind its limit.
    pub(super) fn shrink(&mut self, group: u32) -> Result<(), StoreError> {
        loop {
            let tenant = self.tenant_row(group)?;
            let admitted = tenant.n_ready + tenant.n_running;
            if tenant.settings.tasks_max.is_none_or(|limit| admitted <= limit) {
                return Ok(());
            }
            let read = |row: &Row<'_>| Ok((run_key(row, 0)?, node(row, 1)?));
            let youngest = self.first(statements::YOUNGEST_READY, [group], read)?;
            let Some((run, node)) = youngest else { return Ok(()) };
            if let Some(task) = self.withdraw(run, node)? {
                self.hold_back(&task)?;
            }
        }
    }

    /// Parked tasks that are served by now come back, stamped anew, and ready ones that nobody
    /// serves any more are parked.
    pub(super) fn sort_by_service(&mut self) -> Result<(), StoreError> {
        let mut back = self.all(statements::UNPARK, [], |row| queued(row, count(row, 6)?))?;
        back.sort_by_key(|task| task.number);
        for task in back {
            self.put(task)?;
        }
        let read = |row: &Row<'_>| Ok((run_key(row, 0)?, node(row, 1)?));
        let mut groups = std::collections::BTreeSet::new();
        for (run, node) in self.all(statements::UNSERVED_READY, [], read)? {
            if let Some(task) = self.withdraw(run, node)? {
                groups.insert(task.group);
                self.put(task)?;
            }
        }
        groups.into_iter().try_for_each(|group| self.fill(group))
    }
}

/// A row of `throttled` or `parked`: number, queue, definition, losses, run, node.
fn queued(row: &Row<'_>, group: u32) -> Result<Queued, StoreError> {
    Ok(Queued {
        number: unsigned(row, 0)?,
        queue: rows::name(row, 1)?,
        definition: DefinitionId(count(row, 2)?),
        losses: count(row, 3)?,
        run: run_key(row, 4)?,
        node: node(row, 5)?,
        group,
    })
}
