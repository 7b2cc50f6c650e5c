//! A run is cancelled: nothing of it starts any more, and what runs is told to stop.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::end::{end_run, ends_as, settle};
use crate::id::Node;
use crate::run::{
    AttemptState, Because, EndedAttempt, EventKind, Phase, RunImage, RunStatus, TaskRow, TaskState,
};
use crate::time::Timestamp;

/// A request to cancel a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CancelRequest {
    /// Who asks.
    pub by: String,
    /// Why.
    pub reason: Option<String>,
    /// Whether nothing of the run is executed any more, not even its failure handler.
    pub force: bool,
}

impl CancelRequest {
    /// A plain request, without a reason.
    #[must_use]
    pub fn by(by: impl Into<String>) -> Self {
        Self { by: by.into(), reason: None, force: false }
    }
}

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
    /// It was ending, and was made to end at once, like this.
    ForcedToEnd(RunStatus),
}

/// Cancels a run whose open tasks are all loaded.
pub(super) fn cancel(image: &mut RunImage<'_>, request: CancelRequest) -> CancelAnswer {
    let CancelRequest { by, reason, force } = request;
    let status = image.run.status;
    match status {
        RunStatus::Running => image.run.cancelled = true,
        RunStatus::Ending if force => {}
        RunStatus::Ending => return CancelAnswer::AlreadyEnding(ends_as(&image.run)),
        status => return CancelAnswer::AlreadyEnded(status),
    }
    record_queued_before(image, None);
    image.record(None, 0, EventKind::RunCancelled { by, reason, forced: force });
    cancel_open_tasks(image);
    if force {
        end_run(image);
    } else {
        settle(image);
    }
    match status {
        RunStatus::Running => CancelAnswer::Cancelled,
        _ => CancelAnswer::ForcedToEnd(image.run.status),
    }
}

/// Writes that open tasks were queued, in the order in which they were, before what ends them all
/// is written: the log is read by number, and would else say that they were queued afterwards. The
/// task to which that happens needs nothing; its attempt tells.
pub(super) fn record_queued_before(image: &mut RunImage<'_>, happens_to: Option<Node>) {
    let queued_at = |task: &TaskRow| match &task.phase {
        Phase::Queued { since, .. } => Some((*since, task.node)),
        Phase::Running(claim) => Some((claim.queued_at, task.node)),
        _ => None,
    };
    let others = image.tasks.iter().filter(|task| Some(task.node) != happens_to);
    let mut queued: Vec<(Timestamp, Node)> = others.filter_map(queued_at).collect();
    queued.sort_unstable();
    for (since, node) in queued {
        image.record_queued_since(node, since);
    }
}

/// Moves every open task to CANCELLED; that they were queued is logged. The token of a running one
/// no longer matches anything, so its worker's late answer changes nothing.
pub(super) fn cancel_open_tasks(image: &mut RunImage<'_>) {
    let is_open = |task: &&TaskRow| !task.state().is_terminal();
    let open: Vec<Node> = image.tasks.iter().filter(is_open).map(|task| task.node).collect();
    for node in open {
        if image.state(node) == Some(TaskState::Running) {
            image.end_attempt(node, EndedAttempt::plain(AttemptState::Cancelled));
        } else {
            image.record(Some(node), 0, EventKind::Cancelled);
        }
        image.move_to(node, Phase::Cancelled, Because::Cancel);
    }
}
