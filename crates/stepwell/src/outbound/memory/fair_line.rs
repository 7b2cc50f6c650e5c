//! The order of one store's ready tasks: positions per tenant and queue, and the frontier.

use std::collections::{BTreeMap, BTreeSet};

use stepwell_core::fair::{
    FairError, Group, OrderKey, POSITION_MAX, Position, last_after_cancel, next_position,
    order_key, stride,
};
use stepwell_core::id::Queue;

/// Where a tenant stands in one queue.
#[derive(Default)]
pub(super) struct Standing {
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

impl Standing {
    /// Whether the tenant's next task would still get a position.
    pub(super) fn check(&self, frontier: Position, weight: u32) -> Result<(), FairError> {
        next_position(frontier, self.last, stride(weight)).map(|_| ())
    }

    /// Takes the tenant's next position. Starts are refused before the space is used up; what
    /// is already under way shares the last position, in order of arrival.
    pub(super) fn take(
        &mut self,
        frontier: Position,
        weight: u32,
        group: Group,
        number: u64,
    ) -> (Position, OrderKey) {
        let position =
            next_position(frontier, self.last, stride(weight)).unwrap_or(Position(POSITION_MAX));
        self.last = Some(position);
        self.ready.insert((position, number));
        (position, order_key(position, group))
    }

    /// A ready task was claimed.
    pub(super) fn dequeued(&mut self, position: Position, number: u64) {
        self.ready.remove(&(position, number));
    }

    /// A ready task left without being claimed: the tenant gets its place back.
    pub(super) fn withdrawn(&mut self, frontier: Position, position: Position, number: u64) {
        self.ready.remove(&(position, number));
        let greatest_left = self.ready.last().map(|(position, _)| *position);
        self.last = Some(last_after_cancel(frontier, greatest_left));
    }
}
