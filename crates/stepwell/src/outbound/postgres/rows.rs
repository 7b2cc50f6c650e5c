//! Rows to values and back. A row that makes no sense is refused, never guessed at.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Serialize;
use serde::de::DeserializeOwned;
use stepwell_core::id::{DefinitionId, Node, RunKey, Tenant, Token, WorkerId};
use stepwell_core::run::{
    AttemptRow, AttemptState, Claim, EventRow, Phase, RunRow, RunStatus, TaskRow, TaskState,
};
use stepwell_core::time::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use super::error::corrupt;
use super::known::RunFacts;
use crate::ports::{Payload, StoreError, StoredDefinition};

type Read<T> = Result<T, StoreError>;

pub(super) fn key(run: RunKey) -> Uuid {
    Uuid::from_u128(run.0)
}

pub(super) fn token(token: Token) -> Uuid {
    Uuid::from_u128(token.0)
}

/// Unsigned numbers of the engine fit a signed column by construction.
pub(super) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn int32(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

pub(super) fn json(value: &impl Serialize) -> Read<String> {
    serde_json::to_string(value).map_err(|error| corrupt(error.to_string()))
}

fn from_json<T: DeserializeOwned>(what: &str, text: &str) -> Read<T> {
    serde_json::from_str(text).map_err(|error| corrupt(format!("{what}: {error}")))
}

fn optional_json<T: DeserializeOwned>(what: &str, text: Option<&str>) -> Read<Option<T>> {
    text.map(|text| from_json(what, text)).transpose()
}

pub(super) fn unsigned(row: &Row, column: usize) -> Read<u64> {
    let number: i64 = row.try_get(column)?;
    u64::try_from(number).map_err(|_| corrupt("a count is negative"))
}

pub(super) fn count(row: &Row, column: usize) -> Read<u32> {
    let number: i32 = row.try_get(column)?;
    u32::try_from(number).map_err(|_| corrupt("a count is negative"))
}

pub(super) fn node(row: &Row, column: usize) -> Read<Node> {
    count(row, column).map(Node)
}

pub(super) fn run_key(row: &Row, column: usize) -> Read<RunKey> {
    let key: Uuid = row.try_get(column)?;
    Ok(RunKey(key.as_u128()))
}

pub(super) fn read_token(row: &Row, column: usize) -> Read<Token> {
    let token: Uuid = row.try_get(column)?;
    Ok(Token(token.as_u128()))
}

pub(super) fn time(row: &Row, column: usize) -> Read<Timestamp> {
    Ok(Timestamp::from_micros(row.try_get(column)?))
}

fn optional_time(row: &Row, column: usize) -> Read<Option<Timestamp>> {
    let micros: Option<i64> = row.try_get(column)?;
    Ok(micros.map(Timestamp::from_micros))
}

/// A name that was checked when it was stored.
pub(super) fn name<T: TryFrom<String>>(row: &Row, column: usize) -> Read<T> {
    let text: String = row.try_get(column)?;
    T::try_from(text).map_err(|_| corrupt("a stored name is not well formed"))
}

/// A state by its number.
fn state<T: Copy>(all: &[T], number_of: impl Fn(T) -> i16, number: i16) -> Read<T> {
    let found = all.iter().copied().find(|state| number_of(*state) == number);
    found.ok_or_else(|| corrupt(format!("state {number} is unknown")))
}

pub(super) fn run_status(row: &Row, column: usize) -> Read<RunStatus> {
    state(RunStatus::ALL, |status| status as i16, row.try_get(column)?)
}

pub(super) fn attempt_state(row: &Row, column: usize) -> Read<AttemptState> {
    state(AttemptState::ALL, |state| state as i16, row.try_get(column)?)
}

pub(super) fn definition(row: &Row) -> Read<StoredDefinition> {
    Ok(StoredDefinition {
        id: DefinitionId(count(row, 0)?),
        version: count(row, 1)?,
        definition: from_json("definition", row.try_get(2)?)?,
    })
}

pub(super) fn payload(row: &Row, first: usize) -> Read<Payload> {
    let codec: String = row.try_get(first)?;
    let bytes: &[u8] = row.try_get(first + 1)?;
    Ok(Payload { codec: Cow::Owned(codec), bytes: bytes.into() })
}

/// A run with its tenant's group and the digest of its input.
pub(super) struct StoredRun {
    pub(super) row: RunRow,
    pub(super) group: u32,
    pub(super) input_digest: [u8; 32],
}

impl StoredRun {
    /// What may be remembered of it.
    pub(super) fn facts(&self) -> RunFacts {
        RunFacts { definition: self.row.definition, group: self.group }
    }
}

/// The group of a run's tenant.
pub(super) fn run_group(row: &Row) -> Read<u32> {
    count(row, 14)
}

pub(super) fn run(row: &Row) -> Read<StoredRun> {
    run_of(row, name(row, 1)?)
}

/// A run whose tenant is known.
pub(super) fn run_of(row: &Row, tenant: Tenant) -> Read<StoredRun> {
    let end_event: Option<i64> = row.try_get(11)?;
    let digest: &[u8] = row.try_get(15)?;
    let run = RunRow {
        key: run_key(row, 0)?,
        tenant,
        id: name(row, 2)?,
        definition: DefinitionId(count(row, 3)?),
        status: run_status(row, 4)?,
        n_open: count(row, 5)?,
        n_failed: count(row, 6)?,
        n_cancelled: count(row, 7)?,
        cancelled: row.try_get(8)?,
        failure: optional_json("run failure", row.try_get(9)?)?,
        next_event: unsigned(row, 10)?,
        end_event: end_event.map(i64::unsigned_abs),
        started_at: time(row, 12)?,
        ended_at: optional_time(row, 13)?,
    };
    let input_digest = digest.try_into().map_err(|_| corrupt("a digest has no 32 bytes"))?;
    Ok(StoredRun { row: run, group: count(row, 14)?, input_digest })
}

/// A task with its run.
pub(super) fn task(row: &Row) -> Read<(RunKey, TaskRow)> {
    task_of(row, |row| name(row, 12))
}

/// The number of the worker that holds a task.
pub(super) fn task_worker(row: &Row) -> Read<Option<i64>> {
    Ok(row.try_get(12)?)
}

/// A task of a row that has its worker's number, with its run.
pub(super) fn task_by(row: &Row, workers: &HashMap<i64, WorkerId>) -> Read<(RunKey, TaskRow)> {
    task_of(row, |row| {
        let worker = task_worker(row)?.and_then(|no| workers.get(&no).cloned());
        worker.ok_or_else(|| corrupt("a worker is missing"))
    })
}

pub(super) fn task_state(row: &Row, column: usize) -> Read<TaskState> {
    state(TaskState::ALL, |state| state as i16, row.try_get(column)?)
}

fn task_of(row: &Row, worker: impl FnOnce(&Row) -> Read<WorkerId>) -> Read<(RunKey, TaskRow)> {
    let task = TaskRow {
        node: node(row, 1)?,
        phase: phase(row, task_state(row, 2)?, worker)?,
        n_unmet: count(row, 3)?,
        n_skipped: count(row, 4)?,
        attempt: count(row, 5)?,
        failures: count(row, 6)?,
        losses: count(row, 7)?,
        queued_logged: row.try_get(8)?,
    };
    Ok((run_key(row, 0)?, task))
}

fn phase(row: &Row, state: TaskState, worker: impl FnOnce(&Row) -> Read<WorkerId>) -> Read<Phase> {
    Ok(match state {
        TaskState::Pending => Phase::Pending,
        TaskState::Queued => Phase::Queued { since: time(row, 9)?, due: optional_time(row, 10)? },
        TaskState::Running => Phase::Running(Claim {
            worker: worker(row)?,
            token: read_token(row, 13)?,
            queued_at: time(row, 9)?,
            started_at: time(row, 11)?,
        }),
        TaskState::Sleeping => Phase::Sleeping { until: time(row, 10)? },
        TaskState::Completed => Phase::Completed,
        TaskState::Failed => Phase::Failed,
        TaskState::Cancelled => Phase::Cancelled,
        TaskState::Skipped => Phase::Skipped,
        _ => return Err(corrupt("a task is in a state this version does not know")),
    })
}

pub(super) fn attempt(row: &Row) -> Read<AttemptRow> {
    Ok(AttemptRow {
        node: node(row, 0)?,
        attempt: count(row, 1)?,
        state: attempt_state(row, 2)?,
        claim: Claim {
            worker: name(row, 3)?,
            token: read_token(row, 4)?,
            queued_at: time(row, 5)?,
            started_at: time(row, 6)?,
        },
        ended_at: time(row, 7)?,
        first_event: unsigned(row, 8)?,
        with_queued: row.try_get(9)?,
        failure: optional_json("attempt failure", row.try_get(10)?)?,
        retry: optional_json("retry plan", row.try_get(11)?)?,
        notes: optional_json("notes", row.try_get(12)?)?.unwrap_or_default(),
    })
}

pub(super) fn event(row: &Row) -> Read<EventRow> {
    let node: Option<i32> = row.try_get(2)?;
    let node = node.map(|node| u32::try_from(node).map(Node)).transpose();
    Ok(EventRow {
        number: unsigned(row, 0)?,
        at: time(row, 1)?,
        node: node.map_err(|_| corrupt("an event's node is no number"))?,
        attempt: count(row, 3)?,
        kind: from_json("event", row.try_get(4)?)?,
    })
}

/// Reads all rows with one reader.
pub(super) fn read_all<T>(rows: &[Row], read: impl Fn(&Row) -> Read<T>) -> Read<Vec<T>> {
    rows.iter().map(read).collect()
}
