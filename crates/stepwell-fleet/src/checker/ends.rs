//! How runs ended: they completed, were cancelled by somebody who asked for it, or missed their
//! deadline. Nothing started afterwards.

use stepwell::CancelAnswer;
use stepwell::core::failure::FailureKind;
use stepwell::core::id::Node;
use stepwell::core::run::{AttemptState, EventKind, RunStatus, TaskState};
use stepwell::core::time::Timestamp;

use super::CheckedRun;
use crate::history::Mark;

/// The name of the failure handler's task.
const HANDLER: &str = "on_failure";

pub(super) fn check(run: &CheckedRun<'_>) -> Vec<String> {
    let mut findings = Vec::new();
    let status = run.log.run.status;
    findings.extend(match status {
        RunStatus::Completed => None,
        RunStatus::Cancelled => not_asked_for(run),
        RunStatus::Failed => not_late(run),
        _ => Some(format!("it is {status} and has not ended")),
    });
    findings.extend(answered_wrong(run));
    findings.extend(handled_wrong(run));
    findings.extend(started_late(run));
    findings
}

/// Whether a cancel is in the log that was made by force.
fn cancelled(run: &CheckedRun<'_>) -> Option<bool> {
    match run.run_event("RUN_CANCELLED")?.kind {
        EventKind::RunCancelled { forced, .. } => Some(forced),
        _ => None,
    }
}

/// S12: a cancelled run was cancelled, and somebody had asked for that.
fn not_asked_for(run: &CheckedRun<'_>) -> Option<String> {
    match (cancelled(run), run.cancel) {
        (Some(forced), Some(asked)) if asked.force == forced => None,
        (logged, asked) => Some(format!("it is CANCELLED, by {logged:?}, asked for {asked:?}")),
    }
}

/// A failed run missed its deadline, not a moment before, and says so. Nothing else fails runs.
fn not_late(run: &CheckedRun<'_>) -> Option<String> {
    let row = &run.log.run;
    let kind = row.failure.as_ref().map(|failure| failure.failure.kind);
    let passed_at = run.run_event("DEADLINE_PASSED").map(|event| event.at);
    let is_right = kind == Some(FailureKind::Deadline)
        && row.deadline.is_some_and(|deadline| passed_at.is_some_and(|at| at >= deadline));
    let (deadline, failure) = (row.deadline, &row.failure);
    (!is_right).then(|| {
        format!("it is FAILED: deadline {deadline:?}, passed {passed_at:?}, for {failure:?}")
    })
}

/// FB6: the answer to a cancel is what became of the run.
fn answered_wrong(run: &CheckedRun<'_>) -> Option<String> {
    let (asked, status) = (run.cancel?, run.log.run.status);
    let is_logged = cancelled(run).is_some();
    let is_right = match asked.answer {
        CancelAnswer::Cancelled => is_logged && status == RunStatus::Cancelled,
        CancelAnswer::ForcedToEnd(end) => is_logged && end == status,
        CancelAnswer::AlreadyEnding(end) | CancelAnswer::AlreadyEnded(end) => {
            end == status && (asked.is_repeated || !is_logged)
        }
    };
    (!is_right).then(|| format!("it is {status} after {asked:?}, with a cancel: {is_logged}"))
}

/// A run that fails has its failure handler executed, unless that was forced to end.
fn handled_wrong(run: &CheckedRun<'_>) -> Option<String> {
    let state = run.state(HANDLER);
    let is_due = run.plan.has_handler && run.log.run.status == RunStatus::Failed;
    let by = |row: &&stepwell::core::run::AttemptRow| {
        let lines = run.history.iter().filter(|line| line.step == HANDLER);
        let mut own = lines.filter(|line| line.process == row.claim.worker.as_str());
        row.state == AttemptState::Completed && own.any(|line| line.mark == Mark::Gave(0))
    };
    let n_completed = run.attempts(HANDLER).iter().filter(|row| by(row)).count();
    let is_right = match state {
        None => !is_due,
        Some(TaskState::Completed) => is_due && n_completed == 1,
        Some(TaskState::Cancelled) => is_due && cancelled(run) == Some(true) && n_completed == 0,
        Some(_) => false,
    };
    (!is_right).then(|| format!("its failure handler is {state:?}, {n_completed} completed"))
}

/// S12: no step starts once the run is cancelled, nor from its deadline on.
fn started_late(run: &CheckedRun<'_>) -> Vec<String> {
    let just_after = |at: Timestamp| Timestamp::from_micros(at.as_micros() + 1);
    let cancelled_at = run.run_event("RUN_CANCELLED").map(|event| just_after(event.at));
    let over = [cancelled_at, run.log.run.deadline].into_iter().flatten().min();
    let steps = run.log.attempts.iter().filter(|attempt| attempt.node != Node::ON_FAILURE);
    let late = steps.filter(|attempt| over.is_some_and(|over| attempt.claim.started_at >= over));
    late.map(|attempt| format!("{:?} started at {:?}, after {over:?}", attempt.node, attempt.claim))
        .collect()
}
