//! The deadline of a run: its timer stands while the run goes on, and it passes once.

use stepwell_core::failure::FailureKind;
use stepwell_core::id::Node;
use stepwell_core::run::{EventKind, RunLog, RunStatus};
use stepwell_core::time::Timestamp;

use super::Findings;

pub(super) fn check(log: &RunLog, timer: Option<Timestamp>, findings: &mut Findings) {
    let run = &log.run;
    let due = run.deadline.filter(|_| run.status == RunStatus::Running);
    findings.expect(timer == due, || {
        format!("it is {}, its deadline {:?} and its timer {timer:?}", run.status, run.deadline)
    });
    let passed: Vec<Timestamp> = log
        .events
        .iter()
        .filter(|event| event.kind == EventKind::DeadlinePassed)
        .map(|event| event.at)
        .collect();
    let is_over = |at: &Timestamp| run.deadline.is_some_and(|deadline| deadline <= *at);
    findings.expect(passed.len() <= 1 && passed.iter().all(is_over), || {
        format!("its deadline {:?} passed at {passed:?}", run.deadline)
    });
    let has_failed = run.failure.is_some() && run.status != RunStatus::Running;
    findings.expect(passed.is_empty() || has_failed, || {
        format!("its deadline passed and it is {}", run.status)
    });
    if let Some(failure) = &run.failure {
        let is_deadline = failure.failure.kind == FailureKind::Deadline;
        let is_told = is_deadline == (failure.node == Node::DEADLINE);
        findings.expect(is_told && (!is_deadline || passed.len() == 1), || {
            format!("it failed by {failure:?}, its deadline passed at {passed:?}")
        });
    }
}
