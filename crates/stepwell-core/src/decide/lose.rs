//! A worker dies: its tasks go back to the queue, and one that keeps killing workers is failed.
//!
//! A loss is not the step's fault, so it is counted apart from failures. Which of several tasks
//! killed the process cannot be known; a task that lost too many workers becomes a suspect, is
//! executed alone, and is then the only one charged.

use alloc::format;

use super::fail::{fail_for_good, foretell};
use crate::failure::{Failure, FailureKind, RetryAdvice};
use crate::id::Node;
use crate::run::{AttemptState, Because, EndedAttempt, EventKind, Phase, RunImage};

/// A task lost its worker.
pub(super) fn lose(image: &mut RunImage<'_>, node: Node, losses: u32, crash_limit: u32) {
    let Some(task) = image.touch(node) else {
        return;
    };
    task.losses = losses;
    let attempt = task.attempt;
    if losses >= crash_limit {
        foretell(image, node);
    }
    image.end_attempt(node, EndedAttempt::plain(AttemptState::Lost));
    if losses < crash_limit {
        let phase = Phase::Queued { since: image.now, due: None };
        image.move_to(node, phase, Because::Loss);
        return;
    }
    let message = format!("its worker died {losses} times, the crash limit is {crash_limit}");
    let failure = Failure::new(FailureKind::Crashed, "", &message).with_retry(RetryAdvice::Never);
    image.record(Some(node), attempt, EventKind::Failed { failure: failure.clone() });
    fail_for_good(image, node, failure, Because::Loss);
}
