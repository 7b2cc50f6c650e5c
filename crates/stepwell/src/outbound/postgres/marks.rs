//! Where claims begin to look.
//!
//! A task that was taken leaves a dead row at the head of its queue, and while anybody holds an old
//! snapshot (a backup, a long report) the server cannot clear these away: every claim would step
//! over all of them. New tasks are placed at the frontier or behind it, so a claim begins where the
//! last one found its first task.
//!
//! What this process places before that is minded. Rows may still turn up there: placed by another
//! process that had read an older frontier, or freed by a claim that was rolled back. So now and
//! then, and after a look in vain, a claim looks at the whole queue; ever more rarely while nothing
//! lies before the mark. A mark is never more than a hint.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use stepwell_core::fair::BLOCK_LENGTH;

/// One look in so many is at the whole queue, at first and at least.
const EVERY_MIN: u32 = 16;
const EVERY_MAX: u32 = 128;

/// Workers come and go; their marks are small, but not for ever.
const MARKS_MAX: usize = 1_000;

/// More looks are not under way at once.
const LOOKS_AT_ONCE_MAX: u64 = 64;

const BLOCK: i64 = BLOCK_LENGTH.cast_signed();

/// Where looks of workers at their queues begin.
#[derive(Default)]
pub(super) struct Marks(Mutex<Book>);

#[derive(Default)]
struct Book {
    marks: HashMap<(i64, String), Mark>,
    /// What this process places: it cannot be seen before its transaction has ended.
    placements: Vec<Placement>,
    n_looks: u64,
    last_placement: u64,
}

struct Mark {
    from: i64,
    /// One look in so many is at the whole queue.
    every: u32,
    n_since: u32,
}

struct Placement {
    id: u64,
    queue: String,
    order_key: i64,
    /// How many looks had begun when its transaction ended.
    ended_at: Option<u64>,
}

/// A look that is under way.
pub(super) struct Look {
    worker: i64,
    queue: String,
    number: u64,
    /// The order key it begins with.
    pub(super) from: i64,
    /// Where it would have begun.
    mark: i64,
}

impl Marks {
    /// Begins a worker's look at a queue.
    pub(super) fn begin(&self, worker: i64, queue: &str) -> Look {
        let mut book = self.lock();
        if book.marks.len() >= MARKS_MAX {
            book.marks.clear();
        }
        book.n_looks += 1;
        let number = book.n_looks;
        let fresh = || Mark { from: 0, every: EVERY_MIN, n_since: 0 };
        let mark = book.marks.entry((worker, queue.to_owned())).or_insert_with(fresh);
        mark.n_since += 1;
        let is_whole = mark.from == 0 || mark.n_since >= mark.every;
        if is_whole {
            mark.n_since = 0;
        }
        let from = if is_whole { 0 } else { mark.from };
        Look { worker, queue: queue.to_owned(), number, from, mark: mark.from }
    }

    /// A look found this order key first, or nothing.
    pub(super) fn found(&self, look: Look, first: Option<i64>) {
        let mut book = self.lock();
        // Another tenant's task may be placed in the same block before it.
        let block = first.map_or(0, |first| first - first.rem_euclid(BLOCK));
        let is_unseen = |placement: &&Placement| {
            placement.queue == look.queue && placement.ended_at.is_none_or(|at| at >= look.number)
        };
        let unseen = book.placements.iter().filter(is_unseen).map(|placement| placement.order_key);
        let from = unseen.fold(block, i64::min);
        if let Some(mark) = book.marks.get_mut(&(look.worker, look.queue)) {
            mark.from = from;
            if look.from < look.mark {
                let is_empty_before = block >= look.mark;
                let every = if is_empty_before { mark.every * 2 } else { EVERY_MIN };
                mark.every = every.min(EVERY_MAX);
            }
        }
        let is_recent = |at: u64| at + LOOKS_AT_ONCE_MAX >= look.number;
        book.placements.retain(|placement| placement.ended_at.is_none_or(is_recent));
    }

    /// A transaction places tasks in a queue, this one first; gives what to [end](Self::end).
    pub(super) fn place(&self, queue: &str, order_key: i64) -> u64 {
        let mut book = self.lock();
        for ((_, of), mark) in &mut book.marks {
            if of == queue {
                mark.from = mark.from.min(order_key);
            }
        }
        book.last_placement += 1;
        let (id, queue) = (book.last_placement, queue.to_owned());
        book.placements.push(Placement { id, queue, order_key, ended_at: None });
        id
    }

    /// The transaction of a placement has ended, in whatever way.
    pub(super) fn end(&self, placement: u64) {
        let mut book = self.lock();
        let ended_at = Some(book.n_looks);
        if let Some(ended) = book.placements.iter_mut().find(|other| other.id == placement) {
            ended.ended_at = ended_at;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.0.lock().expect("no holder of the lock panics")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A look that finds this; gives where it began.
    fn look(marks: &Marks, first: Option<i64>) -> i64 {
        let look = marks.begin(1, "q");
        let from = look.from;
        marks.found(look, first);
        from
    }

    #[test]
    fn a_look_begins_in_the_block_in_which_the_last_one_found_a_task() {
        let marks = Marks::default();
        assert_eq!(look(&marks, Some(7 * BLOCK + 5)), 0);
        assert_eq!(marks.begin(1, "q").from, 7 * BLOCK);
        assert_eq!(marks.begin(2, "q").from, 0, "another worker may serve what this one does not");
        assert_eq!(marks.begin(1, "r").from, 0);
    }

    #[test]
    fn a_look_in_vain_is_followed_by_one_at_the_whole_queue() {
        let marks = Marks::default();
        look(&marks, Some(7 * BLOCK));
        assert_eq!(look(&marks, None), 7 * BLOCK);
        assert_eq!(look(&marks, None), 0);
    }

    #[test]
    fn looks_at_the_whole_queue_become_rarer_while_nothing_lies_before_the_mark() {
        let marks = Marks::default();
        // The whole one that comes as the 369th finds something.
        let first = |ix: usize| if ix == 368 { 3 * BLOCK } else { 7 * BLOCK };
        let is_whole = |ix: &usize| look(&marks, Some(first(*ix))) == 0;
        let whole: Vec<usize> = (0..400).filter(is_whole).collect();
        assert_eq!(whole, [0, 16, 48, 112, 240, 368, 384]);
    }

    #[test]
    fn what_is_placed_before_the_mark_is_not_passed_over_until_it_can_be_seen() {
        let marks = Marks::default();
        look(&marks, Some(7 * BLOCK));
        let placement = marks.place("q", 3 * BLOCK + 1);
        marks.place("r", BLOCK);
        for _ in 0..5 {
            assert_eq!(look(&marks, Some(8 * BLOCK)), 3 * BLOCK + 1);
        }
        let under_way = marks.begin(1, "q");
        marks.end(placement);
        marks.found(under_way, Some(8 * BLOCK));
        assert_eq!(look(&marks, Some(8 * BLOCK)), 3 * BLOCK + 1, "it began before the end");
        assert_eq!(look(&marks, Some(8 * BLOCK)), 8 * BLOCK);
    }
}
