//! The events of a run's append-only log.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Attributes, RunStatus, TaskState};
use crate::failure::Failure;
use crate::id::{Node, WorkerId};
use crate::time::Timestamp;

/// One entry of a run's log as it is read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Its number within the run, from 1 and without gaps. QUEUED and STARTED of a task that is
    /// still open have none yet; they get theirs when the attempt ends.
    pub number: Option<u64>,
    /// When it happened, by the store's time.
    pub at: Timestamp,
    /// The task, or `None` for the run itself.
    pub node: Option<Node>,
    /// The attempt, 0 where none is meant.
    pub attempt: u32,
    /// What happened.
    pub kind: EventKind,
}

/// One event that is stored as a row of its own. Regular ones are read from attempts instead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventRow {
    /// Its number within the run.
    pub number: u64,
    /// When it happened.
    pub at: Timestamp,
    /// The task, or `None` for the run itself.
    pub node: Option<Node>,
    /// The attempt, 0 where none is meant.
    pub attempt: u32,
    /// What happened.
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum EventKind {
    /// The run was started.
    RunStarted,
    /// The run's end is decided; the failure handler comes first.
    RunEnding {
        /// How it will end.
        ends_as: RunStatus,
    },
    /// The run ended.
    RunEnded {
        /// How.
        status: RunStatus,
    },
    /// Somebody cancelled the run. Logs of earlier versions say no more than that.
    RunCancelled {
        /// Who asked for it.
        #[serde(default)]
        by: String,
        /// Why.
        reason: Option<String>,
        /// Whether the failure handler is not executed either.
        #[serde(default)]
        forced: bool,
    },
    /// The run's deadline passed.
    DeadlinePassed,
    /// The task became ready.
    Queued,
    /// A worker claimed it.
    Started {
        /// Which one.
        worker: WorkerId,
    },
    /// It gave an output.
    Completed {
        /// What the step noted about itself.
        notes: BTreeMap<String, String>,
    },
    /// It failed for good.
    Failed {
        /// Why.
        failure: Failure,
    },
    /// It failed and will be tried again.
    Retrying {
        /// The number of the retry, from 1.
        count: u32,
        /// How long to wait.
        delay: Duration,
        /// When it is due.
        due: Timestamp,
        /// Why it failed.
        failure: Failure,
    },
    /// It will not be executed any more.
    Cancelled,
    /// It is not executed, because of a condition or a skipped parent.
    Skipped,
    /// It sleeps.
    Sleeping {
        /// Until when.
        until: Timestamp,
        /// What of its function is open, as far as it is told.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        keys: Vec<String>,
    },
    /// Its timer fired.
    Woken {
        /// The state this puts it into.
        into: TaskState,
        /// What of its function was over.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        key: String,
    },
    /// Its execution ended to go on later; what it waits for follows.
    Suspended,
    /// Its function begins another round.
    Continued {
        /// The number of the round; the first one is 0.
        round: u32,
    },
    /// It waits for a signal.
    Waiting {
        /// The names of the signals; any of them will do.
        signals: Vec<String>,
        /// Attributes that a signal must carry.
        matching: Attributes,
        /// Until when at most.
        until: Option<Timestamp>,
        /// What of its function is open, as far as it is told.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        keys: Vec<String>,
    },
    /// It got a signal that it waited for.
    Signalled {
        /// The signal's name.
        signal: String,
        /// The signal's number within the run.
        number: u64,
        /// The state this puts it into.
        into: TaskState,
        /// The wait of its function that got it.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        key: String,
    },
    /// The deadline of its wait passed.
    TimedOut {
        /// The state this puts it into.
        into: TaskState,
        /// The wait of its function that is over.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        key: String,
    },
    /// Its worker died.
    LeaseLost,
    /// Its worker handed it back while shutting down.
    Released,
}

impl EventKind {
    /// The event's name as it is written everywhere.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::RunStarted => "RUN_STARTED",
            Self::RunEnding { .. } => "RUN_ENDING",
            Self::RunEnded { .. } => "RUN_ENDED",
            Self::RunCancelled { .. } => "RUN_CANCELLED",
            Self::DeadlinePassed => "DEADLINE_PASSED",
            Self::Queued => "QUEUED",
            Self::Started { .. } => "STARTED",
            Self::Completed { .. } => "COMPLETED",
            Self::Failed { .. } => "FAILED",
            Self::Retrying { .. } => "RETRYING",
            Self::Cancelled => "CANCELLED",
            Self::Skipped => "SKIPPED",
            Self::Sleeping { .. } => "SLEEPING",
            Self::Woken { .. } => "WOKEN",
            Self::Suspended => "SUSPENDED",
            Self::Continued { .. } => "CONTINUED",
            Self::Waiting { .. } => "WAITING",
            Self::Signalled { .. } => "SIGNALLED",
            Self::TimedOut { .. } => "TIMED_OUT",
            Self::LeaseLost => "LEASE_LOST",
            Self::Released => "RELEASED",
        }
    }
}
