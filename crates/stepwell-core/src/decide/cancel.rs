//! A run is cancelled: nothing of it starts any more, and what runs is told to stop.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::end::{ends_as, settle};
use crate::id::Node;
use crate::run::{
    AttemptState, Because, EndedAttempt, EventKind, Phase, RunImage, RunStatus, TaskRow, TaskState,
};

/// What became of a request to cancel a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelAnswer {
    /// Nothing of the run starts any more. A run in which a task had failed before ends as
    /// FAILED all the same.
    Cancelled,
    /// Its end was decided before; it ends like this.
    AlreadyEnding(RunStatus),
    /// It had ended before, like this.
    AlreadyEnded(RunStatus),
}

/// Cancels a run whose open tasks are all loaded.
pub(super) fn cancel(image: &mut RunImage<'_>) -> CancelAnswer {
    match image.run.status {
        RunStatus::Running => {}
        RunStatus::Ending => return CancelAnswer::AlreadyEnding(ends_as(&image.run)),
        status => return CancelAnswer::AlreadyEnded(status),
    }
    image.run.cancelled = true;
    image.record(None, 0, EventKind::RunCancelled);
    cancel_open_tasks(image);
    settle(image);
    CancelAnswer::Cancelled
}

/// Moves every open task to CANCELLED. The token of a running one no longer matches anything, so
/// its worker's late answer changes nothing.
pub(super) fn cancel_open_tasks(image: &mut RunImage<'_>) {
    let is_open = |task: &&TaskRow| !task.state().is_terminal();
    let open: Vec<Node> = image.tasks.iter().filter(is_open).map(|task| task.node).collect();
    for node in open {
        if image.state(node) == Some(TaskState::Running) {
            image.end_attempt(node, EndedAttempt::plain(AttemptState::Cancelled));
        } else {
            image.record_queued(node);
            image.record(Some(node), 0, EventKind::Cancelled);
        }
        image.move_to(node, Phase::Cancelled, Because::Cancel);
    }
}
