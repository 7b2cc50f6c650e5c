//! A run as JSON, without its payloads.

use serde::Serialize;
use stepwell_core::run::{RunFailure, RunRow, RunStatus};

use super::event_record::FailureRecord;
use super::words::moment;
use crate::ports::StoredDefinition;

/// A run as JSON. Names are those of the views in the databases.
#[derive(Clone, Debug, Serialize)]
pub(super) struct RunRecord<'run> {
    tenant: &'run str,
    run: &'run str,
    key: String,
    workflow: &'run str,
    version: u32,
    status: RunStatus,
    n_open: u32,
    n_failed: u32,
    n_cancelled: u32,
    /// Whether somebody cancelled it.
    cancelled: bool,
    failure: Option<RunFailureRecord<'run>>,
    started_at: String,
    /// When it must have ended; `None` for never.
    deadline: Option<String>,
    ended_at: Option<String>,
}

/// The failure that decided a run's end, as JSON.
#[derive(Clone, Debug, Serialize)]
struct RunFailureRecord<'run> {
    step: &'run str,
    attempt: u32,
    #[serde(flatten)]
    failure: FailureRecord<'run>,
}

impl<'run> RunRecord<'run> {
    pub(super) fn new(row: &'run RunRow, stored: &'run StoredDefinition) -> Self {
        Self {
            tenant: row.tenant.as_str(),
            run: row.id.as_str(),
            key: row.key.to_string(),
            workflow: &stored.definition.workflow,
            version: stored.version,
            status: row.status,
            n_open: row.n_open,
            n_failed: row.n_failed,
            n_cancelled: row.n_cancelled,
            cancelled: row.cancelled,
            failure: row.failure.as_deref().map(RunFailureRecord::new),
            started_at: moment(row.started_at),
            deadline: row.deadline.map(moment),
            ended_at: row.ended_at.map(moment),
        }
    }
}

impl<'run> RunFailureRecord<'run> {
    fn new(failure: &'run RunFailure) -> Self {
        let RunFailure { step, attempt, failure, .. } = failure;
        Self { step, attempt: *attempt, failure: FailureRecord::new(failure) }
    }
}
