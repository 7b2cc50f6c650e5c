//! What users read of runs. These are views of their own, not the rows of a store: a column that a
//! row gains is no change for users.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use stepwell_core::failure::Failure;
use stepwell_core::id::{Node, RunId, RunKey, Tenant, WorkerId};
use stepwell_core::run::{
    AttemptRow, AttemptState, Event, EventKind, MemoOutcome, MemoState, RetryPlan, RunFailure,
    RunStatus, TaskRow, TaskState, WaitRow,
};
use stepwell_core::time::Timestamp;

use crate::ports::{self, ReportedProgress, RunView};

/// One page of a listing of runs, newest first. It may have fewer than asked for, and not be the
/// last.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunPage {
    /// The runs.
    pub runs: Vec<RunSummary>,
    /// Where the next page begins; `None` on the last one.
    pub next: Option<RunKey>,
}

impl RunPage {
    pub(super) fn of(page: ports::RunPage) -> Self {
        Self { runs: page.runs.into_iter().map(RunSummary::of).collect(), next: page.next }
    }
}

/// A run in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunSummary {
    /// The engine's own key of the run.
    pub key: RunKey,
    /// Whose run it is.
    pub tenant: Tenant,
    /// The caller's id of the run, unique per tenant.
    pub id: RunId,
    /// The workflow's name.
    pub workflow: String,
    /// The version of the workflow that it runs on.
    pub version: u32,
    /// How it stands.
    pub status: RunStatus,
    /// What decided its end, if it failed.
    pub failure: Option<RunFailure>,
    /// When it was started.
    pub started_at: Timestamp,
    /// When it must have ended; `None` for never.
    pub deadline: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

impl RunSummary {
    fn of(RunView { row, definition }: RunView) -> Self {
        Self {
            key: row.key,
            tenant: row.tenant,
            id: row.id,
            workflow: definition.definition.workflow.clone(),
            version: definition.version,
            status: row.status,
            failure: row.failure.map(|failure| *failure),
            started_at: row.started_at,
            deadline: row.deadline,
            ended_at: row.ended_at,
        }
    }
}

/// How a run stands, with every step's output by name.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunOutcome {
    /// How it stands.
    pub status: RunStatus,
    /// What decided its end, if it failed.
    pub failure: Option<RunFailure>,
    /// Outputs by step name.
    pub outputs: BTreeMap<String, Value>,
}

/// How a task stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskStatus {
    /// The step's name.
    pub step: String,
    /// Its state.
    pub state: TaskState,
    /// Attempts so far.
    pub attempt: u32,
    /// Failed attempts so far.
    pub failures: u32,
    /// Attempts lost with their worker.
    pub losses: u32,
    /// How far its attempt has come, if it told.
    pub progress: Option<TaskProgress>,
}

/// How far a running step has come, by [`Ctx::heartbeat_with`](crate::Ctx::heartbeat_with).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskProgress {
    /// What it said.
    pub text: String,
    /// When the store heard of it.
    pub told_at: Timestamp,
}

impl TaskStatus {
    /// A task, with the progress of its run's tasks.
    pub(super) fn of(step: &str, row: &TaskRow, told: &[ReportedProgress]) -> Self {
        Self {
            step: step.to_owned(),
            state: row.state(),
            attempt: row.attempt,
            failures: row.failures,
            losses: row.losses,
            progress: TaskProgress::of(row, told),
        }
    }
}

impl TaskProgress {
    /// The progress of the attempt that a task is in, among that of its run's tasks.
    pub(crate) fn of(row: &TaskRow, told: &[ReportedProgress]) -> Option<Self> {
        let token = row.claim()?.token;
        let told = told.iter().find(|told| told.node == row.node && told.token == token)?;
        Some(Self { text: told.text.clone(), told_at: told.told_at })
    }
}

/// What a task of a run waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenWait {
    /// The step that waits.
    pub step: String,
    /// The names of the signals; any of them will do.
    pub signals: Vec<String>,
    /// Attributes that a signal must carry with the same values.
    pub matching: BTreeMap<String, String>,
    /// Since when.
    pub since: Timestamp,
    /// Until when at most.
    pub until: Option<Timestamp>,
}

impl OpenWait {
    pub(super) fn of(step: &str, row: WaitRow) -> Self {
        Self {
            step: step.to_owned(),
            signals: row.signals,
            matching: row.matching,
            since: row.opened_at,
            until: row.deadline,
        }
    }
}

/// A signal that was sent to a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SentSignal {
    /// Its number among the signals of the run, from 1.
    pub number: u64,
    /// Its name.
    pub name: String,
    /// What tells it from others; made up if the sender gave none.
    pub key: String,
    /// What it carries beside its payload.
    pub attributes: BTreeMap<String, String>,
    /// When it was stored.
    pub sent_at: Timestamp,
    /// The step that got it; `None` as long as nobody did.
    pub consumed_by: Option<String>,
}

impl SentSignal {
    pub(super) fn of<'n>(signal: ports::StoredSignal, name: impl Fn(Node) -> &'n str) -> Self {
        let row = signal.row;
        Self {
            number: row.number,
            name: row.name,
            key: row.key,
            attributes: row.attributes,
            sent_at: row.sent_at,
            consumed_by: row.consumed_by.map(|node| name(node).to_owned()),
        }
    }
}

/// Something that a function has done or begun.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Memo {
    /// The step of the workflow whose code did it; a function's own step bears its name.
    pub step: String,
    /// What it is recorded under: its name, and from the second call on its count.
    pub key: String,
    /// Its place in the order in which the function heard of what was done; `None` if there is
    /// nothing to hear of yet.
    pub number: Option<u64>,
    /// What is known of it.
    pub state: MemoState,
    /// How often a step was tried.
    pub tries: u32,
    /// When it was begun.
    pub began_at: Timestamp,
    /// When this was stored.
    pub at: Timestamp,
    /// When a sleep is over, a wait times out or a step is tried again.
    pub due: Option<Timestamp>,
    /// Why a step failed, for good or the last time.
    pub failure: Option<Failure>,
}

impl Memo {
    pub(super) fn of<'n>(memo: ports::StoredMemo, name: impl Fn(Node) -> &'n str) -> Self {
        let row = memo.row;
        let state = row.outcome.state();
        let (due, failure) = match row.outcome {
            MemoOutcome::Begun { due, failure } => (due, failure),
            MemoOutcome::Failed(failure) => (None, Some(failure)),
            _ => (None, None),
        };
        Self {
            step: name(row.node).to_owned(),
            key: row.key,
            number: Some(row.number).filter(|number| *number > 0),
            state,
            tries: row.tries,
            began_at: row.began_at,
            at: row.at,
            due,
            failure,
        }
    }

    /// How long it took, from its beginning until it was stored.
    #[must_use]
    pub fn took(&self) -> Duration {
        self.at.since(self.began_at)
    }
}

/// One finished attempt of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// Its number, from 1.
    pub attempt: u32,
    /// How it ended.
    pub state: AttemptState,
    /// The worker that executed it.
    pub worker: WorkerId,
    /// When the task was queued for it.
    pub queued_at: Timestamp,
    /// When it was started.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    /// Why it failed.
    pub failure: Option<Failure>,
    /// When the task will be tried again.
    pub retry: Option<RetryPlan>,
    /// What the step noted about itself.
    pub notes: BTreeMap<String, String>,
}

impl Attempt {
    pub(super) fn of(row: AttemptRow) -> Self {
        Self {
            attempt: row.attempt,
            state: row.state,
            worker: row.claim.worker,
            queued_at: row.claim.queued_at,
            started_at: row.claim.started_at,
            ended_at: row.ended_at,
            failure: row.failure,
            retry: row.retry,
            notes: row.notes,
        }
    }
}

/// One entry of a run's log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunEvent {
    /// Its number, from 1 without gaps; `None` while the task is open.
    pub number: Option<u64>,
    /// When it happened, by the store's time.
    pub at: Timestamp,
    /// The step, or `None` for the run itself.
    pub step: Option<String>,
    /// The attempt, 0 where none is meant.
    pub attempt: u32,
    /// What happened.
    pub kind: EventKind,
}

impl RunEvent {
    pub(crate) fn of(step: Option<String>, event: Event) -> Self {
        Self { number: event.number, at: event.at, step, attempt: event.attempt, kind: event.kind }
    }
}
