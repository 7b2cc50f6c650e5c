//! What running steps say about how far they have come.

use async_trait::async_trait;
use stepwell_core::id::{Node, RunKey, Token, WorkerId};
use stepwell_core::time::Timestamp;

use super::{ClaimRef, StoreError};

/// How far a step has come, in its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgressReport {
    /// The claim under which it is executed.
    pub claim: ClaimRef,
    /// What it says; at most [`PROGRESS_BYTES_MAX`](stepwell_core::limits::PROGRESS_BYTES_MAX).
    pub text: String,
}

/// The latest progress of a running task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedProgress {
    /// The task.
    pub node: Node,
    /// The token of the attempt that told it.
    pub token: Token,
    /// When it came to the store.
    pub told_at: Timestamp,
    /// What the step said.
    pub text: String,
}

/// Keeps the progress of running tasks.
#[async_trait]
pub trait Progress {
    /// Keeps the latest progress of tasks that a worker executes, in the place of what they told
    /// before. Progress under a token that does not hold any more is dropped, and so is what tasks
    /// of this worker told in attempts that have ended.
    async fn report_progress(
        &self,
        worker: &WorkerId,
        reports: &[ProgressReport],
    ) -> Result<(), StoreError>;

    /// The latest progress of a run's tasks in the attempts that they are in now, by node. It goes
    /// with the attempt.
    async fn progress(&self, run: RunKey) -> Result<Vec<ReportedProgress>, StoreError>;
}
