//! Waits and signals: whoever waits has an open wait, and a signal is given once, in order, to a
//! wait that is for it.

use std::collections::{BTreeMap, BTreeSet};

use stepwell_core::id::Node;
use stepwell_core::run::{
    Attributes, Event, EventKind, MemoRow, Phase, Resumed, RunLog, SignalRow, TaskRow, WaitKind,
    WaitRow, read_log,
};

use super::{Findings, memos};
use crate::ports::StoreDump;

/// What the log tells of the last wait of a task.
#[derive(Default)]
struct Heard<'log> {
    /// The event that opened the wait it is in.
    open: Option<&'log Event>,
    /// What ended its last wait, as long as that counts.
    resumed: Option<Resumed>,
}

/// Who got which signal by which event, as the log tells.
type Given = BTreeMap<u64, Vec<(u64, Node)>>;

pub(super) fn check(dump: &StoreDump, log: &RunLog, tasks: &[TaskRow], findings: &mut Findings) {
    let key = log.run.key;
    let waits = dump.waits.get(&key).map(Vec::as_slice).unwrap_or_default();
    let signals = dump.signals.get(&key).map(Vec::as_slice).unwrap_or_default();
    counters(log, signals, findings);
    let events = read_log(log);
    let (heard, given) = listen(&events, signals, findings);
    for task in tasks {
        let resumed = heard.get(&task.node).and_then(|heard| heard.resumed);
        findings.expect(task.resumed == resumed, || {
            format!("task {:?} has {:?}, its log {resumed:?}", task.node, task.resumed)
        });
    }
    let memos = dump.memos.get(&key).map(Vec::as_slice).unwrap_or_default();
    memos::check(memos, tasks, signals, findings);
    check_waits(tasks, waits, &heard, findings);
    // What was left to a wait that was given up is about to be looked at.
    if !dump.timers.contains_key(&(key, Node::LOOK_AGAIN)) {
        check_looks(tasks, waits, signals, findings);
    }
    check_given(signals, &given, memos, findings);
    if memos.is_empty() {
        check_order(signals, &given, findings);
    }
}

/// Waits, signals and memos belong to runs.
pub(super) fn check_owners(dump: &StoreDump, findings: &mut Findings) {
    let owners = dump.waits.keys().chain(dump.signals.keys()).chain(dump.memos.keys());
    for key in owners.filter(|key| !dump.runs.contains_key(*key)) {
        findings.add(format!("waits, signals or memos belong to run {key}, which does not exist"));
    }
}

/// Signals are numbered without gaps in the order they came, each under a key of its own, and the
/// run counts them.
fn counters(log: &RunLog, signals: &[SignalRow], findings: &mut Findings) {
    let run = &log.run;
    let is_dense = signals.iter().map(|signal| signal.number).eq(1..=run.n_signals);
    findings.expect(is_dense, || {
        format!("n_signals is {}, but {} are there, or not in order", run.n_signals, signals.len())
    });
    let n_unconsumed = signals.iter().filter(|signal| signal.consumed_by.is_none()).count();
    findings.expect(run.n_unconsumed as usize == n_unconsumed, || {
        format!("n_unconsumed is {}, but {n_unconsumed} are", run.n_unconsumed)
    });
    let keys: BTreeSet<&str> = signals.iter().map(|signal| signal.key.as_str()).collect();
    findings.expect(keys.len() == signals.len(), || "a key stands twice".to_owned());
    let times = signals.iter().map(|signal| signal.sent_at);
    let is_in_order = times.clone().is_sorted() && times.min().is_none_or(|t| t >= run.started_at);
    findings.expect(is_in_order, || "a signal was sent before the one before it".to_owned());
}

/// Reads who waited and who got what. What ended a wait was what it was for, in time.
fn listen<'log>(
    events: &'log [Event],
    signals: &[SignalRow],
    findings: &mut Findings,
) -> (BTreeMap<Node, Heard<'log>>, Given) {
    let mut heard: BTreeMap<Node, Heard<'log>> = BTreeMap::new();
    let mut given = Given::new();
    for event in events {
        let (Some(node), Some(number)) = (event.node, event.number) else { continue };
        let of_task = heard.entry(node).or_default();
        match &event.kind {
            // What a function waits for is told by its waits, and what it got by its memos.
            EventKind::Waiting { keys, .. } if !keys.is_empty() => {}
            EventKind::TimedOut { key, .. } if !key.is_empty() => {}
            EventKind::Signalled { number: signal, key, .. } if !key.is_empty() => {
                given.entry(*signal).or_default().push((number, node));
            }
            EventKind::Waiting { .. } => {
                *of_task = Heard { open: Some(event), resumed: None };
            }
            EventKind::Signalled { signal: name, number: signal, .. } => {
                given.entry(*signal).or_default().push((number, node));
                let row = signals.iter().find(|row| row.number == *signal && row.name == *name);
                let fits = row.is_some_and(|row| was_for(of_task.open.take(), row));
                findings.expect(fits, || format!("{node:?} got {name:?} ({signal}) wrongly"));
                of_task.resumed = Some(Resumed::Signal(*signal));
            }
            EventKind::TimedOut { .. } => {
                let is_over = of_task.open.take().is_some_and(|wait| is_over(wait, event));
                findings.expect(is_over, || format!("{node:?} timed out before it was due"));
                of_task.resumed = Some(Resumed::TimedOut);
            }
            EventKind::Completed { .. } | EventKind::Continued { .. } => of_task.resumed = None,
            EventKind::Cancelled => of_task.open = None,
            _ => {}
        }
    }
    (heard, given)
}

/// Whether a wait was for a signal that came in time.
fn was_for(wait: Option<&Event>, signal: &SignalRow) -> bool {
    let Some(Event { at, kind: EventKind::Waiting { signals, matching, until, .. }, .. }) = wait
    else {
        return false;
    };
    let carries = |(name, value)| signal.attributes.get(name) == Some(value);
    let is_in_time = until.is_none_or(|until| signal.sent_at < until) || signal.sent_at <= *at;
    signals.contains(&signal.name) && matching.iter().all(carries) && is_in_time
}

fn is_over(wait: &Event, timed_out: &Event) -> bool {
    let EventKind::Waiting { until, .. } = &wait.kind else { return false };
    until.is_some_and(|until| until <= timed_out.at)
}

/// A wait row stands for each task that is WAITING as a whole, and says what the log says. Those of
/// functions stand as long as their task is open. They are listed oldest first.
fn check_waits(
    tasks: &[TaskRow],
    waits: &[WaitRow],
    heard: &BTreeMap<Node, Heard<'_>>,
    findings: &mut Findings,
) {
    findings.expect(waits.is_sorted_by_key(WaitRow::age), || {
        "waits are not listed oldest first".to_owned()
    });
    let keys: BTreeSet<(Node, &str)> = waits.iter().map(|w| (w.node, w.key.as_str())).collect();
    findings.expect(keys.len() == waits.len(), || "a wait stands twice".to_owned());
    for task in tasks {
        let of_task: Vec<&WaitRow> = waits.iter().filter(|wait| wait.node == task.node).collect();
        let is_waiting = matches!(task.phase, Phase::Waiting { .. });
        let may_have = task.may_have_waits() && !task.state().is_terminal();
        let fits = match (is_waiting, &of_task[..]) {
            (true, [wait]) => wait.kind == WaitKind::Signal,
            (true, waits) => may_have && waits.iter().any(|wait| wait.kind == WaitKind::Signal),
            (false, []) => true,
            (false, waits) => may_have && waits.iter().all(|wait| !wait.key.is_empty()),
        };
        findings.expect(fits, || format!("task {:?} waits for {of_task:?}", task.phase));
    }
    let is_of_task = |wait: &WaitRow| tasks.iter().any(|task| task.node == wait.node);
    findings.expect(waits.iter().all(is_of_task), || "a wait belongs to no task".to_owned());
    for wait in waits.iter().filter(|wait| wait.key.is_empty()) {
        let opened = heard.get(&wait.node).and_then(|heard| heard.open);
        findings.expect(opened.is_some_and(|event| is_told_by(wait, event)), || {
            format!("{wait:?} was opened by {opened:?}")
        });
    }
}

fn is_told_by(wait: &WaitRow, event: &Event) -> bool {
    let EventKind::Waiting { signals, matching, until, .. } = &event.kind else { return false };
    (event.number, event.at) == (Some(wait.number), wait.opened_at)
        && (signals, matching, until) == (&wait.signals, &wait.matching, &wait.deadline)
}

/// A task that waits has its timer at the first of the deadlines of its waits, or before that to
/// look at signals. One that has looked was given what was for it, unless an older wait may want
/// the same and has yet to look. A function that is not suspended has yet to look.
fn check_looks(
    tasks: &[TaskRow],
    waits: &[WaitRow],
    signals: &[SignalRow],
    findings: &mut Findings,
) {
    let phases: BTreeMap<Node, &Phase> = tasks.iter().map(|t| (t.node, &t.phase)).collect();
    let first = |wait: &WaitRow| {
        let of_task = waits.iter().filter(|other| other.node == wait.node);
        of_task.filter_map(|wait| wait.deadline).min()
    };
    let has_looked = |wait: &WaitRow| match phases.get(&wait.node) {
        // The timer of a wait for no time at all is at its deadline before it has looked.
        Some(Phase::Waiting { due }) => *due == first(wait) && *due != Some(wait.opened_at),
        _ => false,
    };
    for wait in waits {
        if let Some(Phase::Waiting { due }) = phases.get(&wait.node) {
            let (due, first) = (*due, first(wait));
            let is_before = |due| first.is_none_or(|first| due <= first.max(wait.opened_at));
            let is_due = due == first || due.is_some_and(is_before) || !wait.key.is_empty();
            findings.expect(is_due, || format!("{wait:?} has its timer at {due:?}"));
            findings.expect(due.is_none_or(|due| due >= wait.opened_at), || {
                format!("{wait:?} has its timer at {due:?}")
            });
        }
        for signal in signals.iter().filter(|signal| wait.takes(signal)) {
            let is_first = |other: &&WaitRow| other.takes(signal) && other.age() <= wait.age();
            let is_looked_at = !waits.iter().filter(is_first).all(has_looked);
            findings.expect(is_looked_at, || {
                format!("{:?} waits for signal {} and was not given it", wait.node, signal.number)
            });
        }
    }
}

/// A consumed signal was given once, to the task that its row names; any other to nobody.
fn check_given(signals: &[SignalRow], given: &Given, memos: &[MemoRow], findings: &mut Findings) {
    for signal in signals {
        let receivers = given.get(&signal.number).map(Vec::as_slice).unwrap_or_default();
        let mut receivers: Vec<Node> = receivers.iter().map(|(_, node)| *node).collect();
        if receivers.is_empty() {
            let by_memo = |node: &Node| memos::tell_of(memos, *node, signal.number);
            receivers.extend(signal.consumed_by.filter(by_memo));
        }
        findings.expect(receivers == signal.consumed_by.as_slice(), || {
            let SignalRow { number, consumed_by, .. } = signal;
            format!("signal {number} is consumed by {consumed_by:?} and was given to {receivers:?}")
        });
    }
}

/// Signals of one name and the same attributes are given in the order they were stored.
fn check_order(signals: &[SignalRow], given: &Given, findings: &mut Findings) {
    let mut last: BTreeMap<(&str, &Attributes), u64> = BTreeMap::new();
    for signal in signals {
        let event = given.get(&signal.number).and_then(|given| given.first());
        let at = event.map_or(u64::MAX, |(number, _)| *number);
        let before = last.insert((signal.name.as_str(), &signal.attributes), at).unwrap_or(0);
        findings.expect(before <= at, || format!("signal {} was given too early", signal.number));
    }
}
