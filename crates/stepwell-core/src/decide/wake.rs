//! A task's timer fires.

use alloc::string::String;

use super::complete::resolve_children;
use super::function;
use super::signal::{find_signal, give, time_out};
use crate::id::Node;
use crate::run::{Because, EventKind, Phase, RunImage, TaskState};
use crate::workflow::NodeKind;

/// A sleep node is done; a delayed retry enters its queue now, stamped anew; a wait looks at what
/// was sent, or is over. A timer that lost its meaning changes nothing.
pub(super) fn wake(image: &mut RunImage<'_>, node: Node) {
    match image.task(node).map(|task| &task.phase) {
        Some(Phase::Sleeping { .. }) if is_node(image, node) => {
            image.move_to(node, Phase::Completed, Because::Wake);
            let (into, key) = (TaskState::Completed, String::new());
            image.record(Some(node), 0, EventKind::Woken { into, key });
            resolve_children(image, node);
        }
        Some(Phase::Queued { due: Some(_), .. }) => image.release_delayed(node),
        Some(Phase::Waiting { .. }) if waits_as_a_whole(image, node) => look(image, node),
        Some(Phase::Waiting { .. } | Phase::Sleeping { .. }) => function::wake(image, node),
        _ => {}
    }
}

/// Whether a node sleeps or waits by itself, without code.
fn is_node(image: &RunImage<'_>, node: Node) -> bool {
    image.definition.graph.kind(node) != NodeKind::Step
}

/// Whether a task waits as a whole: a wait node, or a step that answered so.
fn waits_as_a_whole(image: &RunImage<'_>, node: Node) -> bool {
    is_node(image, node) || image.waits_of(node).any(|wait| wait.key.is_empty())
}

/// Gives a waiting task the oldest signal that is for it and came in time. If there is none, the
/// wait is over, or it goes on until its deadline.
fn look(image: &mut RunImage<'_>, node: Node) {
    let Some(wait) = image.open_waits().find(|wait| wait.node == node).cloned() else {
        debug_assert!(false, "the wait of {node:?} was not loaded");
        return;
    };
    match find_signal(image, &wait).cloned() {
        Some(signal) => give(image, &wait, &signal),
        None if wait.is_over(image.now) => time_out(image, node),
        None => image.set_timer(node, wait.deadline),
    }
}
