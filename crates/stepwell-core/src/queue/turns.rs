//! Queues of one worker take turns: positions of different queues cannot be compared.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// What was chosen from the queues of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turns<T> {
    /// In the order chosen, each with the number of its queue.
    pub chosen: Vec<(usize, T)>,
    /// The queue that comes first next time: the one behind that which was served last.
    pub next_turn: usize,
}

/// Chooses from queues that each stand in fair order, taking turns between them from the queue
/// `first` on: up to `n_max` items.
pub fn take_turns<T>(queues: Vec<Vec<T>>, first: usize, n_max: usize) -> Turns<T> {
    let n_queues = queues.len().max(1);
    let mut next_turn = first % n_queues;
    let mut turns: VecDeque<_> = queues.into_iter().map(Vec::into_iter).enumerate().collect();
    turns.rotate_left(next_turn);
    let mut chosen = Vec::new();
    while chosen.len() < n_max {
        let Some((turn, mut queue)) = turns.pop_front() else { break };
        let Some(item) = queue.next() else { continue };
        chosen.push((turn, item));
        next_turn = (turn + 1) % n_queues;
        turns.push_back((turn, queue));
    }
    Turns { chosen, next_turn }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn turns(first: usize, n_max: usize) -> Vec<(usize, u32)> {
        let queues = vec![vec![1, 5], vec![], vec![9, 11]];
        take_turns(queues, first, n_max).chosen
    }

    #[test]
    fn queues_take_turns_from_the_first_on_and_empty_ones_are_passed_over() {
        assert_eq!(turns(0, 3), [(0, 1), (2, 9), (0, 5)]);
        assert_eq!(turns(2, 3), [(2, 9), (0, 1), (2, 11)]);
        assert_eq!(turns(1, 1), [(2, 9)]);
        assert_eq!(turns(0, 10), [(0, 1), (2, 9), (0, 5), (2, 11)]);
        assert_eq!(take_turns(Vec::<Vec<u32>>::new(), 3, 1).chosen, []);
    }

    #[test]
    fn the_next_turn_is_behind_the_queue_that_was_served_last() {
        let next = |n_max| take_turns(vec![vec![1, 2], vec![3]], 0, n_max);
        assert_eq!(next(1).next_turn, 1);
        assert_eq!(next(2).next_turn, 0);
        assert_eq!(next(3).next_turn, 1);
        let nothing = take_turns(vec![Vec::<u32>::new(), vec![]], 1, 5);
        assert_eq!(nothing.next_turn, 1);
    }
}
