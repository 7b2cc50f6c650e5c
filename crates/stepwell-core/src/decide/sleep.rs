//! A sleep node with conditions was claimed, and they let it sleep.

use super::start::fall_asleep;
use crate::id::Node;
use crate::run::{Because, RunImage};

/// The claim executed nothing, so it leaves no attempt; the timer takes over.
pub(super) fn sleep_claimed(image: &mut RunImage<'_>, node: Node) {
    if let Some(since) = image.task(node).and_then(|task| task.claim()).map(|c| c.queued_at) {
        if let Some(task) = image.touch(node) {
            task.attempt = task.attempt.saturating_sub(1);
        }
        image.record_queued_since(node, since);
        fall_asleep(image, node, Because::Sleep);
    }
}
