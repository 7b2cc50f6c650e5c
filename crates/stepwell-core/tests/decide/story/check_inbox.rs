//! The invariants of waits and signals: each signal is given at most once, to the wait it is for,
//! in time and in turn, and none is left lying that somebody waits for.

use std::collections::{BTreeMap, BTreeSet};

use stepwell_core::id::Node;
use stepwell_core::limits::UNCONSUMED_SIGNALS_MAX;
use stepwell_core::run::{
    EventKind, EventRow, Resumed, RunStatus, SignalRow, TaskState, WaitRow, read_log,
};

use super::Story;

/// Checks what must hold of the waits and signals of a run at any time.
pub(super) fn invariants(story: &Story) {
    waits(story);
    signals(story);
    resumed(story);
    nothing_is_stranded(story);
}

/// A wait stands for each task that is WAITING, as its last event says. Its timer is that of its
/// deadline, or due.
fn waits(story: &Story) {
    let waiting = story.tasks.values().filter(|task| task.state() == TaskState::Waiting);
    let waiting: BTreeSet<Node> = waiting.map(|task| task.node).collect();
    let standing: BTreeSet<Node> = story.waits.keys().copied().collect();
    assert_eq!(standing, waiting, "a wait stands for each task that is WAITING");
    assert!(waiting.is_empty() || story.run.status == RunStatus::Running, "only runs at work wait");
    for (node, wait) in &story.waits {
        let opened = story.events.iter().rev().find(|event| event.node == Some(*node));
        let opened = opened.expect("the log tells of the wait");
        assert_eq!((opened.number, opened.at), (wait.number, wait.opened_at));
        let EventKind::Waiting { signals, matching, until } = &opened.kind else {
            panic!("{node:?} waits after {:?}", opened.kind);
        };
        assert_eq!((signals, matching), (&wait.signals, &wait.matching));
        assert_eq!(*until, wait.deadline);
        let due = story.tasks[node].phase.due();
        let is_due = due.is_some_and(|due| due <= story.now);
        assert!(due == wait.deadline || is_due, "{node:?} waits until {due:?}");
    }
}

/// The run counts its signals, and their numbers and keys tell them apart.
fn signals(story: &Story) {
    let run = &story.run;
    let numbers: Vec<u64> = story.signals.values().map(|signal| signal.number).collect();
    assert_eq!(numbers, (1..=run.n_signals).collect::<Vec<_>>(), "signals of the run");
    let n_unconsumed = u32::try_from(unconsumed(story).count()).expect("few signals");
    assert_eq!(run.n_unconsumed, n_unconsumed, "signals that nobody got");
    assert!(n_unconsumed <= UNCONSUMED_SIGNALS_MAX);
    let keys: BTreeSet<&str> = story.signals.values().map(|signal| signal.key.as_str()).collect();
    assert_eq!(keys.len(), story.signals.len(), "a key is one signal's");
    let given = |event: &EventRow| match &event.kind {
        EventKind::Signalled { number, .. } => Some((*number, event.node)),
        _ => None,
    };
    let mut logged: Vec<(u64, Option<Node>)> = story.events.iter().filter_map(given).collect();
    logged.sort_unstable();
    let consumed = story.signals.values().filter(|signal| signal.consumed_by.is_some());
    let consumed: Vec<_> = consumed.map(|signal| (signal.number, signal.consumed_by)).collect();
    assert_eq!(logged, consumed, "a signal is given once, and that is logged");
}

/// What ended a task's last wait stays with it until it waits again or has an output.
fn resumed(story: &Story) {
    let mut last: BTreeMap<Node, Resumed> = BTreeMap::new();
    for event in read_log(&story.log()) {
        let Some(node) = event.node else { continue };
        match event.kind {
            EventKind::Waiting { .. } | EventKind::Completed { .. } => drop(last.remove(&node)),
            EventKind::TimedOut { .. } => drop(last.insert(node, Resumed::TimedOut)),
            EventKind::Signalled { number, .. } => {
                last.insert(node, Resumed::Signal(number));
            }
            _ => {}
        }
    }
    for (node, task) in &story.tasks {
        assert_eq!(task.resumed, last.get(node).copied(), "what {node:?} was resumed with");
    }
}

/// Whoever would get a signal if all waits looked now, the oldest first, has its timer due.
fn nothing_is_stranded(story: &Story) {
    for (wait, signal) in shares(story) {
        let due = story.tasks[&wait.node].phase.due();
        let will_look = due.is_some_and(|due| due <= story.now);
        assert!(will_look, "{:?} waits and signal {} lies there", wait.node, signal.number);
    }
}

/// What each open wait would get if all looked now, the oldest first.
fn shares(story: &Story) -> Vec<(&WaitRow, &SignalRow)> {
    let mut waits: Vec<&WaitRow> = story.waits.values().collect();
    waits.sort_by_key(|wait| wait.number);
    let mut left: Vec<&SignalRow> = unconsumed(story).collect();
    let mut shares = Vec::new();
    for wait in waits {
        if let Some(at) = left.iter().position(|signal| is_for(wait, signal)) {
            shares.push((wait, left.remove(at)));
        }
    }
    shares
}

fn unconsumed(story: &Story) -> impl Iterator<Item = &SignalRow> {
    story.signals.values().filter(|signal| signal.consumed_by.is_none())
}

/// Whether a signal is one for a wait and came in time: before it opened, or before its deadline.
fn is_for(wait: &WaitRow, signal: &SignalRow) -> bool {
    let carries = |(name, value)| signal.attributes.get(name) == Some(value);
    let was_there = signal.number <= wait.n_signals_before;
    let in_time = was_there || wait.deadline.is_none_or(|deadline| signal.sent_at < deadline);
    in_time && wait.signals.contains(&signal.name) && wait.matching.iter().all(carries)
}

/// Checks what a wait that ended just now was given, in the light of what is left.
pub(super) fn resumed_rightly(story: &Story, event: &EventRow) {
    let opened = |node| story.all_waits.values().rfind(|wait: &&WaitRow| wait.node == node);
    let wait = event.node.and_then(opened);
    // What older waits will get when they look is not for this one.
    let older = |wait: &WaitRow| {
        let shares = shares(story).into_iter();
        let older = shares.filter(|(other, _)| other.number < wait.number);
        older.map(|(other, signal)| (other.node, signal.number)).collect::<BTreeMap<_, _>>()
    };
    match (&event.kind, wait) {
        (EventKind::TimedOut { .. }, Some(wait)) => {
            assert!(
                wait.deadline.is_some_and(|deadline| deadline <= event.at),
                "an early time-out"
            );
            let older = older(wait);
            let is_left = |signal: &&SignalRow| !older.values().any(|n| *n == signal.number);
            let missed = unconsumed(story).filter(is_left).find(|signal| is_for(wait, signal));
            assert_eq!(missed, None, "{:?} timed out over a signal", wait.node);
        }
        (EventKind::Signalled { number, .. }, Some(wait)) => {
            let signal = &story.signals[number];
            assert!(is_for(wait, signal), "{:?} got a signal that is not for it", wait.node);
            let older = older(wait);
            let is_left = |other: &&SignalRow| {
                other.number < *number && !older.values().any(|n| *n == other.number)
            };
            let overtaken = unconsumed(story).filter(is_left).find(|other| is_for(wait, other));
            assert_eq!(overtaken, None, "signal {number} overtook another");
            let is_older = |other: &&WaitRow| other.number < wait.number && is_for(other, signal);
            for other in story.waits.values().filter(is_older) {
                let share = older.get(&other.node);
                let is_better_off = share.is_some_and(|share| share < number);
                assert!(is_better_off, "{:?} waits for longer than {:?}", other.node, wait.node);
            }
        }
        _ => {}
    }
}
