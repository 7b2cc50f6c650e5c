//! S3: nothing begins before what it waits for is committed.

use std::collections::BTreeMap;

use stepwell::core::id::Node;
use stepwell::core::run::{AttemptRow, AttemptState, Event};
use stepwell::core::time::Timestamp;

use super::CheckedRun;
use crate::history::Mark;

/// The first and the last event of a task.
#[derive(Clone, Copy, Default)]
struct Times {
    first: Option<u64>,
    last: Option<(u64, Timestamp)>,
}

pub(super) fn check(run: &CheckedRun<'_>) -> Vec<String> {
    let mut findings = Vec::new();
    let mut times: BTreeMap<Node, Times> = BTreeMap::new();
    for event in &run.events {
        note(&mut times, event);
    }
    let graph = &run.stored.definition.graph;
    for node in graph.nodes() {
        let name = run.stored.definition.name(node);
        let own = times.get(&node).copied().unwrap_or_default();
        let began = run.history.iter().filter(|line| line.step == name);
        let began = began.filter(|line| matches!(line.mark, Mark::Began(_)));
        let began = began.map(|line| line.at).min();
        for edge in graph.parents(node) {
            let parent = run.stored.definition.name(edge.node);
            let ended = times.get(&edge.node).and_then(|times| times.last);
            let Some((number, at)) = ended else {
                findings.push(format!("step {name}: its parent {parent} never ended"));
                continue;
            };
            // A cascade of skips may write down the child first, in the same commit.
            let is_skipped = run.attempts(name).is_empty();
            if own.first.is_some_and(|first| first < number) && !is_skipped {
                findings.push(format!("step {name} was ready before {parent} had ended"));
            }
            let mut ends = vec![gave_at(run, parent)];
            if !run.has_own_time {
                ends.push(Some(at.as_micros()));
            }
            let is_early = |began: i64| ends.iter().flatten().any(|end| began < *end);
            if began.is_some_and(is_early) {
                findings.push(format!("step {name} began before the end of {parent}"));
            }
        }
    }
    findings
}

/// When the execution of a step that counts gave its output, as its process wrote it down.
fn gave_at(run: &CheckedRun<'_>, step: &str) -> Option<i64> {
    let is_completed = |row: &&&AttemptRow| row.state == AttemptState::Completed;
    let attempt = run.attempts(step).iter().find(is_completed)?.attempt;
    let mut lines = run.history.iter().filter(|line| line.step == step && line.attempt == attempt);
    lines.find(|line| matches!(line.mark, Mark::Gave(_))).map(|line| line.at)
}

fn note(times: &mut BTreeMap<Node, Times>, event: &Event) {
    let (Some(node), Some(number)) = (event.node, event.number) else { return };
    let times = times.entry(node).or_default();
    times.first.get_or_insert(number);
    times.last = Some((number, event.at));
}
