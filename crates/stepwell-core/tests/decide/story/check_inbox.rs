//! The invariants of waits and signals: each signal is given at most once, to the wait it is for,
//! in time and in turn, and none is left lying that somebody waits for.

use std::collections::{BTreeMap, BTreeSet};

use stepwell_core::id::Node;
use stepwell_core::limits::UNCONSUMED_SIGNALS_MAX;
use stepwell_core::run::{
    EventKind, EventRow, MemoOutcome, MemoRow, Phase, Resumed, RunStatus, SignalRow, TaskRow,
    TaskState, WaitKind, WaitRow, read_log,
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
/// deadline, or due. Waits of functions stand as long as their task is open.
fn waits(story: &Story) {
    for (node, task) in &story.tasks {
        let of_task = || story.waits.values().filter(|wait| wait.node == *node);
        let is_waiting = task.state() == TaskState::Waiting;
        let is_at_work = !is_waiting || story.run.status == RunStatus::Running;
        assert!(is_at_work, "only runs at work wait");
        let as_a_whole = of_task().filter(|wait| wait.key.is_empty()).count();
        assert!(as_a_whole <= usize::from(is_waiting), "{node:?} waits as a whole");
        let listens = of_task().any(|wait| wait.kind == WaitKind::Signal);
        assert!(!is_waiting || listens, "{node:?} is WAITING for nothing");
        let is_open = !task.state().is_terminal();
        let may_have = is_waiting || (task.may_have_waits() && is_open);
        assert!(may_have || of_task().next().is_none(), "{node:?} has waits left");
        if matches!(task.phase, Phase::Waiting { .. } | Phase::Sleeping { .. }) {
            timer(story, task, &of_task().collect::<Vec<_>>());
        }
    }
}

/// A task that waits or sleeps has said so last, and its timer is that of the first deadline of its
/// waits, or due.
fn timer(story: &Story, task: &TaskRow, waits: &[&WaitRow]) {
    let node = task.node;
    if waits.is_empty() {
        return;
    }
    let opened = story.events.iter().rev().find(|event| event.node == Some(node));
    let opened = opened.expect("the log tells of the wait");
    let earliest = waits.iter().filter_map(|wait| wait.deadline).min();
    let until = match &opened.kind {
        EventKind::Waiting { signals, matching, until, keys } => {
            if let [wait] = waits {
                assert_eq!((signals, matching), (&wait.signals, &wait.matching));
                assert_eq!(keys.is_empty(), wait.key.is_empty(), "keys of functions are told");
            }
            *until
        }
        EventKind::Sleeping { until, .. } => Some(*until),
        other => panic!("{node:?} waits after {other:?}"),
    };
    assert_eq!(until, earliest);
    let due = task.phase.due();
    let is_due = due.is_some_and(|due| due <= story.now);
    assert!(due == earliest || is_due, "{node:?} waits until {due:?}");
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
    // What a running function hears of is no event: its memo tells.
    let heard = |(number, node): &(u64, Option<Node>)| {
        let is_it = |memo: &&MemoRow| {
            memo.outcome == MemoOutcome::Ended(Resumed::Signal(*number)) && Some(memo.node) == *node
        };
        story.all_memos.iter().any(|memo| is_it(&memo))
    };
    let unlogged = consumed.iter().filter(|given| !logged.contains(given));
    assert!(unlogged.clone().all(heard), "a signal is given once, and that is logged");
    assert!(logged.iter().all(|given| consumed.contains(given)), "what is logged was given");
}

/// What ended a task's last wait stays with it until it waits again or has an output.
fn resumed(story: &Story) {
    let mut last: BTreeMap<Node, Resumed> = BTreeMap::new();
    for event in read_log(&story.log()) {
        let Some(node) = event.node else { continue };
        match event.kind {
            EventKind::Waiting { keys, .. } if keys.is_empty() => drop(last.remove(&node)),
            EventKind::Completed { .. } | EventKind::Continued { .. } => drop(last.remove(&node)),
            EventKind::TimedOut { key, .. } if key.is_empty() => {
                last.insert(node, Resumed::TimedOut);
            }
            EventKind::Signalled { number, key, .. } if key.is_empty() => {
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
    let is_looked_at_again = story.timers.contains_key(&Node::LOOK_AGAIN);
    for (wait, signal) in shares(story) {
        let task = &story.tasks[&wait.node];
        let is_due = task.phase.due().is_some_and(|due| due <= story.now);
        // A function that runs, or will, looks by itself.
        let is_active = matches!(task.state(), TaskState::Running | TaskState::Queued);
        let will_look = is_due || is_active || is_looked_at_again;
        assert!(will_look, "{:?} waits and signal {} lies there", wait.node, signal.number);
    }
}

/// What each open wait would get if all looked now, the oldest first.
fn shares(story: &Story) -> Vec<(&WaitRow, &SignalRow)> {
    let mut waits: Vec<&WaitRow> = story.waits.values().collect();
    waits.sort_by_key(|wait| wait.age());
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
    let (EventKind::TimedOut { key, .. } | EventKind::Signalled { key, .. }) = &event.kind else {
        return;
    };
    let is_it = |wait: &&WaitRow| Some(wait.node) == event.node && wait.key == *key;
    // One that opened and ended in the same batch was never written.
    let Some(wait) = story.all_waits.iter().rfind(is_it) else { return };
    // What older waits will get when they look is not for this one.
    let shares = shares(story).into_iter().filter(|(other, _)| other.age() < wait.age());
    let older: Vec<(&WaitRow, u64)> =
        shares.map(|(other, signal)| (other, signal.number)).collect();
    let is_left = |signal: &&SignalRow| !older.iter().any(|(_, n)| *n == signal.number);
    if let EventKind::Signalled { number, .. } = &event.kind {
        let signal = &story.signals[number];
        assert!(is_for(wait, signal), "{:?} got a signal that is not for it", wait.node);
        let mut earlier = unconsumed(story).filter(|other| other.number < *number).filter(is_left);
        let overtaken = earlier.find(|other| is_for(wait, other));
        assert_eq!(overtaken, None, "signal {number} overtook another");
        let is_older = |other: &&WaitRow| other.age() < wait.age() && is_for(other, signal);
        for other in story.waits.values().filter(is_older) {
            let share = older.iter().find(|(of, _)| of.age() == other.age());
            let is_better_off = share.is_some_and(|(_, share)| share < number);
            assert!(is_better_off, "{:?} waits for longer than {:?}", other.node, wait.node);
        }
        return;
    }
    assert!(wait.deadline.is_some_and(|deadline| deadline <= event.at), "an early time-out");
    let missed = unconsumed(story).filter(is_left).find(|signal| is_for(wait, signal));
    assert_eq!(missed, None, "{:?} timed out over a signal", wait.node);
}
