//! Fairness arithmetic: stride scheduling written into the queue when a task becomes ready.
//!
//! A tenant's tasks stand one stride apart, so that reading the queue in order serves tenants in
//! turn. The frontier is the greatest position dequeued so far: a newcomer starts there and
//! waits behind at most one task of each other tenant, however long their lines are.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

/// Ticks in one block; a tenant of weight 1 gets one place per block. Also the number of tenants
/// that fit, since a tenant's group number is its place within the block.
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
pub struct Group(pub u32);

/// What ready tasks are sorted by: whole blocks first, then the tenant's group.
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

/// The group of the tenant that appears after `n_tenants` others.
///
/// # Errors
/// When a block has no place left for another tenant.
pub fn group(n_tenants: usize) -> Result<Group, FairError> {
    u32::try_from(n_tenants)
        .ok()
        .filter(|group| u64::from(*group) < BLOCK_LENGTH)
        .map(Group)
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

/// Where a tenant stands after part of its line was cancelled: it gets those places back.
#[must_use]
pub fn last_after_cancel(frontier: Position, greatest_left: Option<Position>) -> Position {
    greatest_left.map_or(frontier, |left| left.max(frontier))
}

/// The key that ready tasks are read by.
#[must_use]
pub fn order_key(position: Position, group: Group) -> OrderKey {
    OrderKey(position.0 / BLOCK_LENGTH * BLOCK_LENGTH + u64::from(group.0))
}

/// The key before which nothing of a queue is left and nothing will come: that of its first task,
/// or of a newcomer. Holds when everybody has ended who may have joined by an earlier frontier.
#[must_use]
pub fn passed_before(frontier: Position, first_left: Option<OrderKey>) -> OrderKey {
    let newcomer = order_key(frontier, Group(0));
    first_left.map_or(newcomer, |first| first.min(newcomer))
}

/// Chooses from lines that each stand in fair order, taking turns between them from the line
/// `first` on: up to `n_max` items, with at most one suspect, and that only if `suspect` allows it.
/// Gives the items in the order chosen, with the line of each.
pub fn take_turns<T>(
    lines: Vec<Vec<T>>,
    first: usize,
    n_max: usize,
    mut suspect: bool,
    is_suspect: impl Fn(&T) -> bool,
) -> Vec<(usize, T)> {
    let first = first % lines.len().max(1);
    let mut turns: VecDeque<_> = lines.into_iter().map(Vec::into_iter).enumerate().collect();
    turns.rotate_left(first);
    let mut chosen = Vec::new();
    while chosen.len() < n_max {
        let Some((turn, mut line)) = turns.pop_front() else { break };
        let Some(item) = line.find(|item| suspect || !is_suspect(item)) else { continue };
        suspect &= !is_suspect(&item);
        chosen.push((turn, item));
        turns.push_back((turn, line));
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn order_keys_follow_the_block_formula() {
        // R2
        let stride = stride(1);
        let mut last = None;
        for block in 0..5 {
            let position = next_position(Position(0), last, stride).unwrap();
            assert_eq!(order_key(position, Group(3)).0, 3 + BLOCK_LENGTH * block);
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
        assert_eq!(group(n_tenants), Err(FairError::TooManyTenants));
        assert_eq!(group(n_tenants - 1), Ok(Group(1_048_575)));
        assert!(i64::try_from(order_key(end, Group(1_048_575)).0).is_ok());
    }

    #[test]
    fn a_cancelled_backlog_gives_its_positions_back() {
        assert_eq!(last_after_cancel(Position(5), Some(Position(9))), Position(9));
        assert_eq!(last_after_cancel(Position(5), None), Position(5));
    }

    #[test]
    fn a_queue_is_passed_up_to_its_first_task_or_a_newcomer_of_any_tenant() {
        let frontier = Position(7 * BLOCK_LENGTH + 5);
        let block = OrderKey(7 * BLOCK_LENGTH);
        assert_eq!(passed_before(frontier, None), block);
        assert_eq!(passed_before(frontier, Some(OrderKey(9 * BLOCK_LENGTH))), block);
        assert_eq!(passed_before(frontier, Some(OrderKey(3))), OrderKey(3));
        let newcomer = next_position(frontier, None, stride(1)).unwrap();
        assert!(order_key(newcomer, Group(0)) >= passed_before(frontier, None));
    }

    /// Even numbers of a line are suspects.
    fn turns(first: usize, n_max: usize, suspect: bool) -> Vec<(usize, u32)> {
        let lines = vec![vec![1, 2, 4, 5], vec![], vec![8, 9, 11, 12]];
        take_turns(lines, first, n_max, suspect, |item| item % 2 == 0)
    }

    #[test]
    fn lines_take_turns_from_the_first_on_and_empty_ones_are_passed_over() {
        assert_eq!(turns(0, 3, false), [(0, 1), (2, 9), (0, 5)]);
        assert_eq!(turns(2, 3, false), [(2, 9), (0, 1), (2, 11)]);
        assert_eq!(turns(1, 1, false), [(2, 9)]);
    }

    #[test]
    fn at_most_one_suspect_is_chosen() {
        assert_eq!(turns(0, 10, true), [(0, 1), (2, 8), (0, 5), (2, 9), (2, 11)]);
        assert_eq!(turns(0, 10, false), [(0, 1), (2, 9), (0, 5), (2, 11)]);
        assert_eq!(take_turns(Vec::<Vec<u32>>::new(), 3, 1, true, |_| true), []);
    }
}
