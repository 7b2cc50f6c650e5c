//! A task's timer fires.

use super::complete::resolve_children;
use crate::id::Node;
use crate::run::{Because, EventKind, Phase, RunImage, TaskState};

/// A sleep node is done; a delayed retry enters its queue now, stamped anew. A timer that lost
/// its meaning changes nothing.
pub(super) fn wake(image: &mut RunImage<'_>, node: Node) {
    match image.task(node).map(|task| &task.phase) {
        Some(Phase::Sleeping { .. }) => {
            image.move_to(node, Phase::Completed, Because::Wake);
            image.record(Some(node), 0, EventKind::Woken { into: TaskState::Completed });
            resolve_children(image, node);
        }
        Some(Phase::Queued { due: Some(_), .. }) => image.release_delayed(node),
        _ => {}
    }
}
