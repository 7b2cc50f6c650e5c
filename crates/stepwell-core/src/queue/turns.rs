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
/// `first` on: up to `n_max` items, with at most one suspect, and that only if `suspect` allows it.
pub fn take_turns<T>(
    queues: Vec<Vec<T>>,
    first: usize,
    n_max: usize,
    mut suspect: bool,
    is_suspect: impl Fn(&T) -> bool,
) -> Turns<T> {
    let n_queues = queues.len().max(1);
    let mut next_turn = first % n_queues;
    let mut turns: VecDeque<_> = queues.into_iter().map(Vec::into_iter).enumerate().collect();
    turns.rotate_left(next_turn);
    let mut chosen = Vec::new();
    while chosen.len() < n_max {
        let Some((turn, mut queue)) = turns.pop_front() else { break };
        let Some(item) = queue.find(|item| suspect || !is_suspect(item)) else { continue };
        suspect &= !is_suspect(&item);
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

    /// Even numbers of a queue are suspects.
    fn turns(first: usize, n_max: usize, suspect: bool) -> Vec<(usize, u32)> {
        let queues = vec![vec![1, 2, 4, 5], vec![], vec![8, 9, 11, 12]];
        take_turns(queues, first, n_max, suspect, |item| item % 2 == 0).chosen
    }

    #[test]
    fn queues_take_turns_from_the_first_on_and_empty_ones_are_passed_over() {
        assert_eq!(turns(0, 3, false), [(0, 1), (2, 9), (0, 5)]);
        assert_eq!(turns(2, 3, false), [(2, 9), (0, 1), (2, 11)]);
        assert_eq!(turns(1, 1, false), [(2, 9)]);
    }

    #[test]
    fn at_most_one_suspect_is_chosen() {
        assert_eq!(turns(0, 10, true), [(0, 1), (2, 8), (0, 5), (2, 9), (2, 11)]);
        assert_eq!(turns(0, 10, false), [(0, 1), (2, 9), (0, 5), (2, 11)]);
        assert_eq!(take_turns(Vec::<Vec<u32>>::new(), 3, 1, true, |_| true).chosen, []);
    }

    #[test]
    fn the_next_turn_is_behind_the_queue_that_was_served_last() {
        let next = |n_max| take_turns(vec![vec![1, 2], vec![3]], 0, n_max, false, |_| false);
        assert_eq!(next(1).next_turn, 1);
        assert_eq!(next(2).next_turn, 0);
        assert_eq!(next(3).next_turn, 1);
        let nothing = take_turns(vec![Vec::<u32>::new(), vec![]], 1, 5, false, |_| false);
        assert_eq!(nothing.next_turn, 1);
    }
}
