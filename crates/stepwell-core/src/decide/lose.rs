//! A worker dies: its tasks go back to the queue, and one that keeps killing workers is failed.
//!
//! A loss is not the step's fault, so it is counted apart from failures. Which of several tasks
//! killed the process cannot be known; a task that lost too many workers becomes a suspect, is
//! held one at a time, and is then the only one charged.

use alloc::format;
use alloc::vec::Vec;

use super::claim::is_suspect;
use super::fail::fail_for_good;
use crate::failure::{Failure, FailureKind, RetryAdvice};
use crate::id::Node;
use crate::run::{AttemptState, Because, EndedAttempt, EventKind, Phase, RunImage};

/// The losses of every task a dead worker held, given what they were before.
///
/// A suspect is charged alone. A task that was alone is charged. Tasks lost in company are
/// charged up to being suspects, never beyond.
#[must_use]
pub fn losses_after(losses: &[u32], crash_limit: u32) -> Vec<u32> {
    if let Some(suspect) = losses.iter().position(|n| is_suspect(*n, crash_limit)) {
        let charged = |(ix, n): (usize, &u32)| if ix == suspect { n + 1 } else { *n };
        return losses.iter().enumerate().map(charged).collect();
    }
    if let [alone] = losses {
        return alloc::vec![alone + 1];
    }
    losses.iter().map(|n| (n + 1).min(crash_limit.saturating_sub(1))).collect()
}

/// A task lost its worker.
pub(super) fn lose(image: &mut RunImage<'_>, node: Node, losses: u32, crash_limit: u32) {
    let Some(task) = image.touch(node) else {
        return;
    };
    task.losses = losses;
    let attempt = task.attempt;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_lost_in_company_become_suspects_and_no_more() {
        // R14, FA10
        assert_eq!(losses_after(&[0, 1, 0], 3), [1, 2, 1]);
        assert_eq!(losses_after(&[0, 0], 2), [1, 1]);
    }

    #[test]
    fn a_suspect_is_charged_alone() {
        // R14, FA10
        assert_eq!(losses_after(&[0, 2, 1], 3), [0, 3, 1]);
    }

    #[test]
    fn a_task_lost_alone_is_charged() {
        assert_eq!(losses_after(&[0], 3), [1]);
        assert_eq!(losses_after(&[2], 3), [3]);
        assert!(losses_after(&[], 3).is_empty());
    }
}
