//! What steps do durably: each leaves a mark that later attempts find, by `ctx.step`.

use std::collections::BTreeSet;

use stepwell::core::id::Node;
use stepwell::core::run::{AttemptRow, AttemptState};

/// A mark that an attempt left or heard of.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    pub(crate) run: u64,
    pub(crate) node: Node,
    pub(crate) attempt: u32,
    /// No two executions give the same.
    pub(crate) value: u64,
    /// Whether the step's code gave it, or the attempt heard of it.
    pub(crate) is_given: bool,
}

/// D2, D5: every attempt hears of the same mark, and one that was left is left again only if the
/// attempt that left it was lost or handed back.
pub(crate) fn marks_wrong(marks: &[&Mark], attempts: &[&AttemptRow]) -> Vec<String> {
    let mut findings = Vec::new();
    let heard: BTreeSet<u64> = marks.iter().filter(|m| !m.is_given).map(|m| m.value).collect();
    let given: Vec<&&Mark> = marks.iter().filter(|mark| mark.is_given).collect();
    if heard.len() > 1 || !heard.iter().all(|value| given.iter().any(|m| m.value == *value)) {
        findings.push(format!("its attempts heard of {heard:?} of {given:?}"));
    }
    let mut by_attempt = given.clone();
    by_attempt.sort_by_key(|mark| mark.attempt);
    for pair in by_attempt.windows(2) {
        let state = attempts.iter().find(|row| row.attempt == pair[0].attempt).map(|row| row.state);
        let is_void = matches!(state, Some(AttemptState::Lost | AttemptState::Released));
        if pair[0].attempt == pair[1].attempt || !is_void {
            findings.push(format!("{:?}, which is {state:?}, and again {:?}", pair[0], pair[1]));
        }
    }
    findings
}
