//! The deadline of a run: its timer stands while the run goes on, it passes once, and no step
//! starts from then on. Nor does one start after a cancel.

use stepwell_core::failure::FailureKind;
use stepwell_core::id::Node;
use stepwell_core::run::{Claim, EventKind, RunLog, RunStatus, TaskRow};
use stepwell_core::time::Timestamp;

use super::Findings;

pub(super) fn check(log: &RunLog, timer: Option<Timestamp>, findings: &mut Findings) {
    check_starts(log, findings);
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

/// S12: what is claimed was claimed in time, but for the failure handler.
fn check_starts(log: &RunLog, findings: &mut Findings) {
    let is_cancel = |kind: &EventKind| matches!(kind, EventKind::RunCancelled { .. });
    let cancelled = log.events.iter().filter(|event| is_cancel(&event.kind));
    let cancelled_at = cancelled.map(|event| event.at).min();
    let open = log.open.iter().filter_map(|task| Some((task.node, TaskRow::claim(task)?)));
    let ended = log.attempts.iter().map(|attempt| (attempt.node, &attempt.claim));
    for (node, Claim { started_at, .. }) in open.chain(ended) {
        let is_in_time = log.run.deadline.is_none_or(|deadline| *started_at < deadline)
            && cancelled_at.is_none_or(|cancelled_at| *started_at <= cancelled_at);
        findings.expect(is_in_time || node == Node::ON_FAILURE, || {
            let deadline = log.run.deadline;
            format!("{node:?} started at {started_at:?}: {deadline:?}, cancel {cancelled_at:?}")
        });
    }
}
