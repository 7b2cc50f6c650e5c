//! Folding a log gives the states in the tables. Tests and `doctor`-like checks rest on it.

use alloc::collections::BTreeMap;
use alloc::string::String;

use super::{Event, EventKind, RunStatus, TaskState};
use crate::id::Node;

/// Why a log cannot be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoldError {
    /// A number is missing or stands twice.
    Gap {
        /// The number that should have come.
        expected: u64,
        /// The number that came.
        found: u64,
    },
    /// An event cannot follow what came before it.
    Misplaced {
        /// The event's name.
        event: String,
        /// The task's state before it.
        state: TaskState,
    },
}

/// Folds a log in the order it is read: the run's status and the state of every task that has
/// an event. Tasks without one are still PENDING.
///
/// # Errors
/// When a number is missing, or an event cannot follow the one before it.
pub fn fold(events: &[Event]) -> Result<(RunStatus, BTreeMap<Node, TaskState>), FoldError> {
    let mut run = RunStatus::Running;
    let mut tasks = BTreeMap::new();
    let mut expected = 1;
    for event in events {
        if let Some(found) = event.number {
            if found != expected {
                return Err(FoldError::Gap { expected, found });
            }
            expected += 1;
        }
        match (event.node, &event.kind) {
            (None, EventKind::RunEnding { .. }) => run = RunStatus::Ending,
            (None, EventKind::RunEnded { status: end }) => run = *end,
            (None, _) => {}
            (Some(node), kind) => {
                let state = tasks.entry(node).or_insert(TaskState::Pending);
                *state = next_state(*state, kind)?;
            }
        }
    }
    Ok((run, tasks))
}

fn next_state(state: TaskState, kind: &EventKind) -> Result<TaskState, FoldError> {
    use TaskState::{
        Cancelled, Completed, Failed, Pending, Queued, Running, Skipped, Sleeping, Waiting,
    };
    match (state, kind) {
        // What a suspended execution waits for is told by the event that follows.
        (Queued, EventKind::Started { .. }) | (Running, EventKind::Suspended) => Ok(Running),
        (Running, EventKind::Completed { .. }) => Ok(Completed),
        // A lost task that reached the crash limit fails from the queue it was put back into.
        (Running | Queued, EventKind::Failed { .. }) => Ok(Failed),
        (Pending, EventKind::Queued)
        | (
            Running,
            EventKind::Retrying { .. }
            | EventKind::LeaseLost
            | EventKind::Released
            | EventKind::Continued { .. },
        ) => Ok(Queued),
        (Pending | Queued | Running | Sleeping | Waiting, EventKind::Cancelled) => Ok(Cancelled),
        (Pending | Queued | Running, EventKind::Waiting { .. }) => Ok(Waiting),
        (Pending | Queued, EventKind::Skipped) => Ok(Skipped),
        (Pending | Queued | Running, EventKind::Sleeping { .. }) => Ok(Sleeping),
        (Sleeping | Waiting, EventKind::Woken { into, .. })
        | (Waiting, EventKind::Signalled { into, .. } | EventKind::TimedOut { into, .. }) => {
            Ok(*into)
        }
        (state, kind) => Err(FoldError::Misplaced { event: kind.name().into(), state }),
    }
}
