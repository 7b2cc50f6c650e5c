//! Where a ready task waits, and at which position.

use super::{
    FairError, OrderKey, POSITION_MAX, Position, TenantNo, next_position, order_key, stride,
};

/// Where a task that became ready waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsIn {
    /// For a worker that serves it: no live one does.
    Parked,
    /// Behind its tenant's limit.
    Throttled,
    /// In its queue.
    Queue,
}

/// Where a task waits that became ready. `room_left` is how many more tasks of its tenant may be
/// ready or running; `None` for a tenant without a limit.
#[must_use]
pub const fn waits_in(is_served: bool, room_left: Option<u64>) -> WaitsIn {
    match room_left {
        _ if !is_served => WaitsIn::Parked,
        Some(0) => WaitsIn::Throttled,
        _ => WaitsIn::Queue,
    }
}

/// How many admitted tasks of a tenant are over its limit, after that was lowered.
#[must_use]
pub fn surplus(n_admitted: u64, limit: Option<u32>) -> u64 {
    limit.map_or(0, |limit| n_admitted.saturating_sub(limit.into()))
}

/// Where one tenant stands in one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TenantPosition {
    /// The greatest position that was taken from the queue.
    pub frontier: Position,
    /// The tenant's last position; `None` if it never had one here.
    pub last: Option<Position>,
    /// The tenant's weight.
    pub weight: u32,
}

impl TenantPosition {
    /// Whether the tenant's next task still gets a position, so that a start can be refused
    /// before anything of it is stored.
    ///
    /// # Errors
    /// When the position space is used up.
    pub fn check(&self) -> Result<(), FairError> {
        self.next().map(drop)
    }

    /// Takes the tenant's next position. Starts are refused before the space is used up; tasks
    /// of runs that are already under way share the last position, in order of arrival.
    pub fn take(&mut self, tenant: TenantNo) -> (Position, OrderKey) {
        let position = self.next().unwrap_or(Position(POSITION_MAX));
        self.last = Some(position);
        (position, order_key(position, tenant))
    }

    fn next(&self) -> Result<Position, FairError> {
        next_position(self.frontier, self.last, stride(self.weight))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::BLOCK_LENGTH;

    #[test]
    fn what_nobody_serves_is_parked_whatever_room_there_is() {
        assert_eq!(waits_in(false, None), WaitsIn::Parked);
        assert_eq!(waits_in(false, Some(0)), WaitsIn::Parked);
        assert_eq!(waits_in(true, Some(0)), WaitsIn::Throttled);
        assert_eq!(waits_in(true, Some(1)), WaitsIn::Queue);
        assert_eq!(waits_in(true, None), WaitsIn::Queue);
    }

    #[test]
    fn a_lowered_limit_leaves_the_surplus_only() {
        assert_eq!(surplus(7, Some(5)), 2);
        assert_eq!(surplus(5, Some(5)), 0);
        assert_eq!(surplus(7, None), 0);
    }

    #[test]
    fn positions_follow_each_other_and_the_last_one_is_shared() {
        let end = Position(POSITION_MAX);
        let mut at = TenantPosition { frontier: Position(5), last: None, weight: 1 };
        assert_eq!(at.take(TenantNo(3)), (Position(5), OrderKey(3)));
        assert_eq!(at.take(TenantNo(3)).0, Position(5 + BLOCK_LENGTH));
        at.last = Some(end);
        assert_eq!(at.check(), Err(FairError::OutOfPositions));
        assert_eq!(at.take(TenantNo(3)).0, end);
        assert_eq!(at.take(TenantNo(3)).0, end);
    }
}
