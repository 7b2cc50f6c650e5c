//! A run ends by itself when its last open task does.

use super::start::{make_ready, pending};
use crate::id::Node;
use crate::run::{EventKind, RunImage, RunRow, RunStatus, RunTimer};

/// How a run ends, by what happened in it.
pub(super) const fn ends_as(run: &RunRow) -> RunStatus {
    if run.failure.is_some() || run.n_failed > 0 {
        RunStatus::Failed
    } else if run.cancelled {
        RunStatus::Cancelled
    } else {
        RunStatus::Completed
    }
}

/// Ends the run if nothing of it is open. A run that comes to fail first executes its failure
/// handler, as a task like any other.
pub(super) fn settle(image: &mut RunImage<'_>) {
    if image.run.n_open > 0 || image.run.status.is_terminal() {
        return;
    }
    let end = ends_as(&image.run);
    let handler = image.definition.policy.on_failure && end == RunStatus::Failed;
    if handler && image.run.status == RunStatus::Running {
        clear_timers(image);
        image.run.status = RunStatus::Ending;
        image.record(None, 0, EventKind::RunEnding { ends_as: end });
        image.insert(pending(Node::ON_FAILURE, 0));
        make_ready(image, Node::ON_FAILURE);
        return;
    }
    end_run(image);
}

/// Ends a run of which nothing is open, without its failure handler.
pub(super) fn end_run(image: &mut RunImage<'_>) {
    clear_timers(image);
    image.run.status = ends_as(&image.run);
    image.run.ended_at = Some(image.now);
    image.run.end_event = Some(image.next_events(1));
    image.mark_run_ended();
}

/// A run whose end is decided has no deadline to meet, and nobody of it takes signals.
fn clear_timers(image: &mut RunImage<'_>) {
    if image.run.n_signals > 0 {
        image.clear_run_timer(RunTimer::LookAgain);
    }
    if image.run.deadline.is_some() {
        image.clear_run_timer(RunTimer::Deadline);
    }
}
