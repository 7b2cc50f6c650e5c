//! Attempts, but for those that the rows of completed tasks carry.

use rusqlite::params;
use stepwell_core::id::{RunKey, WorkerId};
use stepwell_core::run::{AttemptRow, AttemptState, Claim};

use super::cells::{Cells, Rows, int, json, key, token};
use crate::outbound::sql::{Column, Table, named};
use crate::outbound::sqlite::file::File;
use crate::ports::ClaimRef;

const SQL: &str = include_str!("../sql/attempt.sql");
const DUMP_ATTEMPTS: &str = named(SQL, "dump_attempts");
const FIND_ATTEMPT: &str = named(SQL, "find_attempt");
const INSERT_ATTEMPT: &str = named(SQL, "insert_attempt");
const READ_ATTEMPTS: &str = named(SQL, "read_attempts");

pub(super) const ATTEMPT: Table = Table {
    name: "attempt",
    columns: &[
        Column::key("run", "integer"),
        Column::key("node", "integer"),
        Column::key("attempt", "integer"),
        Column::kept("state", "integer"),
        Column::kept("worker", "integer"),
        Column::kept("token", "blob"),
        Column::kept("queued_at", "integer"),
        Column::kept("started_at", "integer"),
        Column::kept("ended_at", "integer"),
        Column::kept("first_event", "integer"),
        Column::kept("with_queued", "integer"),
        Column::kept("failure", "text"),
        Column::kept("retry", "text"),
        Column::kept("notes", "text"),
    ],
};

const fn at(column: &str) -> usize {
    ATTEMPT.index(column)
}

fn read(row: Cells<'_, '_>) -> Rows<AttemptRow> {
    Ok(AttemptRow {
        node: row.node(const { at("node") })?,
        attempt: row.count(const { at("attempt") })?,
        state: state(row, const { at("state") })?,
        claim: Claim {
            worker: row.name::<WorkerId>(ATTEMPT.columns.len())?,
            token: row.token(const { at("token") })?,
            queued_at: row.time(const { at("queued_at") })?,
            started_at: row.time(const { at("started_at") })?,
        },
        ended_at: row.time(const { at("ended_at") })?,
        first_event: row.unsigned(const { at("first_event") })?,
        with_queued: row.get(const { at("with_queued") })?,
        failure: row.optional_json("attempt failure", const { at("failure") })?,
        retry: row.optional_json("retry plan", const { at("retry") })?,
        notes: row.optional_json("notes", const { at("notes") })?.unwrap_or_default(),
    })
}

fn state(row: Cells<'_, '_>, column: usize) -> Rows<AttemptState> {
    row.state(column, AttemptState::ALL, |state| state as i64)
}

pub(crate) fn insert(
    file: File<'_, '_>,
    run_no: i64,
    worker_no: i64,
    attempt: &AttemptRow,
) -> Rows<()> {
    let notes = (!attempt.notes.is_empty()).then(|| json(&attempt.notes)).transpose()?;
    file.run(
        INSERT_ATTEMPT,
        params![
            run_no,
            attempt.node.0,
            attempt.attempt,
            attempt.state as i64,
            worker_no,
            token(attempt.claim.token),
            attempt.claim.queued_at.as_micros(),
            attempt.claim.started_at.as_micros(),
            attempt.ended_at.as_micros(),
            int(attempt.first_event),
            attempt.with_queued,
            attempt.failure.as_ref().map(json).transpose()?,
            attempt.retry.as_ref().map(json).transpose()?,
            notes,
        ],
    )?;
    Ok(())
}

/// How the attempt under a claim ended, if it did.
pub(crate) fn ended(file: File<'_, '_>, claim: ClaimRef) -> Rows<Option<AttemptState>> {
    let params = params![key(claim.run), claim.node.0, token(claim.token)];
    file.first(FIND_ATTEMPT, params, |row| state(Cells::of(row), 0))
}

/// The attempts of a run in the order they ended.
pub(crate) fn of_run(file: File<'_, '_>, run: RunKey) -> Rows<Vec<AttemptRow>> {
    file.all(READ_ATTEMPTS, [key(run)], |row| read(Cells::of(row)))
}

pub(crate) fn all(file: File<'_, '_>) -> Rows<Vec<(RunKey, AttemptRow)>> {
    file.all(DUMP_ATTEMPTS, [], |row| {
        let row = Cells::of(row);
        Ok((row.run_key(ATTEMPT.columns.len() + 1)?, read(row)?))
    })
}
