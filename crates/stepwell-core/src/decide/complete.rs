//! A task completes: its children have one parent less to wait for.

use super::{Notes, signal::let_others_look, start::make_ready};
use crate::id::Node;
use crate::run::{AttemptState, Because, EndedAttempt, Phase, RunImage, TaskState};

/// An execution gave an output. What it was resumed with ends here, so that of completed tasks only
/// wait nodes have something they got instead of an output.
pub(super) fn complete(image: &mut RunImage<'_>, node: Node, notes: Notes) {
    let may_have_waits = image.touch(node).is_some_and(|task| {
        task.resumed = None;
        task.may_have_waits()
    });
    let ended = EndedAttempt { notes, ..EndedAttempt::plain(AttemptState::Completed) };
    image.end_attempt(node, ended);
    image.move_to(node, Phase::Completed, Because::Output);
    if may_have_waits {
        let_others_look(image);
    }
    resolve_children(image, node);
}

/// Counts a completed parent down in its children, whatever their state: the counter always
/// equals the unresolved edges. A child that reaches zero while PENDING is ready; the skip rule
/// cannot hold for it, since this parent was not skipped and a skipped parent it needs would
/// have skipped it before.
pub(super) fn resolve_children(image: &mut RunImage<'_>, node: Node) {
    let definition = image.definition;
    for edge in definition.graph.children(node) {
        let Some(child) = image.touch(edge.node) else {
            debug_assert!(false, "child {:?} was not loaded", edge.node);
            continue;
        };
        debug_assert!(child.n_unmet > 0, "fan-in counter of {:?} below zero", edge.node);
        child.n_unmet = child.n_unmet.saturating_sub(1);
        if child.n_unmet == 0 && child.state() == TaskState::Pending {
            make_ready(image, edge.node);
        }
    }
}
