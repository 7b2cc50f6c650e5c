//! Where queued tasks wait: in a queue, behind a limit, or for a worker that serves them.

use std::collections::BTreeSet;

use rusqlite::{Row, params};
use stepwell_core::fair::{
    Group, POSITION_MAX, Position, last_after_cancel, next_position, order_key, stride,
};
use stepwell_core::id::{DefinitionId, Node, Queue, RunKey};

use super::book::Place;
use super::rows::{self, count, int, key, node, run_key, unsigned};
use super::statements;
use super::transaction::Transaction;
use crate::ports::{Hint, StoreError};

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

impl Transaction<'_, '_> {
    pub(super) fn next_number(&mut self) -> u64 {
        let counters = self.book.counters();
        counters.last_number += 1;
        counters.last_number
    }

    /// Lets a task wait where it belongs: parked if nobody serves it, held back if its tenant is
    /// at its limit, else in its queue.
    pub(super) fn put(&mut self, task: Queued) -> Result<(), StoreError> {
        if !self.is_served(&task.queue, task.definition)? {
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
        if self.has_room(task.group)? { self.admit(task) } else { self.hold_back(&task) }
    }

    fn hold_back(&mut self, task: &Queued) -> Result<(), StoreError> {
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
        self.tenant_mut(task.group)?.holds_back = Some(true);
        Ok(())
    }

    /// Puts a task into its queue at its tenant's next position. Starts are refused before the
    /// positions are used up; what is already under way shares the last one, in order of arrival.
    fn admit(&mut self, task: Queued) -> Result<(), StoreError> {
        let weight = self.settings(task.group)?.weight;
        let last = self.standing(task.group, &task.queue)?;
        let frontier = self.frontier(&task.queue)?;
        let position =
            next_position(frontier, last, stride(weight)).unwrap_or(Position(POSITION_MAX));
        self.set_standing(task.group, &task.queue, position);
        let Queued { number, run, node, group, queue, definition, .. } = task;
        let order = order_key(position, Group(group));
        let place = Place { queue, order, number, position, definition };
        self.change_task(run, node)?.place = Some(place);
        match &mut self.book.joined {
            Some(joined) => joined.push((run, node)),
            None => self.earn(Hint::Ready),
        }
        self.count_admitted(group, 1, 0)
    }

    /// A task went to a worker: moves the frontier on.
    pub(super) fn dequeued(&mut self, group: u32, place: &Place) -> Result<(), StoreError> {
        if self.frontier(&place.queue)? < place.position {
            self.set_frontier(&place.queue, place.position);
        }
        self.count_admitted(group, -1, 1)
    }

    /// Takes ready tasks out of their queues without a claim and gives their positions back.
    /// Tasks that stand in no queue are left out.
    fn withdraw(&mut self, tasks: &[(RunKey, Node)]) -> Result<Vec<Queued>, StoreError> {
        let (mut withdrawn, mut lines) = (Vec::new(), BTreeSet::new());
        for (run, node) in tasks {
            let Some(task) = self.held_task(*run, *node)?.filter(|task| task.place.is_some())
            else {
                continue;
            };
            let losses = task.row.losses;
            let Some(place) = self.change_task(*run, *node)?.place.take() else { continue };
            let group = self.held(*run)?.group;
            self.count_admitted(group, -1, 0)?;
            lines.insert((group, place.queue.clone()));
            let Place { queue, number, definition, .. } = place;
            let (run, node) = (*run, *node);
            withdrawn.push(Queued { number, run, node, group, queue, definition, losses });
        }
        for (group, queue) in lines {
            let greatest = self.greatest_position(group, &queue)?;
            let last = last_after_cancel(self.frontier(&queue)?, greatest);
            self.set_standing(group, &queue, last);
        }
        Ok(withdrawn)
    }

    /// The greatest position of a tenant's tasks in a queue, if it lies beyond the frontier. None
    /// lies beyond where the tenant stands.
    fn greatest_position(
        &mut self,
        group: u32,
        queue: &Queue,
    ) -> Result<Option<Position>, StoreError> {
        let Some(last) = self.standing(group, queue)? else { return Ok(None) };
        let frontier = self.frontier(queue)?;
        let (from, to) = (order_key(frontier, Group(0)), order_key(last, Group(group)));
        self.write_rows()?;
        let mut greatest: Option<(u64, Position)> = None;
        let range = params![queue.as_str(), int(to.0), int(from.0)];
        self.file.each(statements::READY_BELOW, range, |row| {
            let (order, position) = (unsigned(row, 0)?, Position(unsigned(row, 1)?));
            let is_own = order_key(position, Group(group)).0 == order;
            match &mut greatest {
                // Tasks of one tenant share a key within a block.
                Some((key, greatest)) if *key == order => *greatest = position.max(*greatest),
                Some(_) => return Ok(false),
                None if is_own => greatest = Some((order, position)),
                None => {}
            }
            Ok(true)
        })?;
        Ok(greatest.map(|(_, position)| position))
    }

    /// Takes cancelled tasks off, wherever they wait, and lets others into the room they leave.
    pub(super) fn cancel_queued(
        &mut self,
        run: RunKey,
        group: u32,
        nodes: &[Node],
    ) -> Result<(), StoreError> {
        if nodes.is_empty() {
            return Ok(());
        }
        for node in nodes {
            let task = self.held_task(run, *node)?;
            if task.is_none_or(|task| task.place.is_none()) {
                self.run(statements::FORGET_THROTTLED, params![key(run), node.0])?;
                self.run(statements::FORGET_PARKED, params![key(run), node.0])?;
            }
        }
        let tasks: Vec<(RunKey, Node)> = nodes.iter().map(|node| (run, *node)).collect();
        self.withdraw(&tasks)?;
        self.fill(group)
    }

    /// Claims of the tenant ended.
    pub(super) fn free_slots(&mut self, group: u32, n: usize) -> Result<(), StoreError> {
        let n = i32::try_from(n).unwrap_or(i32::MAX);
        self.count_admitted(group, 0, -n)?;
        self.fill(group)
    }

    /// Lets held-back tasks of a tenant in, as far as its limit allows, oldest first.
    pub(super) fn fill(&mut self, group: u32) -> Result<(), StoreError> {
        while self.tenant_mut(group)?.holds_back != Some(false) && self.has_room(group)? {
            let next = self.first(statements::NEXT_THROTTLED, [group], |row| queued(row, group))?;
            match next {
                Some(task) => self.put(task)?,
                None => self.tenant_mut(group)?.holds_back = Some(false),
            }
        }
        Ok(())
    }

    /// Takes the youngest ready tasks of a tenant back behind its limit.
    pub(super) fn shrink(&mut self, group: u32) -> Result<(), StoreError> {
        let Some(limit) = self.settings(group)?.tasks_max else { return Ok(()) };
        let tenant = self.tenant_mut(group)?;
        let n_over = (tenant.n_ready + tenant.n_running).saturating_sub(limit);
        if n_over == 0 {
            return Ok(());
        }
        self.write_rows()?;
        let read = |row: &Row<'_>| Ok((run_key(row, 0)?, node(row, 1)?));
        let youngest = self.all(statements::YOUNGEST_READY, [group, n_over], read)?;
        for task in self.withdraw(&youngest)? {
            self.hold_back(&task)?;
        }
        Ok(())
    }

    /// Parked tasks that are served by now come back, stamped anew, and ready ones that nobody
    /// serves any more are parked.
    pub(super) fn sort_by_service(&mut self) -> Result<(), StoreError> {
        let mut back = self.all(statements::UNPARK, [], |row| queued(row, count(row, 6)?))?;
        back.sort_by_key(|task| task.number);
        for task in back {
            self.put(task)?;
        }
        self.write_rows()?;
        let read = |row: &Row<'_>| Ok((run_key(row, 0)?, node(row, 1)?));
        let unserved = self.all(statements::UNSERVED_READY, [], read)?;
        let mut groups = BTreeSet::new();
        for task in self.withdraw(&unserved)? {
            groups.insert(task.group);
            self.put(task)?;
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
