//! Rows of `attempt`.

use std::collections::HashMap;

use stepwell_core::id::{RunKey, WorkerId};
use stepwell_core::run::{AttemptRow, AttemptState, Claim};
use tokio_postgres::Row;
use uuid::Uuid;

use super::cells::{Cells, Columns, columns, selected};
use super::{Param, Read, corrupt, int, int32, json, key, token};
use crate::ports::ClaimRef;

columns! {
    /// The columns of `attempt`.
    ATTEMPT: Col = "attempt" {
        key Run "run" "uuid",
        key Node "node" "int",
        key Attempt "attempt" "int",
        kept State "state" "smallint",
        kept Worker "worker" "bigint",
        kept Token "token" "uuid",
        kept QueuedAt "queued_at" "bigint",
        kept StartedAt "started_at" "bigint",
        kept EndedAt "ended_at" "bigint",
        kept FirstEvent "first_event" "bigint",
        kept WithQueued "with_queued" "bool",
        kept Failure "failure" "text",
        kept Retry "retry" "text",
        kept Notes "notes" "text",
    }
}

selected! {
    /// Read with an attempt.
    Joined { WorkerName, }
}

/// An attempt with its run.
pub(crate) fn read(row: &Row) -> Read<(RunKey, AttemptRow)> {
    let cells = Cells::of(row);
    let attempt = AttemptRow {
        node: cells.node(Col::Node)?,
        attempt: cells.count(Col::Attempt)?,
        state: state(cells, Col::State)?,
        claim: Claim {
            worker: cells.behind::<Col>().name(Joined::WorkerName)?,
            token: cells.token(Col::Token)?,
            queued_at: cells.time(Col::QueuedAt)?,
            started_at: cells.time(Col::StartedAt)?,
        },
        ended_at: cells.time(Col::EndedAt)?,
        first_event: cells.unsigned(Col::FirstEvent)?,
        with_queued: cells.get(Col::WithQueued)?,
        failure: cells.optional_json(Col::Failure, "attempt failure")?,
        retry: cells.optional_json(Col::Retry, "retry plan")?,
        notes: cells.optional_json(Col::Notes, "notes")?.unwrap_or_default(),
    };
    Ok((cells.run_key(Col::Run)?, attempt))
}

selected! { Found { Run, Node, Token, State, } }

/// How the attempt under a claim ended.
pub(crate) fn read_end(row: &Row) -> Read<(ClaimRef, AttemptState)> {
    let cells = Cells::of(row);
    let (run, node) = (cells.run_key(Found::Run)?, cells.node(Found::Node)?);
    let claim = ClaimRef { run, node, token: cells.token(Found::Token)? };
    Ok((claim, state(cells, Found::State)?))
}

fn state(cells: Cells<'_>, column: impl Columns) -> Read<AttemptState> {
    cells.state(column, AttemptState::ALL, |state| state as i16)
}

/// Attempts as lists of values.
#[derive(Default)]
pub(crate) struct AttemptArrays {
    run: Vec<Uuid>,
    node: Vec<i32>,
    attempt: Vec<i32>,
    state: Vec<i16>,
    worker: Vec<i64>,
    token: Vec<Uuid>,
    queued_at: Vec<i64>,
    started_at: Vec<i64>,
    ended_at: Vec<i64>,
    first_event: Vec<i64>,
    with_queued: Vec<bool>,
    failure: Vec<Option<String>>,
    retry: Vec<Option<String>>,
    notes: Vec<Option<String>>,
}

impl AttemptArrays {
    /// Attempts with their runs; the numbers of their workers are known.
    pub(crate) fn of<'r>(
        attempts: impl Iterator<Item = (RunKey, &'r AttemptRow)>,
        workers: &HashMap<WorkerId, i64>,
    ) -> Read<Self> {
        let mut arrays = Self::default();
        for (run, attempt) in attempts {
            let worker = workers.get(&attempt.claim.worker).copied();
            arrays.run.push(key(run));
            arrays.node.push(int32(attempt.node.0));
            arrays.attempt.push(int32(attempt.attempt));
            arrays.state.push(attempt.state as i16);
            arrays.worker.push(worker.ok_or_else(|| corrupt("a worker is missing"))?);
            arrays.token.push(token(attempt.claim.token));
            arrays.queued_at.push(attempt.claim.queued_at.as_micros());
            arrays.started_at.push(attempt.claim.started_at.as_micros());
            arrays.ended_at.push(attempt.ended_at.as_micros());
            arrays.first_event.push(int(attempt.first_event));
            arrays.with_queued.push(attempt.with_queued);
            arrays.failure.push(attempt.failure.as_ref().map(json).transpose()?);
            arrays.retry.push(attempt.retry.as_ref().map(json).transpose()?);
            let notes = (!attempt.notes.is_empty()).then(|| json(&attempt.notes));
            arrays.notes.push(notes.transpose()?);
        }
        Ok(arrays)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.run.is_empty()
    }

    pub(crate) fn params(&self) -> Vec<Param<'_>> {
        Col::ALL.iter().map(|column| self.param(*column)).collect()
    }

    fn param(&self, column: Col) -> Param<'_> {
        match column {
            Col::Run => &self.run,
            Col::Node => &self.node,
            Col::Attempt => &self.attempt,
            Col::State => &self.state,
            Col::Worker => &self.worker,
            Col::Token => &self.token,
            Col::QueuedAt => &self.queued_at,
            Col::StartedAt => &self.started_at,
            Col::EndedAt => &self.ended_at,
            Col::FirstEvent => &self.first_event,
            Col::WithQueued => &self.with_queued,
            Col::Failure => &self.failure,
            Col::Retry => &self.retry,
            Col::Notes => &self.notes,
        }
    }
}
