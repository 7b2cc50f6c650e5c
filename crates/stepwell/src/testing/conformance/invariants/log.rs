//! S19: the log tells the same story as the tables, without a gap.

use stepwell_core::id::Node;
use stepwell_core::run::{Event, EventKind, RunLog, TaskRow, TaskState, fold, read_log};

use super::Findings;

pub(super) fn check(log: &RunLog, tasks: &[TaskRow], findings: &mut Findings) {
    let mut open: Vec<&TaskRow> = log.open.iter().collect();
    open.sort_by_key(|task| task.node);
    let is_open = |task: &&TaskRow| !task.state().is_terminal();
    let expected: Vec<&TaskRow> = tasks.iter().filter(is_open).collect();
    findings.expect(open == expected, || "the log's open tasks are not the table's".to_owned());
    let events = read_log(log);
    let n_numbered = events.iter().filter(|event| event.number.is_some()).count() as u64;
    findings.expect(log.run.next_event == n_numbered + 1, || {
        format!("the next event is {}, but {n_numbered} are written", log.run.next_event)
    });
    check_times(&events, findings);
    let (end, states) = match fold(&events) {
        Ok(folded) => folded,
        Err(error) => return findings.add(format!("its log cannot be folded: {error:?}")),
    };
    findings
        .expect(end == log.run.status, || format!("it is {}, its log says {end}", log.run.status));
    let folded = |node: &Node| states.get(node).copied().unwrap_or(TaskState::Pending);
    for task in tasks.iter().filter(|task| task.state() != folded(&task.node)) {
        let (node, state) = (task.node, task.state());
        findings.add(format!("task {node:?} is {state}, its log says {}", folded(&node)));
    }
}

/// What was decided later has a greater number and no earlier time. An attempt gets its numbers
/// when it ends, so that two of its events tell of times long past.
fn check_times(events: &[Event], findings: &mut Findings) {
    let is_past = |kind: &EventKind| matches!(kind, EventKind::Queued | EventKind::Started { .. });
    let numbered = events.iter().filter(|event| event.number.is_some());
    let decided: Vec<&Event> = numbered.filter(|event| !is_past(&event.kind)).collect();
    for pair in decided.windows(2) {
        let [earlier, later] = [pair[0], pair[1]];
        findings.expect(earlier.at <= later.at, || {
            let [earlier, later] = [earlier, later].map(|event| (event.kind.name(), event.at));
            format!("time goes back from {earlier:?} to {later:?}")
        });
    }
}
