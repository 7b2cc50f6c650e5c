//! The rows of a run as every store keeps them, whatever its tables look like.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;

use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::{AttemptState, Resumed, RunStatus, TaskState};
use crate::failure::Failure;
use crate::id::{DefinitionId, Node, RunId, RunKey, Tenant, Token, WorkerId};
use crate::time::Timestamp;

/// One run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRow {
    /// The engine's key.
    pub key: RunKey,
    /// Whose run it is.
    pub tenant: Tenant,
    /// The caller's id, unique per tenant.
    pub id: RunId,
    /// The definition it runs on.
    pub definition: DefinitionId,
    /// Where it stands.
    pub status: RunStatus,
    /// Tasks that are not terminal yet.
    pub n_open: u32,
    /// Tasks that failed.
    pub n_failed: u32,
    /// Tasks that were cancelled.
    pub n_cancelled: u32,
    /// Whether somebody cancelled the run.
    pub cancelled: bool,
    /// Signals that were sent to it.
    pub n_signals: u64,
    /// Signals that nobody got yet.
    pub n_unconsumed: u32,
    /// The failure that decided the run's end: the first one that was final. Few runs have one, so
    /// it lies apart.
    pub failure: Option<Box<RunFailure>>,
    /// The number the next event gets.
    pub next_event: u64,
    /// The number of the event that ended it.
    pub end_event: Option<u64>,
    /// When it was started.
    pub started_at: Timestamp,
    /// When it must have ended, as it was fixed at the start.
    pub deadline: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

/// The failure that decided a run's end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFailure {
    /// The task that failed, or [`Node::DEADLINE`] if the run's deadline passed.
    pub node: Node,
    /// Its name.
    pub step: String,
    /// The attempt that failed, 0 if none was executed.
    pub attempt: u32,
    /// The error.
    pub failure: Failure,
}

/// One task: a step of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRow {
    /// Its node.
    pub node: Node,
    /// Where it stands, with what belongs to that state only.
    pub phase: Phase,
    /// Edges from parents that are not resolved yet.
    pub n_unmet: u32,
    /// Edges from parents that were skipped.
    pub n_skipped: u32,
    /// Claims that executed so far: the number of the current or last attempt.
    pub attempt: u32,
    /// Attempts that failed, to compare with the retry policy.
    pub failures: u32,
    /// Attempts lost with their worker, to compare with the crash limit.
    pub losses: u32,
    /// Whether QUEUED of this task has its number in the log already. A retried task was queued
    /// once; what follows RETRYING is STARTED.
    pub queued_logged: bool,
    /// What ended its last wait.
    pub resumed: Option<Resumed>,
    /// The number of the next thing that its function hears of, as its last suspension or look for
    /// signals left it; 0 if there was none.
    pub next_memo: u64,
}

/// Where a task stands, with what belongs to that state only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Some parent is not resolved yet.
    Pending,
    /// Ready, or due to be at a known time.
    Queued {
        /// Since when.
        since: Timestamp,
        /// When its retry is due; `None` if it may start at once.
        due: Option<Timestamp>,
    },
    /// A worker holds a claim on it.
    Running(Claim),
    /// A timer will complete it.
    Sleeping {
        /// When.
        until: Timestamp,
    },
    /// A signal will move it on; what it waits for is in its open wait.
    Waiting {
        /// When its timer fires: at the wait's deadline, or at once if signals that were sent
        /// before have to be looked at.
        due: Option<Timestamp>,
    },
    /// Done.
    Completed,
    /// Failed for good.
    Failed,
    /// Cancelled.
    Cancelled,
    /// Skipped.
    Skipped,
}

/// A worker's temporary right to execute a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Who holds it.
    pub worker: WorkerId,
    /// What fences its writes.
    pub token: Token,
    /// When the task was queued.
    pub queued_at: Timestamp,
    /// When it was claimed.
    pub started_at: Timestamp,
}

/// One finished execution of a task. It reserves its block of event numbers: QUEUED if that was
/// not logged before, STARTED, and how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptRow {
    /// The task's node.
    pub node: Node,
    /// Its number, from 1.
    pub attempt: u32,
    /// How it ended.
    pub state: AttemptState,
    /// The claim it ran under; the token tells a repeated commit from a late one.
    pub claim: Claim,
    /// When it ended.
    pub ended_at: Timestamp,
    /// The first number of its block of events.
    pub first_event: u64,
    /// Whether its block begins with QUEUED.
    pub with_queued: bool,
    /// Why it failed.
    pub failure: Option<Failure>,
    /// When it will be tried again.
    pub retry: Option<RetryPlan>,
    /// What the step noted about itself.
    pub notes: BTreeMap<String, String>,
}

/// When and for the how manieth time a task will be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryPlan {
    /// The number of the retry, from 1.
    pub count: u32,
    /// How long to wait.
    pub delay: Duration,
    /// When it is due.
    pub due: Timestamp,
}

impl RunRow {
    /// The deadline as long as it stands. Once the run's end is decided it means nothing any more,
    /// and the failure handler may start whenever that is.
    #[must_use]
    pub fn standing_deadline(&self) -> Option<Timestamp> {
        self.deadline.filter(|_| self.status == RunStatus::Running)
    }
}

impl Phase {
    /// The state without its details.
    #[must_use]
    pub const fn state(&self) -> TaskState {
        match self {
            Self::Pending => TaskState::Pending,
            Self::Queued { .. } => TaskState::Queued,
            Self::Running(_) => TaskState::Running,
            Self::Sleeping { .. } => TaskState::Sleeping,
            Self::Waiting { .. } => TaskState::Waiting,
            Self::Completed => TaskState::Completed,
            Self::Failed => TaskState::Failed,
            Self::Cancelled => TaskState::Cancelled,
            Self::Skipped => TaskState::Skipped,
        }
    }

    /// When a timer will move the task on, if one is set.
    #[must_use]
    pub const fn due(&self) -> Option<Timestamp> {
        match self {
            Self::Queued { due, .. } | Self::Waiting { due } => *due,
            Self::Sleeping { until } => Some(*until),
            _ => None,
        }
    }

    /// Whether the task stands where claims look: it is ready.
    #[must_use]
    pub const fn in_queue(&self) -> bool {
        matches!(self, Self::Queued { due: None, .. })
    }
}

impl TaskRow {
    /// The task's state without its details.
    #[must_use]
    pub const fn state(&self) -> TaskState {
        self.phase.state()
    }

    /// The claim that holds the task, if one does.
    #[must_use]
    pub const fn claim(&self) -> Option<&Claim> {
        match &self.phase {
            Phase::Running(claim) => Some(claim),
            _ => None,
        }
    }

    /// Whether it is a function that may have open waits whatever its state.
    #[must_use]
    pub const fn may_have_waits(&self) -> bool {
        self.next_memo > 0
    }

    /// Whether a claim with this token holds the task now.
    #[must_use]
    pub fn is_held_by(&self, token: Token) -> bool {
        self.claim().is_some_and(|claim| claim.token == token)
    }
}

impl AttemptRow {
    /// How many event numbers the attempt takes up.
    #[must_use]
    pub const fn n_events(&self) -> u64 {
        if self.with_queued { 3 } else { 2 }
    }
}
