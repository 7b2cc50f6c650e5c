//! What must become of a run, worked out from its plan and its input alone.

use crate::plan::{Plan, StepPlan, output, signal};

/// What each step of a run must leave: its output, or `None` if it is skipped.
#[must_use]
pub fn outputs(plan: &Plan, input: u64) -> Vec<Option<u64>> {
    let mut outputs: Vec<Option<u64>> = Vec::new();
    for (place, step) in plan.steps.iter().enumerate() {
        let parents = seen(step, place, input, &outputs);
        let goes_along = if step.needs_all {
            parents.iter().any(Option::is_none)
        } else {
            !parents.is_empty() && parents.iter().all(Option::is_none)
        };
        let is_skipped = goes_along || step.is_skipped(&parents);
        outputs.push((!is_skipped).then(|| output(input, place, &parents)));
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
) -> Vec<Option<u64>> {
    let mut seen: Vec<Option<u64>> = step.parents.iter().map(|parent| outputs[*parent]).collect();
    if step.awaits {
        // A wait is skipped with the step before it.
        seen.push(seen[0].map(|_| signal(input, place)));
    }
    seen
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
        let outputs = |input| plans.iter().flat_map(move |plan| outputs(plan, input));
        assert!((0..20).flat_map(outputs).any(|output| output.is_none()));
        assert!((0..20).flat_map(outputs).any(|output| output.is_some()));
    }

    #[test]
    fn an_id_tells_the_input() {
        assert_eq!(input_of(&run_id("a-b", 77)), Some(77));
        assert_eq!(input_of("other"), None);
    }
}
