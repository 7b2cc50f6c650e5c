//! The order of one store's ready tasks: positions per tenant and queue, and the frontier.

use std::collections::{BTreeMap, BTreeSet};

use stepwell_core::id::Queue;
use stepwell_core::queue::{Position, TenantPosition, last_after_cancel};

/// The positions of a tenant in one queue.
#[derive(Default)]
pub(super) struct Positions {
    last: Option<Position>,
    /// Positions of its ready tasks, with the number that tells equal ones apart.
    ready: BTreeSet<(Position, u64)>,
}

/// The greatest position dequeued so far, per queue. A newcomer starts there.
#[derive(Default)]
pub(super) struct Frontiers(BTreeMap<Queue, Position>);

impl Frontiers {
    pub(super) fn get(&self, queue: &Queue) -> Position {
        self.0.get(queue).copied().unwrap_or_default()
    }

    pub(super) fn raise(&mut self, queue: &Queue, position: Position) {
        let frontier = self.0.entry(queue.clone()).or_default();
        *frontier = position.max(*frontier);
    }
}

impl Positions {
    /// Where the tenant stands, for the rule that gives the next position.
    pub(super) fn at(&self, frontier: Position, weight: u32) -> TenantPosition {
        TenantPosition { frontier, last: self.last, weight }
    }

    /// A task got this position.
    pub(super) fn taken(&mut self, position: Position, number: u64) {
        self.last = Some(position);
        self.ready.insert((position, number));
    }

    /// A ready task was claimed.
    pub(super) fn dequeued(&mut self, position: Position, number: u64) {
        self.ready.remove(&(position, number));
    }

    /// A ready task left without being claimed: the tenant gets its place back.
    pub(super) fn withdrawn(&mut self, frontier: Position, position: Position, number: u64) {
        self.ready.remove(&(position, number));
        let greatest_left = self.ready.last().map(|(position, _)| *position);
        self.last = last_after_cancel(self.last, frontier, greatest_left);
    }
}
