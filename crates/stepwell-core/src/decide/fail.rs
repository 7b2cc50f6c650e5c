//! A task fails: it is tried again, or it fails for good and takes its descendants along.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use super::{Notes, cancel, signal::let_others_look};
use crate::failure::{Failure, FailureKind};
use crate::id::Node;
use crate::run::{
    AttemptState, Because, EndedAttempt, EventKind, Phase, RetryPlan, RunFailure, RunImage,
    TaskState,
};
use crate::workflow::Definition;

/// How long to wait before a task is tried again that failed after so many failures; `None` if
/// this failure is final.
pub(super) fn retry_delay(
    definition: &Definition,
    node: Node,
    failure: &Failure,
    failures: u32,
    chance: u32,
) -> Option<Duration> {
    definition.retry(node).delay_after(failures + 1, failure.retry, chance)
}

/// An execution failed. If it is tried again, a function forgets the failures that ended it.
pub(super) fn fail(
    image: &mut RunImage<'_>,
    node: Node,
    failure: Failure,
    notes: Notes,
    chance: u32,
    forgets: Vec<String>,
) {
    let definition = image.definition;
    let Some(task) = image.touch(node) else {
        return;
    };
    let delay = retry_delay(definition, node, &failure, task.failures, chance);
    task.failures += 1;
    let failures = task.failures;
    let now = image.now;
    let plan = delay.map(|delay| RetryPlan { count: failures, delay, due: now.after(delay) });
    let state = match failure.kind {
        FailureKind::TimedOut => AttemptState::TimedOut,
        _ => AttemptState::Failed,
    };
    if plan.is_none() {
        foretell(image, node);
    }
    let ended = EndedAttempt { state, failure: Some(failure.clone()), retry: plan, notes };
    image.end_attempt(node, ended);
    match plan {
        Some(plan) => {
            for key in forgets {
                image.forget_memo(node, key);
            }
            let due = (!plan.delay.is_zero()).then_some(plan.due);
            image.move_to(node, Phase::Queued { since: now, due }, Because::Retry);
        }
        None => fail_for_good(image, node, failure, Because::FinalFailure),
    }
}

/// Writes what has to stand in the log before the final failure of a task.
pub(super) fn foretell(image: &mut RunImage<'_>, node: Node) {
    if image.definition.policy.fail_fast {
        cancel::record_queued_before(image, Some(node));
    }
}

/// Moves a task to FAILED and cancels what can no longer run.
pub(super) fn fail_for_good(
    image: &mut RunImage<'_>,
    node: Node,
    failure: Failure,
    because: Because,
) {
    let task = image.task(node);
    let (attempt, may_have_waits) =
        task.map_or((0, false), |task| (task.attempt, task.may_have_waits()));
    image.move_to(node, Phase::Failed, because);
    if image.run.failure.is_none() {
        let step = image.definition.name(node).into();
        image.run.failure = Some(Box::new(RunFailure { node, step, attempt, failure }));
    }
    if image.definition.policy.fail_fast {
        cancel::cancel_open_tasks(image);
        return;
    }
    if may_have_waits {
        let_others_look(image);
    }
    cancel_descendants(image, node);
}

/// Cancels pending tasks below a failed one, through tasks that are cancelled with it. A task
/// below a skipped one may be alive and stays so.
fn cancel_descendants(image: &mut RunImage<'_>, node: Node) {
    let definition = image.definition;
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        for edge in definition.graph.children(node) {
            if image.state(edge.node) == Some(TaskState::Pending) {
                image.move_to(edge.node, Phase::Cancelled, Because::Cancel);
                image.record(Some(edge.node), 0, EventKind::Cancelled);
                open.push(edge.node);
            }
        }
    }
}
