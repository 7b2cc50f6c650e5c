//! A task is skipped: so are children that cannot do without it, down to the join.

use alloc::boxed::Box;
use alloc::vec;

use super::{start::make_ready, unclaim};
use crate::failure::{Failure, FailureKind};
use crate::id::Node;
use crate::run::{Because, EventKind, Phase, RunFailure, RunImage, TaskState};
use crate::workflow::OutputRule;

/// A claimed task's own condition said no. It leaves no attempt: it reads as skipped from the
/// queue.
pub(super) fn skip_claimed(image: &mut RunImage<'_>, node: Node) {
    unclaim(image, node);
    image.record_queued(node);
    skip(image, node);
}

/// Skips a task and the whole subtree that the skip rule reaches: a child goes along if it needs
/// this parent, or if all its parents were skipped. Other children have one parent less to wait
/// for.
fn skip(image: &mut RunImage<'_>, node: Node) {
    let definition = image.definition;
    mark(image, node);
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        for edge in definition.graph.children(node) {
            let n_parents = definition.graph.parents(edge.node).len();
            let Some(child) = image.touch(edge.node) else {
                debug_assert!(false, "child {:?} was not loaded", edge.node);
                continue;
            };
            debug_assert!(child.n_unmet > 0, "fan-in counter of {:?} below zero", edge.node);
            child.n_unmet = child.n_unmet.saturating_sub(1);
            child.n_skipped += 1;
            if child.state() != TaskState::Pending {
                continue;
            }
            if edge.needed || child.n_skipped as usize == n_parents {
                mark(image, edge.node);
                open.push(edge.node);
            } else if child.n_unmet == 0 {
                make_ready(image, edge.node);
            }
        }
    }
}

fn mark(image: &mut RunImage<'_>, node: Node) {
    image.move_to(node, Phase::Skipped, Because::Skip);
    image.record(Some(node), 0, EventKind::Skipped);
    fail_if_output_is_required(image, node);
}

/// A run that promised its caller an output fails if the step that gives it is skipped.
fn fail_if_output_is_required(image: &mut RunImage<'_>, node: Node) {
    let required = Some(OutputRule { node, required: true });
    if image.definition.policy.output != required || image.run.failure.is_some() {
        return;
    }
    let step = image.definition.name(node);
    let message = alloc::format!("step {step:?} gives the run's output and was skipped");
    let failure = Failure::new(FailureKind::OutputSkipped, "", &message);
    image.run.failure = Some(Box::new(RunFailure { node, step: step.into(), attempt: 0, failure }));
}
