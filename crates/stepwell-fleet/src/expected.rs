//! What must become of a run, worked out from its plan, its input, and which of its waits timed
//! out.

use std::collections::BTreeSet;

use crate::plan::{Plan, StepPlan, WaitPlan, output, signal};

/// Places of the steps whose wait timed out.
pub type TimedOut = BTreeSet<usize>;

/// What each step of a run must leave: its output, or `None` if it is skipped.
#[must_use]
pub fn outputs(plan: &Plan, input: u64, timed_out: &TimedOut) -> Vec<Option<u64>> {
    let mut outputs: Vec<Option<u64>> = Vec::new();
    for (place, step) in plan.steps.iter().enumerate() {
        // A wait that timed out is no parent that was skipped.
        let mut is_left = step.parents.iter().map(|parent| outputs[*parent].is_some());
        let goes_along = if step.needs_all {
            !is_left.all(|is_left| is_left)
        } else {
            !step.parents.is_empty() && !is_left.any(|is_left| is_left)
        };
        let parents = seen(step, place, input, &outputs, timed_out);
        let is_skipped = goes_along || step.is_skipped(&parents);
        let own = step.own_wait().map(|wait| received(wait, place, input, timed_out));
        let given: Vec<Option<u64>> = parents.into_iter().chain(own).collect();
        outputs.push((!is_skipped).then(|| output(input, place, &given)));
    }
    outputs
}

/// What a step is given, out of what all steps left and what it was sent.
#[must_use]
pub fn seen(
    step: &StepPlan,
    place: usize,
    input: u64,
    outputs: &[Option<u64>],
    timed_out: &TimedOut,
) -> Vec<Option<u64>> {
    let mut seen: Vec<Option<u64>> = step.parents.iter().map(|parent| outputs[*parent]).collect();
    if let Some(wait) = step.wait_before() {
        // A wait is skipped with the step before it.
        seen.push(seen[0].and_then(|_| received(wait, place, input, timed_out)));
    }
    seen
}

/// What a wait got; `None` if it timed out.
#[must_use]
pub fn received(wait: WaitPlan, place: usize, input: u64, timed_out: &TimedOut) -> Option<u64> {
    let is_received = wait.is_sent && !timed_out.contains(&place);
    is_received.then(|| signal(input, place))
}

/// The id of a run tells its input, so that everything about it can be checked from the store.
#[must_use]
pub fn run_id(label: &str, input: u64) -> String {
    format!("{label}-{input:016x}")
}

/// The input of the run with this id.
#[must_use]
pub fn input_of(run_id: &str) -> Option<u64> {
    let (_, input) = run_id.rsplit_once('-')?;
    u64::from_str_radix(input, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan;

    #[test]
    fn random_graphs_skip_some_steps_for_some_inputs() {
        let plans = plan::all();
        let in_time = TimedOut::new();
        let (plans, in_time) = (&plans, &in_time);
        let outputs = |input| plans.iter().flat_map(move |plan| outputs(plan, input, in_time));
        assert!((0..20).flat_map(outputs).any(|output| output.is_none()));
        assert!((0..20).flat_map(outputs).any(|output| output.is_some()));
    }

    #[test]
    fn an_id_tells_the_input() {
        assert_eq!(input_of(&run_id("a-b", 77)), Some(77));
        assert_eq!(input_of("other"), None);
    }
}
