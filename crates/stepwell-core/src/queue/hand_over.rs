//! Who takes what becomes ready: a worker that offers free slots, or the queue.
//!
//! A task that is handed over is written once, as running, and never stands in its queue. The
//! store has found that nothing waits in any of the worker's queues: whoever waits goes first.

use alloc::vec::Vec;

use super::{OrderKey, TenantNo, take_turns};
use crate::decide::is_suspect;

/// The slots that a worker offers. Suspects are never handed over: they are executed alone.
#[derive(Clone, Copy, Debug)]
pub struct SlotOffer {
    /// How many tasks it takes at most.
    pub tasks_max: usize,
    /// Losses at which a task ends; one below it makes a suspect.
    pub crash_limit: u32,
    /// How many queues the worker serves.
    pub n_queues: usize,
    /// Which of them comes first.
    pub next_turn: usize,
}

/// A task that became ready and that the worker could execute.
#[derive(Clone, Copy, Debug)]
pub struct ReadyTask {
    /// The number of its queue among those of the worker.
    pub queue: usize,
    /// Whose it is.
    pub tenant: TenantNo,
    /// How many workers it has lost.
    pub losses: u32,
    /// Its place in its queue, with its number of arrival: the order of [`Order::Known`].
    pub place: (OrderKey, u64),
}

/// What a store knows of the order in which tasks would stand in their queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Every task has its place already: the store has one writer.
    Known,
    /// Places would have to be locked to be known. Nobody waits, so no tenant stands ahead of the
    /// frontier, and being taken or not moves a tenant by one place at most.
    Unknown,
}

/// Tasks that a worker takes, and those that are left to their queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split<T> {
    /// What the worker takes, in the order in which it would have claimed them.
    pub taken: Vec<T>,
    /// What goes into its queue.
    pub left: Vec<T>,
    /// The queue of the worker that comes first next time.
    pub next_turn: usize,
}

/// Tells what an idle worker takes of tasks that become ready. `view` gives `None` for a task
/// that the worker cannot execute.
pub fn split<T>(
    offer: &SlotOffer,
    ready: Vec<T>,
    order: Order,
    view: impl Fn(&T) -> Option<ReadyTask>,
) -> Split<T> {
    let view = |task: &T| view(task).filter(|seen| !is_suspect(seen.losses, offer.crash_limit));
    match order {
        Order::Known => in_fair_order(offer, ready, view),
        Order::Unknown => all_or_of_one_tenant(offer, ready, view),
    }
}

/// Takes what a claim right after would take: queues in turn, each in its order.
fn in_fair_order<T>(
    offer: &SlotOffer,
    ready: Vec<T>,
    view: impl Fn(&T) -> Option<ReadyTask>,
) -> Split<T> {
    let mut queues: Vec<Vec<(ReadyTask, T)>> = Vec::new();
    queues.resize_with(offer.n_queues, Vec::new);
    let mut left = Vec::new();
    for task in ready {
        let seen = view(&task);
        match seen.and_then(|seen| Some((seen, queues.get_mut(seen.queue)?))) {
            Some((seen, queue)) => queue.push((seen, task)),
            None => left.push(task),
        }
    }
    for queue in &mut queues {
        queue.sort_by_key(|(seen, _)| seen.place);
    }
    // What is not chosen stays in the iterators of the turns, so the choice is made by number.
    let numbers = numbered(&queues);
    let turns = take_turns(numbers, offer.next_turn, offer.tasks_max);
    let mut slots: Vec<Vec<Option<T>>> = queues
        .into_iter()
        .map(|queue| queue.into_iter().map(|(_, task)| Some(task)).collect())
        .collect();
    let chosen = turns.chosen.iter();
    let taken = chosen.filter_map(|(_, (queue, ix))| slots[*queue][*ix].take()).collect();
    left.extend(slots.into_iter().flatten().flatten());
    Split { taken, left, next_turn: turns.next_turn }
}

fn numbered<T>(queues: &[Vec<T>]) -> Vec<Vec<(usize, usize)>> {
    let number =
        |(queue, tasks): (usize, &Vec<T>)| (0..tasks.len()).map(|ix| (queue, ix)).collect();
    queues.iter().enumerate().map(number).collect()
}

/// Takes everything the worker can execute if there is room for all of it; if all of it is of one
/// tenant and queue, as much as there is room for. Between several the queue decides who is next.
fn all_or_of_one_tenant<T>(
    offer: &SlotOffer,
    ready: Vec<T>,
    view: impl Fn(&T) -> Option<ReadyTask>,
) -> Split<T> {
    let next_turn = offer.next_turn;
    let mut seen = ready.iter().filter_map(&view);
    let n_takeable = seen.clone().count();
    let are_alike = seen.next().is_none_or(|first| {
        seen.all(|task| (task.tenant, task.queue) == (first.tenant, first.queue))
    });
    let mut room = offer.tasks_max;
    if n_takeable > room && !are_alike {
        return Split { taken: Vec::new(), left: ready, next_turn };
    }
    let (taken, left) = ready.into_iter().partition(|task| {
        let is_taken = room > 0 && view(task).is_some();
        room -= usize::from(is_taken);
        is_taken
    });
    Split { taken, left, next_turn }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// Queue, tenant, losses, place.
    type Task = (usize, u32, u32, u64);

    const OFFER: SlotOffer = SlotOffer { tasks_max: 2, crash_limit: 3, n_queues: 2, next_turn: 0 };

    fn see(task: &Task) -> Option<ReadyTask> {
        let (queue, tenant, losses, place) = *task;
        let place = (OrderKey(place), place);
        (queue < 9).then_some(ReadyTask { queue, tenant: TenantNo(tenant), losses, place })
    }

    fn taken(offer: SlotOffer, ready: Vec<Task>, order: Order) -> Vec<Task> {
        let n = ready.len();
        let split = split(&offer, ready, order, see);
        assert_eq!(split.taken.len() + split.left.len(), n, "no task may be lost");
        split.taken
    }

    #[test]
    fn where_the_order_is_known_the_worker_takes_what_a_claim_would() {
        let ready = vec![(0, 1, 0, 7), (0, 2, 0, 3), (1, 1, 0, 9), (9, 1, 0, 1)];
        assert_eq!(taken(OFFER, ready.clone(), Order::Known), [(0, 2, 0, 3), (1, 1, 0, 9)]);
        let split = split(&OFFER, ready, Order::Known, see);
        assert_eq!(split.next_turn, 0);
    }

    #[test]
    fn suspects_are_left_to_their_queues() {
        // R14
        let offer = SlotOffer { tasks_max: 9, ..OFFER };
        for order in [Order::Known, Order::Unknown] {
            let ready = vec![(0, 1, 2, 1), (0, 1, 2, 2), (0, 1, 0, 3)];
            assert_eq!(taken(offer, ready, order), [(0, 1, 0, 3)]);
        }
    }

    #[test]
    fn where_the_order_is_unknown_all_is_taken_or_a_part_of_one_tenant_and_queue() {
        let fits = vec![(0, 1, 0, 1), (1, 2, 0, 1), (9, 1, 0, 1), (0, 1, 2, 1)];
        assert_eq!(taken(OFFER, fits, Order::Unknown), [(0, 1, 0, 1), (1, 2, 0, 1)]);
        let alike = vec![(0, 1, 0, 1), (0, 1, 0, 2), (0, 1, 0, 3)];
        assert_eq!(taken(OFFER, alike, Order::Unknown), [(0, 1, 0, 1), (0, 1, 0, 2)]);
        let mixed = vec![(0, 1, 0, 1), (0, 2, 0, 2), (0, 1, 0, 3)];
        assert_eq!(taken(OFFER, mixed, Order::Unknown), []);
    }
}
