//! A task's timer fires.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::complete::resolve_children;
use super::signal::{give, time_out};
use crate::id::Node;
use crate::run::{Because, EventKind, Phase, RunImage, SignalRow, TaskState, WaitRow};

/// A sleep node is done; a delayed retry enters its queue now, stamped anew; a wait looks at what
/// was sent, or is over. A timer that lost its meaning changes nothing.
pub(super) fn wake(image: &mut RunImage<'_>, node: Node) {
    match image.task(node).map(|task| &task.phase) {
        Some(Phase::Sleeping { .. }) => {
            image.move_to(node, Phase::Completed, Because::Wake);
            image.record(Some(node), 0, EventKind::Woken { into: TaskState::Completed });
            resolve_children(image, node);
        }
        Some(Phase::Queued { due: Some(_), .. }) => image.release_delayed(node),
        Some(Phase::Waiting { .. }) => look(image, node),
        _ => {}
    }
}

/// Gives a waiting task the oldest signal that is for it and came in time. If there is none, the
/// wait is over, or it goes on until its deadline.
fn look(image: &mut RunImage<'_>, node: Node) {
    let Some(wait) = image.open_waits().find(|wait| wait.node == node).cloned() else {
        debug_assert!(false, "the wait of {node:?} was not loaded");
        return;
    };
    match find_signal(image, &wait).cloned() {
        Some(signal) => give(image, node, &signal),
        None if wait.is_over(image.now) => time_out(image, node),
        None => image.set_wait_timer(node, wait.deadline),
    }
}

/// The oldest signal that a wait takes and that no older wait gets. Timers fire in any order, so
/// older waits may have yet to look; those that have find nothing here.
fn find_signal<'i>(image: &'i RunImage<'_>, wait: &WaitRow) -> Option<&'i SignalRow> {
    let mut given = BTreeSet::new();
    let oldest = |wait: &WaitRow, given: &BTreeSet<u64>| {
        let left = image.signals().iter().filter(|signal| !given.contains(&signal.number));
        left.filter(|signal| wait.takes(signal)).min_by_key(|signal| signal.number)
    };
    let signal = oldest(wait, &given)?;
    let is_older = |other: &&WaitRow| other.number < wait.number;
    let mut older: Vec<&WaitRow> = image.open_waits().filter(is_older).collect();
    if !older.iter().any(|other| other.takes(signal)) {
        return Some(signal);
    }
    older.sort_by_key(|other| other.number);
    for other in older {
        given.extend(oldest(other, &given).map(|signal| signal.number));
    }
    oldest(wait, &given)
}
