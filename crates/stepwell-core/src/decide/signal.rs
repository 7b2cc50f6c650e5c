//! A signal is sent to a run: the oldest wait that is for it gets it, or it is kept.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::complete::resolve_children;
use super::end::{ends_as, settle};
use super::function::{self, earliest};
use crate::id::Node;
use crate::limits::UNCONSUMED_SIGNALS_MAX;
use crate::run::{
    Attributes, Because, EventKind, Phase, Resumed, RunImage, RunStatus, RunTimer, SignalRow,
    TaskState, WaitRow,
};
use crate::workflow::NodeKind;

/// A signal as it is sent, without its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSignal {
    /// Its name.
    pub name: String,
    /// What tells a repeated signal from another one, unique in the run.
    pub key: String,
    /// What it carries beside its payload.
    pub attributes: Attributes,
    /// A digest of name, attributes and payload, to compare signals of one key.
    pub digest: [u8; 32],
    /// Whether it is dropped if no wait is open that it is for.
    pub only_if_awaited: bool,
}

/// What became of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalAnswer {
    /// It is stored.
    Stored {
        /// Its number within the run.
        number: u64,
        /// Whether a wait got it at once.
        is_consumed: bool,
    },
    /// It had been stored before, under the same key.
    AlreadyStored {
        /// Its number within the run.
        number: u64,
    },
    /// The run's end was decided before; it ends like this. Nothing was stored.
    AlreadyEnding(RunStatus),
    /// The run had ended before, like this. Nothing was stored.
    AlreadyEnded(RunStatus),
    /// No wait is open that it is for, and it was to be dropped then.
    NotAwaited,
    /// Another signal was stored under its key. Nothing was changed.
    KeyTaken,
    /// The run holds as many signals that nobody got as it may. Nothing was stored.
    TooMany,
}

/// Who gets a signal.
enum Receiver {
    /// This wait, now.
    Wait(WaitRow),
    /// A wait that looks at it later, with those that were sent before it.
    Later,
    Nobody,
}

/// Stores a signal, and gives it to the oldest wait that is for it. The run's open waits and the
/// signal of this key are loaded, with the tasks that [`receivers`] names.
pub(super) fn signal(image: &mut RunImage<'_>, new: NewSignal) -> SignalAnswer {
    if let Some(known) = image.signals().iter().find(|known| known.key == new.key) {
        let number = known.number;
        let is_same = known.digest == new.digest;
        return if is_same {
            SignalAnswer::AlreadyStored { number }
        } else {
            SignalAnswer::KeyTaken
        };
    }
    match image.run.status {
        RunStatus::Running => {}
        RunStatus::Ending => return SignalAnswer::AlreadyEnding(ends_as(&image.run)),
        status => return SignalAnswer::AlreadyEnded(status),
    }
    let receiver = find_receiver(image, &new);
    if new.only_if_awaited && matches!(receiver, Receiver::Nobody) {
        return SignalAnswer::NotAwaited;
    }
    let is_consumed = matches!(receiver, Receiver::Wait(_));
    if !is_consumed && image.run.n_unconsumed >= UNCONSUMED_SIGNALS_MAX {
        return SignalAnswer::TooMany;
    }
    let number = image.run.n_signals + 1;
    let NewSignal { name, key, attributes, digest, .. } = new;
    let sent_at = image.now;
    let consumed_by = None;
    let row = SignalRow { number, name, key, attributes, digest, sent_at, consumed_by };
    image.store_signal(row.clone());
    match receiver {
        Receiver::Wait(wait) => {
            give(image, &wait, &row);
            settle(image);
        }
        Receiver::Later => let_look(image, &row),
        Receiver::Nobody => {}
    }
    SignalAnswer::Stored { number, is_consumed }
}

/// The tasks of waits that may get a signal: what has to be loaded.
pub(super) fn receivers<'w>(
    waits: &'w [WaitRow],
    new: &'w NewSignal,
) -> impl Iterator<Item = Node> + 'w {
    waits.iter().filter(|wait| wait.is_for(&new.name, &new.attributes)).map(|wait| wait.node)
}

/// The oldest wait that is for a signal and not over. One that has yet to look at earlier signals
/// goes by their order, so this one waits with them. One that opened by an earlier happening on
/// this image looks later as well, since what follows from it is not loaded.
fn find_receiver(image: &RunImage<'_>, new: &NewSignal) -> Receiver {
    let now = image.now;
    let is_for = |wait: &&WaitRow| wait.is_for(&new.name, &new.attributes) && !wait.is_over(now);
    let loaded = image.loaded_waits().iter();
    match loaded.filter(is_for).min_by_key(|wait| wait.age()) {
        Some(wait) if has_looked(image, wait) => Receiver::Wait(wait.clone()),
        Some(_) => Receiver::Later,
        None if image.open_waits().any(|wait| is_for(&wait)) => Receiver::Later,
        None => Receiver::Nobody,
    }
}

/// Whether a wait has seen all signals up to now: its task waits, and the timer is that of its
/// deadline, or of the first of the deadlines of a function.
fn has_looked(image: &RunImage<'_>, wait: &WaitRow) -> bool {
    match image.task(wait.node).map(|task| &task.phase) {
        Some(Phase::Waiting { due }) => *due == earliest(image, wait.node),
        _ => false,
    }
}

/// The oldest signal that a wait takes and that no older wait gets. Timers fire in any order, so
/// older waits may have yet to look; those that have find nothing here.
pub(super) fn find_signal<'i>(image: &'i RunImage<'_>, wait: &WaitRow) -> Option<&'i SignalRow> {
    let mut given = BTreeSet::new();
    let oldest = |wait: &WaitRow, given: &BTreeSet<u64>| {
        let left = image.signals().iter().filter(|signal| !given.contains(&signal.number));
        left.filter(|signal| wait.takes(signal)).min_by_key(|signal| signal.number)
    };
    let signal = oldest(wait, &given)?;
    let is_older = |other: &&WaitRow| other.age() < wait.age();
    let mut older: Vec<&WaitRow> = image.open_waits().filter(is_older).collect();
    if !older.iter().any(|other| other.takes(signal)) {
        return Some(signal);
    }
    older.sort_by_key(|other| other.age());
    for other in older {
        given.extend(oldest(other, &given).map(|signal| signal.number));
    }
    oldest(wait, &given)
}

/// Lets every wait look that may get a stored signal. Which of them does depends on what older ones
/// find; one that is not told now would miss what they leave to it. A function that is running is
/// told by its worker.
fn let_look(image: &mut RunImage<'_>, signal: &SignalRow) {
    let now = image.now;
    let takers: Vec<&WaitRow> = image.open_waits().filter(|wait| wait.takes(signal)).collect();
    let is_running = |wait: &&WaitRow| image.state(wait.node) == Some(TaskState::Running);
    let tells = takers.iter().copied().any(|wait| is_running(&wait));
    let has_looked = takers.into_iter().filter(|wait| has_looked(image, wait));
    let looking: Vec<Node> = has_looked.map(|wait| wait.node).collect();
    for node in looking {
        image.set_timer(node, Some(now));
    }
    if tells {
        image.tell_listeners();
    }
}

/// Waits were given up. Signals that were left to them may be for others which have looked already:
/// the leader lets them look again. Whether all of them happen to be loaded here makes no
/// difference: how much is decided on one image is each store's own affair.
pub(super) fn let_others_look(image: &mut RunImage<'_>) {
    if image.run.n_unconsumed == 0 || image.run.status != RunStatus::Running {
        return;
    }
    // One may be set already.
    image.clear_run_timer(RunTimer::LookAgain);
    image.set_run_timer(RunTimer::LookAgain, Duration::ZERO);
}

/// Lets every wait look at what nobody got.
pub(super) fn look_again(image: &mut RunImage<'_>) {
    let is_left = |signal: &&SignalRow| signal.consumed_by.is_none();
    let left: Vec<SignalRow> = image.signals().iter().filter(is_left).cloned().collect();
    for signal in &left {
        let_look(image, signal);
    }
}

/// Gives a stored signal to a task that waits.
pub(super) fn give(image: &mut RunImage<'_>, wait: &WaitRow, signal: &SignalRow) {
    if !wait.key.is_empty() {
        return function::give(image, wait, signal);
    }
    let (node, name, number) = (wait.node, signal.name.clone(), signal.number);
    image.consume_signal(number, node);
    let event = |into| EventKind::Signalled { signal: name, number, into, key: String::new() };
    resume(image, node, Resumed::Signal(number), Because::Signal, event);
}

/// The deadline of a task's wait passed.
pub(super) fn time_out(image: &mut RunImage<'_>, node: Node) {
    let event = |into| EventKind::TimedOut { into, key: String::new() };
    resume(image, node, Resumed::TimedOut, Because::TimeOut, event);
}

/// Ends a task's wait. A wait node is done; a step runs again and is told what ended it.
fn resume(
    image: &mut RunImage<'_>,
    node: Node,
    resumed: Resumed,
    because: Because,
    event: impl FnOnce(TaskState) -> EventKind,
) {
    let is_node = image.definition.graph.kind(node) == NodeKind::Wait;
    let queued = Phase::Queued { since: image.now, due: None };
    let phase = if is_node { Phase::Completed } else { queued };
    let Some(attempt) = image.touch(node).map(|task| {
        task.resumed = Some(resumed);
        task.attempt
    }) else {
        debug_assert!(false, "task {node:?} was not loaded");
        return;
    };
    let event = event(phase.state());
    if !is_node {
        image.close_waits(node);
    }
    image.move_to(node, phase, because);
    image.record(Some(node), attempt, event);
    if is_node {
        resolve_children(image, node);
    }
}
