//! The deadline of a run passes: it fails, as if a task of it had.

use alloc::boxed::Box;
use alloc::string::String;

use super::cancel::{cancel_open_tasks, record_queued_before};
use super::end::settle;
use crate::failure::{Failure, FailureKind, RetryAdvice};
use crate::id::Node;
use crate::run::{EventKind, RunFailure, RunImage, RunTimer};

/// Fails a run whose open tasks are all loaded. Once its end is decided, its deadline means nothing
/// any more. Returns whether it had an effect.
pub(super) fn pass(image: &mut RunImage<'_>) -> bool {
    let Some(deadline) = image.run.standing_deadline() else { return false };
    if image.now < deadline {
        // Nobody else would look at this run again.
        image.set_run_timer(RunTimer::Deadline, deadline.since(image.now));
        return false;
    }
    record_queued_before(image, None);
    image.record(None, 0, EventKind::DeadlinePassed);
    if image.run.failure.is_none() {
        let message = "the run did not end before its deadline";
        let failure =
            Failure::new(FailureKind::Deadline, "", message).with_retry(RetryAdvice::Never);
        let (node, step) = (Node::DEADLINE, String::new());
        image.run.failure = Some(Box::new(RunFailure { node, step, attempt: 0, failure }));
    }
    cancel_open_tasks(image);
    settle(image);
    true
}
