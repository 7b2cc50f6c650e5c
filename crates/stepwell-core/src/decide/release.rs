//! A worker hands a task back while it shuts down. Nothing is charged: a step without retries
//! survives a rolling deploy.

use crate::id::Node;
use crate::run::{AttemptState, Because, EndedAttempt, Phase, RunImage};

/// The task goes back to its queue, stamped anew.
pub(super) fn release(image: &mut RunImage<'_>, node: Node) {
    image.end_attempt(node, EndedAttempt::plain(AttemptState::Released));
    let phase = Phase::Queued { since: image.now, due: None };
    image.move_to(node, phase, Because::HandBack);
}
