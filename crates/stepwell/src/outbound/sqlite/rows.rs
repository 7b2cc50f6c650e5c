//! Rows to values and back. A row that makes no sense is refused, never guessed at.

use std::borrow::Cow;

use rusqlite::Row;
use serde::Serialize;
use serde::de::DeserializeOwned;
use stepwell_core::fair::{OrderKey, Position};
use stepwell_core::id::{DefinitionId, Node, Queue, RunId, RunKey, Tenant, Token, WorkerId};
use stepwell_core::run::{
    AttemptRow, AttemptState, Claim, EventRow, Phase, RunFailure, RunRow, RunStatus, TaskRow,
    TaskState,
};
use stepwell_core::time::Timestamp;

use super::book::{HeldTask, Place};
use super::error::corrupt;
use crate::ports::{Payload, StoreError, StoredDefinition};

type Read<T> = Result<T, StoreError>;

pub(super) fn key(run: RunKey) -> [u8; 16] {
    run.0.to_be_bytes()
}

pub(super) fn token(token: Token) -> [u8; 16] {
    token.0.to_be_bytes()
}

/// Unsigned numbers of the engine fit a signed column by construction.
pub(super) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn json(value: &impl Serialize) -> Read<String> {
    serde_json::to_string(value).map_err(|error| corrupt(error.to_string()))
}

fn from_json<T: DeserializeOwned>(what: &str, text: &str) -> Read<T> {
    serde_json::from_str(text).map_err(|error| corrupt(format!("{what}: {error}")))
}

fn optional_json<T: DeserializeOwned>(what: &str, text: Option<String>) -> Read<Option<T>> {
    text.map(|text| from_json(what, &text)).transpose()
}

pub(super) fn unsigned(row: &Row<'_>, column: usize) -> Read<u64> {
    let number: i64 = row.get(column)?;
    u64::try_from(number).map_err(|_| corrupt("a count is negative"))
}

pub(super) fn count(row: &Row<'_>, column: usize) -> Read<u32> {
    u32::try_from(unsigned(row, column)?).map_err(|_| corrupt("a count is too large"))
}

pub(super) fn node(row: &Row<'_>, column: usize) -> Read<Node> {
    count(row, column).map(Node)
}

pub(super) fn run_key(row: &Row<'_>, column: usize) -> Read<RunKey> {
    let bytes: [u8; 16] = row.get(column)?;
    Ok(RunKey(u128::from_be_bytes(bytes)))
}

pub(super) fn read_token(row: &Row<'_>, column: usize) -> Read<Token> {
    let bytes: [u8; 16] = row.get(column)?;
    Ok(Token(u128::from_be_bytes(bytes)))
}

pub(super) fn time(row: &Row<'_>, column: usize) -> Read<Timestamp> {
    Ok(Timestamp::from_micros(row.get(column)?))
}

fn optional_time(row: &Row<'_>, column: usize) -> Read<Option<Timestamp>> {
    let micros: Option<i64> = row.get(column)?;
    Ok(micros.map(Timestamp::from_micros))
}

/// A name that was checked when it was stored.
pub(super) fn name<T: TryFrom<String>>(row: &Row<'_>, column: usize) -> Read<T> {
    let text: String = row.get(column)?;
    T::try_from(text).map_err(|_| corrupt("a stored name is not well formed"))
}

/// A state by its number.
fn state<T: Copy>(all: &[T], number_of: impl Fn(T) -> i64, number: i64) -> Read<T> {
    let found = all.iter().copied().find(|state| number_of(*state) == number);
    found.ok_or_else(|| corrupt(format!("state {number} is unknown")))
}

pub(super) fn task_state(number: i64) -> Read<TaskState> {
    state(TaskState::ALL, |state| state as i64, number)
}

pub(super) fn run_failure(row: &Row<'_>, column: usize) -> Read<Option<Box<RunFailure>>> {
    optional_json("run failure", row.get(column)?)
}

pub(super) fn run_status(number: i64) -> Read<RunStatus> {
    state(RunStatus::ALL, |status| status as i64, number)
}

pub(super) fn attempt_state(number: i64) -> Read<AttemptState> {
    state(AttemptState::ALL, |state| state as i64, number)
}

pub(super) fn definition(row: &Row<'_>) -> Read<StoredDefinition> {
    let body: String = row.get(2)?;
    Ok(StoredDefinition {
        id: DefinitionId(count(row, 0)?),
        version: count(row, 1)?,
        definition: from_json("definition", &body)?,
    })
}

/// Payloads up to this size lie in the rows of runs and tasks. Larger ones have rows of their own,
/// because a row is written anew whenever anything in it changes.
const SMALL_BYTES_MAX: usize = 512;

pub(super) fn is_small(payload: &Payload) -> bool {
    payload.bytes.len() <= SMALL_BYTES_MAX
}

/// A payload that is null if it lies elsewhere.
pub(super) fn small_payload(row: &Row<'_>, first: usize) -> Read<Option<Payload>> {
    let codec: Option<String> = row.get(first)?;
    codec.map(|_| payload(row, first)).transpose()
}

pub(super) fn payload(row: &Row<'_>, first: usize) -> Read<Payload> {
    let codec: String = row.get(first)?;
    let bytes: Vec<u8> = row.get(first + 1)?;
    Ok(Payload { codec: Cow::Owned(codec), bytes: bytes.into() })
}

/// A run with what only rows say of it.
pub(super) struct StoredRun {
    pub(super) row: RunRow,
    pub(super) group: u32,
    pub(super) input_digest: [u8; 32],
    /// The number by which other rows name it.
    pub(super) no: i64,
}

pub(super) fn run(row: &Row<'_>) -> Read<StoredRun> {
    run_and_number(row, 16)
}

fn run_and_number(row: &Row<'_>, no: usize) -> Read<StoredRun> {
    let end_event: Option<i64> = row.get(11)?;
    let run = RunRow {
        key: run_key(row, 0)?,
        tenant: name::<Tenant>(row, 1)?,
        id: name::<RunId>(row, 2)?,
        definition: DefinitionId(count(row, 3)?),
        status: run_status(row.get(4)?)?,
        n_open: count(row, 5)?,
        n_failed: count(row, 6)?,
        n_cancelled: count(row, 7)?,
        cancelled: row.get(8)?,
        failure: run_failure(row, 9)?,
        next_event: unsigned(row, 10)?,
        end_event: end_event.map(i64::unsigned_abs),
        started_at: time(row, 12)?,
        ended_at: optional_time(row, 13)?,
    };
    let (group, input_digest, no) = (count(row, 14)?, row.get(15)?, row.get(no)?);
    Ok(StoredRun { row: run, group, input_digest, no })
}

pub(super) fn task(row: &Row<'_>) -> Read<TaskRow> {
    let state = task_state(row.get(1)?)?;
    Ok(TaskRow {
        node: node(row, 0)?,
        phase: phase(row, state)?,
        n_unmet: count(row, 2)?,
        n_skipped: count(row, 3)?,
        attempt: count(row, 4)?,
        failures: count(row, 5)?,
        losses: count(row, 6)?,
        queued_logged: row.get(7)?,
    })
}

fn phase(row: &Row<'_>, state: TaskState) -> Read<Phase> {
    Ok(match state {
        TaskState::Pending => Phase::Pending,
        TaskState::Queued => Phase::Queued { since: time(row, 8)?, due: optional_time(row, 9)? },
        TaskState::Running => Phase::Running(Claim {
            worker: name::<WorkerId>(row, 11)?,
            token: read_token(row, 12)?,
            queued_at: time(row, 8)?,
            started_at: time(row, 10)?,
        }),
        TaskState::Sleeping => Phase::Sleeping { until: time(row, 9)? },
        TaskState::Completed => Phase::Completed,
        TaskState::Failed => Phase::Failed,
        TaskState::Cancelled => Phase::Cancelled,
        TaskState::Skipped => Phase::Skipped,
        _ => return Err(corrupt("a task is in a state this version does not know")),
    })
}

/// A run with one of its tasks, which is not running.
pub(super) fn ready(row: &Row<'_>) -> Read<(StoredRun, HeldTask)> {
    let state = task_state(row.get(17)?)?;
    let phase = match state {
        TaskState::Queued => Phase::Queued { since: time(row, 24)?, due: optional_time(row, 25)? },
        _ => return Err(corrupt("a task in a queue is not queued")),
    };
    let task = TaskRow {
        node: node(row, 16)?,
        phase,
        n_unmet: count(row, 18)?,
        n_skipped: count(row, 19)?,
        attempt: count(row, 20)?,
        failures: count(row, 21)?,
        losses: count(row, 22)?,
        queued_logged: row.get(23)?,
    };
    Ok((run_and_number(row, 31)?, HeldTask::stored(task, optional_place(row, 26)?)))
}

/// A task with its place: the columns of a task, then those of the place.
pub(super) fn held_task(row: &Row<'_>) -> Read<HeldTask> {
    Ok(HeldTask::stored(task(row)?, optional_place(row, 13)?))
}

/// A place that is null if the task has none.
fn optional_place(row: &Row<'_>, first: usize) -> Read<Option<Place>> {
    let queue: Option<String> = row.get(first)?;
    let Some(queue) = queue else { return Ok(None) };
    Ok(Some(Place {
        queue: Queue::new(queue).map_err(|_| corrupt("a stored name is not well formed"))?,
        order: OrderKey(unsigned(row, first + 1)?),
        number: unsigned(row, first + 2)?,
        position: Position(unsigned(row, first + 3)?),
        definition: DefinitionId(count(row, first + 4)?),
    }))
}

pub(super) fn attempt(row: &Row<'_>) -> Read<AttemptRow> {
    let notes: Option<String> = row.get(12)?;
    Ok(AttemptRow {
        node: node(row, 0)?,
        attempt: count(row, 1)?,
        state: attempt_state(row.get(2)?)?,
        claim: Claim {
            worker: name::<WorkerId>(row, 3)?,
            token: read_token(row, 4)?,
            queued_at: time(row, 5)?,
            started_at: time(row, 6)?,
        },
        ended_at: time(row, 7)?,
        first_event: unsigned(row, 8)?,
        with_queued: row.get(9)?,
        failure: optional_json("attempt failure", row.get(10)?)?,
        retry: optional_json("retry plan", row.get(11)?)?,
        notes: optional_json("notes", notes)?.unwrap_or_default(),
    })
}

pub(super) fn event(row: &Row<'_>) -> Read<EventRow> {
    let node: Option<i64> = row.get(2)?;
    let kind: String = row.get(4)?;
    let node = node.map(|node| u32::try_from(node).map(Node)).transpose();
    Ok(EventRow {
        number: unsigned(row, 0)?,
        at: time(row, 1)?,
        node: node.map_err(|_| corrupt("an event's node is no number"))?,
        attempt: count(row, 3)?,
        kind: from_json("event", &kind)?,
    })
}
