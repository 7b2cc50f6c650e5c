//! Reading runs.

use std::sync::Arc;

use async_trait::async_trait;
use stepwell_core::id::{Node, RunId, RunKey, Tenant};
use stepwell_core::run::{RunLog, RunRow, RunStatus, TaskRow, WaitRow};

use super::{AwaitedRun, Payload, RunEnd, StoreError, StoredDefinition, StoredMemo, StoredSignal};

/// A run with its definition.
#[derive(Clone, Debug)]
pub struct RunView {
    /// The run.
    pub row: RunRow,
    /// What it runs on.
    pub definition: Arc<StoredDefinition>,
}

/// Everything there is to a run at one moment, but for its input and its outputs, which never
/// change.
#[derive(Clone, Debug)]
pub struct RunSnapshot {
    /// The run, and what its log is read from.
    pub log: RunLog,
    /// What it runs on.
    pub definition: Arc<StoredDefinition>,
    /// Its tasks, by node.
    pub tasks: Vec<TaskRow>,
    /// Its open waits, oldest first.
    pub waits: Vec<WaitRow>,
    /// Every signal that was sent to it, in order of their numbers.
    pub signals: Vec<StoredSignal>,
    /// What its functions have done or begun, in the order of tasks and keys.
    pub memos: Vec<StoredMemo>,
}

/// Which runs to list. Absent fields do not filter.
#[derive(Clone, Debug, Default)]
pub struct RunFilter {
    /// Only runs of this tenant.
    pub tenant: Option<Tenant>,
    /// Only runs of this workflow.
    pub workflow: Option<String>,
    /// Only runs that stand like this.
    pub status: Option<RunStatus>,
}

impl RunFilter {
    /// Whether it lets every run through.
    pub(crate) fn is_open(&self) -> bool {
        self.tenant.is_none() && self.workflow.is_none() && self.status.is_none()
    }
}

/// One page of a listing, newest first. It looks at 10,000 runs at most; where few are like the
/// filter it may have fewer than asked for, and even none, and not be the last.
#[derive(Clone, Debug)]
pub struct RunPage {
    /// The runs.
    pub runs: Vec<RunView>,
    /// Where the next page begins; `None` on the last one.
    pub next: Option<RunKey>,
}

impl RunPage {
    /// A page of at most `rows_max` runs. The store read one more if there was one, which tells
    /// that a further page follows. If not, one follows from where it stopped looking, if it did.
    pub(crate) fn cut(
        mut found: Vec<RunView>,
        rows_max: usize,
        looked_until: Option<RunKey>,
    ) -> Self {
        let is_cut = found.len() > rows_max;
        found.truncate(rows_max);
        let last = found.last().map(|run| run.row.key);
        let next = if is_cut { last } else { looked_until };
        Self { runs: found, next }
    }
}

/// Reads runs.
#[async_trait]
pub trait Runs {
    /// The run of a tenant with this id.
    async fn find(&self, tenant: &Tenant, id: &RunId) -> Result<Option<RunView>, StoreError>;

    /// The run with this key.
    async fn run(&self, run: RunKey) -> Result<Option<RunView>, StoreError>;

    /// The tasks of a run, by node; none of a run that is not there.
    async fn tasks(&self, run: RunKey) -> Result<Vec<TaskRow>, StoreError>;

    /// The input of a run; `None` if there is no such run.
    async fn input(&self, run: RunKey) -> Result<Option<Payload>, StoreError>;

    /// The output of a completed task; one without an output of its own, such as a sleep node,
    /// has the empty payload, and a wait node what it got. `None` for a task that is not completed.
    async fn output(&self, run: RunKey, node: Node) -> Result<Option<Payload>, StoreError>;

    /// What [`output`](Self::output) gives of every completed task, by node.
    async fn outputs(&self, run: RunKey) -> Result<Vec<(Node, Payload)>, StoreError>;

    /// Everything the log of a run is read from, in one snapshot.
    async fn log(&self, run: RunKey) -> Result<Option<RunLog>, StoreError>;

    /// Everything there is to a run, in one snapshot; `None` if there is no such run.
    async fn snapshot(&self, run: RunKey) -> Result<Option<RunSnapshot>, StoreError>;

    /// Which of these runs have ended, and how; of those that completed, what the step in question
    /// left. One read for all waiters of a process.
    async fn ended(&self, runs: &[AwaitedRun]) -> Result<Vec<(RunKey, RunEnd)>, StoreError>;

    /// A page of runs in the order of their keys, newest first, from before `before`. It looks at
    /// [`PAGE_LOOKS_MAX`](stepwell_core::limits::PAGE_LOOKS_MAX) runs at most.
    async fn list(
        &self,
        filter: &RunFilter,
        before: Option<RunKey>,
        rows_max: usize,
    ) -> Result<RunPage, StoreError>;
}
