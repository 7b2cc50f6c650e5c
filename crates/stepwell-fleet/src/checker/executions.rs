//! Executions: what the store accepted was executed, and nothing was executed without need.

use std::collections::{BTreeMap, BTreeSet};

use stepwell::core::run::{AttemptRow, AttemptState, RunStatus, TaskState};

use super::{CheckedRun, Faults};
use crate::expected;
use crate::history::{Line, Mark};
use crate::plan::StepPlan;

/// The lines of each run.
pub(super) fn by_run(history: &[Line]) -> BTreeMap<&str, Vec<&Line>> {
    let mut runs: BTreeMap<&str, Vec<&Line>> = BTreeMap::new();
    for line in history {
        runs.entry(&line.run).or_default().push(line);
    }
    runs
}

/// How many executions began.
pub(super) fn n_begun(history: &[Line]) -> usize {
    history.iter().filter(|line| matches!(line.mark, Mark::Began(_))).count()
}

pub(super) fn check(run: &CheckedRun<'_>, faults: Faults) -> Vec<String> {
    let mut findings = Vec::new();
    let outputs = expected::outputs(run.plan, run.input, &run.timed_out);
    for (place, step) in run.plan.steps.iter().enumerate() {
        let name = StepPlan::name(place);
        let lines: Vec<&Line> =
            run.history.iter().copied().filter(|line| line.step == name).collect();
        let attempts = run.attempts(&name);
        let is_completed = run.state(&name) == Some(TaskState::Completed);
        let output = outputs[place].filter(|_| is_completed);
        let is_whole = run.log.run.status == RunStatus::Completed;
        let may_be = MayBe { faults, is_cancelled: !is_whole };
        let mut of_step = accepted_wrong(step, output, attempts, &lines, may_be);
        let seen = expected::seen(step, place, run.input, &outputs, &run.timed_out);
        of_step.extend(executed_wrong(&seen, attempts, &lines));
        findings.extend(of_step.into_iter().map(|finding| format!("step {name}: {finding}")));
    }
    findings
}

/// What may have ended attempts besides their plan.
#[derive(Clone, Copy)]
struct MayBe {
    faults: Faults,
    /// Whether the run ended early.
    is_cancelled: bool,
}

/// S9, S10: exactly one attempt succeeded; each attempt ended as was planned, or by a fault that
/// the fleet had; and its worker wrote down that it executed it.
fn accepted_wrong(
    step: &StepPlan,
    output: Option<u64>,
    attempts: &[&AttemptRow],
    lines: &[&Line],
    MayBe { faults, is_cancelled }: MayBe,
) -> Vec<String> {
    let mut findings = Vec::new();
    let is_completed = |row: &&&AttemptRow| row.state == AttemptState::Completed;
    let n_completed = attempts.iter().filter(is_completed).count();
    if n_completed != usize::from(output.is_some()) {
        findings.push(format!("{n_completed} of its attempts succeeded"));
    }
    for row in attempts {
        let is_planned = match row.state {
            AttemptState::Completed => row.attempt > step.last_failure(),
            AttemptState::Failed => row.attempt <= step.last_failure(),
            AttemptState::Suspended => step.own_wait().is_some(),
            AttemptState::Cancelled => is_cancelled,
            AttemptState::Released => faults >= Faults::Restarts,
            AttemptState::Lost => faults >= Faults::Crashes,
            _ => false,
        };
        let (attempt, state) = (row.attempt, row.state);
        if !is_planned {
            findings.push(format!("attempt {attempt} ended {state}, with faults {faults:?}"));
        }
        let mark = match state {
            AttemptState::Completed => output.map(Mark::Gave),
            AttemptState::Failed => Some(Mark::Failed),
            AttemptState::Suspended => Some(Mark::Waits),
            _ => continue,
        };
        let by_worker =
            |line: &&&Line| line.attempt == attempt && line.process == row.claim.worker.as_str();
        if !lines.iter().filter(by_worker).any(|line| Some(&line.mark) == mark.as_ref()) {
            let worker = &row.claim.worker;
            findings.push(format!("attempt {attempt} is {state}, {worker} did not do that"));
        }
    }
    findings
}

/// S3, S5, S7: every execution stems from a claim of its own, was given what its parents left,
/// and began once.
fn executed_wrong(seen: &[Option<u64>], attempts: &[&AttemptRow], lines: &[&Line]) -> Vec<String> {
    let mut findings = Vec::new();
    let mut begun = BTreeSet::new();
    for line in lines {
        let (attempt, process) = (line.attempt, &line.process);
        let row = attempts.iter().find(|row| row.attempt == attempt);
        let is_own = row.is_some_and(|row| row.claim.worker.as_str() == process);
        if !is_own {
            let owner = row.map(|row| row.claim.worker.as_str());
            findings.push(format!("{process} executed attempt {attempt} of {owner:?}"));
        }
        if let Mark::Began(values) = &line.mark {
            if !begun.insert(attempt) {
                findings.push(format!("attempt {attempt} was executed twice"));
            }
            if values != seen {
                findings.push(format!("attempt {attempt} was given {values:?}, not {seen:?}"));
            }
        }
    }
    findings
}
