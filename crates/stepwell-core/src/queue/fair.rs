//! Fairness arithmetic: stride scheduling written into the queue when a task becomes ready.
//!
//! A tenant's tasks stand one stride apart, so that reading the queue in order serves tenants in
//! turn. The frontier is the greatest position dequeued so far: a newcomer starts there and
//! waits behind at most one task of each other tenant, however long their lines are.

use core::fmt;

use serde::{Deserialize, Serialize};

/// Ticks in one block; a tenant of weight 1 gets one place per block. Also the number of tenants
/// that fit, since a tenant's number is its place within the block.
pub const BLOCK_LENGTH: u64 = 1_048_576;

/// Greatest position that can be handed out: order keys stay within a signed 64-bit column.
pub const POSITION_MAX: u64 = i64::MAX as u64 - BLOCK_LENGTH;

/// A place on a queue's time line, in ticks.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Position(pub u64);

/// A tenant's number within its store, counted from 0 in order of first appearance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TenantNo(pub u32);

/// What ready tasks are sorted by: whole blocks first, then the tenant's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct OrderKey(pub u64);

/// Why no position can be handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FairError {
    /// The store already knows as many tenants as fit into a block.
    TooManyTenants,
    /// The position space is used up.
    OutOfPositions,
}

impl fmt::Display for FairError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyTenants => write!(f, "the store holds {BLOCK_LENGTH} tenants already"),
            Self::OutOfPositions => write!(f, "the queue has used up its positions"),
        }
    }
}

impl core::error::Error for FairError {}

/// The number of the tenant that appears after `n_tenants` others.
///
/// # Errors
/// When a block has no place left for another tenant.
pub fn tenant_no(n_tenants: usize) -> Result<TenantNo, FairError> {
    u32::try_from(n_tenants)
        .ok()
        .filter(|no| u64::from(*no) < BLOCK_LENGTH)
        .map(TenantNo)
        .ok_or(FairError::TooManyTenants)
}

/// Ticks between two tasks of a tenant with this weight (1 up to
/// [`WEIGHT_MAX`](crate::limits::WEIGHT_MAX)).
#[must_use]
pub fn stride(weight: u32) -> u64 {
    BLOCK_LENGTH / u64::from(weight.max(1))
}

/// The position of a tenant's next ready task. A newcomer (`last` is `None`) gets exactly the
/// frontier, and so does a tenant that has been idle for a while.
///
/// # Errors
/// When the position space is used up.
pub fn next_position(
    frontier: Position,
    last: Option<Position>,
    stride: u64,
) -> Result<Position, FairError> {
    let own = last.map_or(0, |last| last.0.saturating_add(stride));
    let position = own.max(frontier.0);
    if position > POSITION_MAX {
        return Err(FairError::OutOfPositions);
    }
    Ok(Position(position))
}

/// Where a tenant stands after part of its line was cancelled: it gets those places back. It never
/// stands further ahead than before: a task that others passed while nobody could claim it leaves
/// its tenant at its own place, not at the frontier, which would cost the tenant a turn.
#[must_use]
pub fn last_after_cancel(
    last: Option<Position>,
    frontier: Position,
    greatest_left: Option<Position>,
) -> Option<Position> {
    let returned = greatest_left.map_or(frontier, |left| left.max(frontier));
    last.map(|last| last.min(returned))
}

/// The key that ready tasks are read by.
#[must_use]
pub fn order_key(position: Position, tenant: TenantNo) -> OrderKey {
    OrderKey(position.0 / BLOCK_LENGTH * BLOCK_LENGTH + u64::from(tenant.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_keys_follow_the_block_formula() {
        // R2
        let stride = stride(1);
        let mut last = None;
        for block in 0..5 {
            let position = next_position(Position(0), last, stride).unwrap();
            assert_eq!(order_key(position, TenantNo(3)).0, 3 + BLOCK_LENGTH * block);
            last = Some(position);
        }
    }

    #[test]
    fn a_heavier_tenant_gets_its_weight_in_places_per_block() {
        let mut last = None;
        let mut per_block = [0; 4];
        for _ in 0..12 {
            let position = next_position(Position(0), last, stride(3)).unwrap();
            per_block[usize::try_from(position.0 / BLOCK_LENGTH).unwrap()] += 1;
            last = Some(position);
        }
        // A third of a block is no whole number of ticks, so the 13th place slips forward.
        assert_eq!(per_block, [4, 3, 3, 2]);
    }

    #[test]
    fn a_newcomer_starts_at_the_frontier_and_not_at_zero() {
        let frontier = Position(7 * BLOCK_LENGTH + 5);
        assert_eq!(next_position(frontier, None, stride(1)), Ok(frontier));
    }

    #[test]
    fn a_tenant_that_was_idle_saves_up_nothing() {
        let frontier = Position(90 * BLOCK_LENGTH);
        let back = next_position(frontier, Some(Position(3)), stride(1)).unwrap();
        assert_eq!(back, frontier);
    }

    #[test]
    fn the_ends_of_the_arithmetic_are_refused_and_never_wrapped() {
        // R2
        let end = Position(POSITION_MAX);
        let past = next_position(end, Some(end), stride(1));
        assert_eq!(past, Err(FairError::OutOfPositions));
        let n_tenants = usize::try_from(BLOCK_LENGTH).unwrap();
        assert_eq!(tenant_no(n_tenants), Err(FairError::TooManyTenants));
        assert_eq!(tenant_no(n_tenants - 1), Ok(TenantNo(1_048_575)));
        assert!(i64::try_from(order_key(end, TenantNo(1_048_575)).0).is_ok());
    }

    #[test]
    fn a_cancelled_backlog_gives_its_positions_back() {
        let last = Some(Position(11));
        assert_eq!(last_after_cancel(last, Position(5), Some(Position(9))), Some(Position(9)));
        assert_eq!(last_after_cancel(last, Position(5), None), Some(Position(5)));
    }

    #[test]
    fn a_cancelled_task_behind_the_frontier_costs_its_tenant_no_turn() {
        let last = last_after_cancel(Some(Position(0)), Position(BLOCK_LENGTH), None);
        let next = next_position(Position(BLOCK_LENGTH), last, stride(1));
        assert_eq!(next, Ok(Position(BLOCK_LENGTH)));
    }
}
