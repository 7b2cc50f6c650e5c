//! Runs: none is lost, and the steps of each left what its plan and input say.

use std::collections::BTreeSet;

use stepwell::core::run::{RunStatus, TaskState};

use super::{CheckedRun, Evidence};
use crate::expected;
use crate::plan::StepPlan;

/// S1: every acknowledged start exists.
pub(super) fn lost_starts(evidence: &Evidence) -> Vec<String> {
    let stored: BTreeSet<&str> =
        evidence.dump.runs.values().map(|log| log.run.id.as_str()).collect();
    let lost = evidence.asked.acknowledged.iter().filter(|id| !stored.contains(id.as_str()));
    lost.map(|id| format!("the start of run {id} was acknowledged and is lost")).collect()
}

/// S7, S16: every step ended as it must, with the output it must have; in a run that ended early
/// it may be cancelled as well.
pub(super) fn check(run: &CheckedRun<'_>) -> Vec<String> {
    let mut findings = Vec::new();
    let is_whole = run.log.run.status == RunStatus::Completed;
    let outputs = expected::outputs(run.plan, run.input, &run.timed_out);
    for (place, expected) in outputs.iter().enumerate() {
        let name = StepPlan::name(place);
        let state = if expected.is_some() { TaskState::Completed } else { TaskState::Skipped };
        let actual = run.state(&name);
        let output = run.outputs.get(name.as_str()).copied();
        if actual == Some(TaskState::Cancelled) && !is_whole && output.is_none() {
            continue;
        }
        if actual != Some(state) {
            findings.push(format!("step {name} is {actual:?}, it should be {state}"));
        }
        if output != *expected {
            findings.push(format!("step {name} left {output:?}, it should be {expected:?}"));
        }
        findings.extend(nap_wrong(run, place));
        findings.extend(wait_wrong(run, place));
    }
    findings
}

/// A sleep ends as the step before it did: it was slept, or it is skipped.
fn nap_wrong(run: &CheckedRun<'_>, place: usize) -> Option<String> {
    let step = &run.plan.steps[place];
    step.nap?;
    let parent = run.state(&StepPlan::name(step.parents[0]))?;
    let name = StepPlan::nap_name(place);
    let actual = run.state(&name);
    (actual != Some(parent)).then(|| format!("sleep {name} is {actual:?}, it should be {parent}"))
}

/// A wait ends as the step before it did: it got what it was sent, or it is skipped.
fn wait_wrong(run: &CheckedRun<'_>, place: usize) -> Option<String> {
    let step = &run.plan.steps[place];
    let wait = step.wait_before()?;
    let parent = run.state(&StepPlan::name(step.parents[0]))?;
    let name = StepPlan::wait_name(place);
    let actual = run.state(&name);
    let is_reached = parent == TaskState::Completed;
    let received = expected::received(wait, place, run.input, &run.timed_out);
    let expected = received.filter(|_| is_reached);
    let got = run.outputs.get(name.as_str()).copied();
    let is_right = actual == Some(parent) && got == expected;
    (!is_right).then(|| format!("wait {name} is {actual:?} with {got:?}, not {expected:?}"))
}
