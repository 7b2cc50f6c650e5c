//! Two snapshots of one store: nothing vanishes, what has ended stays, and logs only grow.

use std::collections::BTreeMap;

use stepwell_core::id::Node;
use stepwell_core::run::{Event, RunLog, SignalRow, TaskRow, read_log};

use super::Findings;
use crate::ports::StoreDump;

/// What of the earlier snapshot is missing or different in the later one although it must not
/// be; empty if nothing is.
#[must_use]
pub fn regressions(before: &StoreDump, after: &StoreDump) -> Vec<String> {
    let mut findings = Findings::default();
    for (key, log) in &before.runs {
        // S1
        let Some(later) = after.runs.get(key) else {
            findings.add(format!("run {key} vanished"));
            continue;
        };
        // S8
        let stays = !log.run.status.is_terminal() || log.run == later.run;
        findings.expect(stays, || format!("run {key} had ended and changed"));
        let tasks = before.tasks.get(key).into_iter().flatten();
        let later_tasks: BTreeMap<Node, &TaskRow> =
            after.tasks.get(key).into_iter().flatten().map(|task| (task.node, task)).collect();
        for task in tasks {
            let stays = later_tasks.get(&task.node).is_some_and(|later| absorbs(task, later));
            findings.expect(stays, || format!("task {:?} of run {key} was undone", task.node));
        }
        let mut later_signals = after.signals.get(key).into_iter().flatten();
        for signal in before.signals.get(key).into_iter().flatten() {
            let stays = later_signals.next().is_some_and(|later| is_kept(signal, later));
            findings.expect(stays, || format!("signal {} of run {key} is lost", signal.number));
        }
        // S19, R17
        findings.expect(numbered(later).starts_with(&numbered(log)), || {
            format!("the log of run {key} was rewritten")
        });
    }
    findings.0
}

/// Whether a task that has ended is still what it was. Its counters of parents go on.
fn absorbs(task: &TaskRow, later: &TaskRow) -> bool {
    let numbers = |task: &TaskRow| (task.attempt, task.failures, task.losses, task.resumed);
    !task.state().is_terminal() || (task.phase == later.phase && numbers(task) == numbers(later))
}

/// Whether a signal is still what it was. One that nobody got may have been given since.
fn is_kept(signal: &SignalRow, later: &SignalRow) -> bool {
    let consumed_by = signal.consumed_by.or(later.consumed_by);
    *later == SignalRow { consumed_by, ..signal.clone() }
}

fn numbered(log: &RunLog) -> Vec<Event> {
    let mut events = read_log(log);
    events.retain(|event| event.number.is_some());
    events
}
