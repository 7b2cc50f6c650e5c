//! How far a queue was passed: where looks into it may begin.

use super::{OrderKey, Position, TenantNo, order_key};

/// The key before which nothing of a queue is left and nothing will come: that of its first task,
/// or of a newcomer. Holds when everybody has ended who may have enqueued by an earlier frontier.
#[must_use]
pub fn passed_before(frontier: Position, first_left: Option<OrderKey>) -> OrderKey {
    let newcomer = order_key(frontier, TenantNo(0));
    first_left.map_or(newcomer, |first| first.min(newcomer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{BLOCK_LENGTH, next_position, stride};

    #[test]
    fn a_queue_is_passed_up_to_its_first_task_or_a_newcomer_of_any_tenant() {
        let frontier = Position(7 * BLOCK_LENGTH + 5);
        let block = OrderKey(7 * BLOCK_LENGTH);
        assert_eq!(passed_before(frontier, None), block);
        assert_eq!(passed_before(frontier, Some(OrderKey(9 * BLOCK_LENGTH))), block);
        assert_eq!(passed_before(frontier, Some(OrderKey(3))), OrderKey(3));
        let newcomer = next_position(frontier, None, stride(1)).unwrap();
        assert!(order_key(newcomer, TenantNo(0)) >= passed_before(frontier, None));
    }
}
