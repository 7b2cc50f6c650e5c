//! Runs.

use rusqlite::{Row, params};
use stepwell_core::id::{DefinitionId, RunId, RunKey, Tenant};
use stepwell_core::queue::TenantNo;
use stepwell_core::run::{RunFailure, RunRow, RunStatus};
use stepwell_core::time::Timestamp;

use super::cells::{Cells, ONLY, Rows, int, json, key, selected};
use super::payload;
use crate::outbound::sql::{Column, Table, named};
use crate::outbound::sqlite::file::File;
use crate::ports::{EndOutput, Payload, RunEnd, RunFilter};

const SQL: &str = include_str!("../sql/run.sql");
const ADVANCE_RUN: &str = named(SQL, "advance_run");
const DUMP_RUNS: &str = named(SQL, "dump_runs");
const END_RUN: &str = named(SQL, "end_run");
const FIND_RUN: &str = named(SQL, "find_run");
const INSERT_FRESH_RUN: &str = named(SQL, "insert_fresh_run");
const INSERT_RUN: &str = named(SQL, "insert_run");
const LIST_RUNS: &str = named(SQL, "list_runs");
const LOOK_UNTIL: &str = named(SQL, "look_until");
const READ_ENDED: &str = named(SQL, "read_ended");
const READ_GIVEN: &str = named(SQL, "read_given");
const READ_RUN: &str = named(SQL, "read_run");
const UPDATE_RUN: &str = named(SQL, "update_run");

pub(super) const RUN: Table = Table {
    name: "run",
    columns: &[
        Column::key("no", "integer"),
        Column::kept("key", "blob"),
        Column::kept("tenant_no", "integer"),
        Column::kept("id", "text"),
        Column::kept("definition", "integer"),
        Column::kept("started_at", "integer"),
        Column::kept("deadline", "integer"),
        Column::kept("input_digest", "blob"),
        Column::changed("status", "integer"),
        Column::changed("n_open", "integer"),
        Column::changed("n_failed", "integer"),
        Column::changed("n_cancelled", "integer"),
        Column::changed("cancelled", "integer"),
        Column::changed("n_signals", "integer"),
        Column::changed("n_unconsumed", "integer"),
        Column::changed("failure", "text"),
        Column::changed("next_event", "integer"),
        Column::changed("end_event", "integer"),
        Column::changed("ended_at", "integer"),
    ],
};

const fn at(column: &str) -> usize {
    RUN.index(column)
}

/// What the tasks of a run are executed with.
pub(super) const GIVEN: Table = Table {
    name: "given",
    columns: &[
        Column::kept("definition", "integer"),
        Column::kept("failure", "text"),
        Column::kept("input_codec", "text"),
        Column::kept("input", "blob"),
    ],
};

/// A run with what only rows say of it.
pub(crate) struct StoredRun {
    pub(crate) row: RunRow,
    /// The number by which other rows name it.
    pub(crate) no: i64,
    pub(crate) tenant_no: TenantNo,
    pub(crate) input_digest: [u8; 32],
}

/// The columns of a run and its tenant's name take up this many.
pub(super) const N_COLUMNS: usize = RUN.columns.len() + 1;

pub(super) fn read(row: Cells<'_, '_>) -> Rows<StoredRun> {
    let run = RunRow {
        key: row.run_key(const { at("key") })?,
        tenant: row.name::<Tenant>(RUN.columns.len())?,
        id: row.name::<RunId>(const { at("id") })?,
        definition: DefinitionId(row.count(const { at("definition") })?),
        status: status(row, const { at("status") })?,
        n_open: row.count(const { at("n_open") })?,
        n_failed: row.count(const { at("n_failed") })?,
        n_cancelled: row.count(const { at("n_cancelled") })?,
        cancelled: row.get(const { at("cancelled") })?,
        n_signals: row.unsigned(const { at("n_signals") })?,
        n_unconsumed: row.count(const { at("n_unconsumed") })?,
        failure: row.optional_json("run failure", const { at("failure") })?,
        next_event: row.unsigned(const { at("next_event") })?,
        end_event: row.optional_unsigned(const { at("end_event") })?,
        started_at: row.time(const { at("started_at") })?,
        deadline: row.optional_time(const { at("deadline") })?,
        ended_at: row.optional_time(const { at("ended_at") })?,
    };
    Ok(StoredRun {
        row: run,
        no: row.get(const { at("no") })?,
        tenant_no: TenantNo(row.count(const { at("tenant_no") })?),
        input_digest: row.get(const { at("input_digest") })?,
    })
}

fn read_whole(row: &Row<'_>) -> Rows<StoredRun> {
    read(Cells::of(row))
}

fn status(row: Cells<'_, '_>, column: impl Into<usize>) -> Rows<RunStatus> {
    row.state(column, RunStatus::ALL, |status| status as i64)
}

/// Stores a run unless its id is known, and gives its number. An input goes with it if it is small.
pub(crate) fn insert(
    file: File<'_, '_>,
    run: &RunRow,
    tenant_no: TenantNo,
    input_digest: &[u8; 32],
    input: Option<&Payload>,
) -> Rows<Option<i64>> {
    let (codec, bytes) =
        (input.map(|input| input.codec.as_ref()), input.map(|input| input.bytes.as_ref()));
    if is_fresh(run) {
        let params = params![
            key(run.key),
            tenant_no.0,
            run.id.as_str(),
            run.definition.0,
            run.started_at.as_micros(),
            run.deadline.map(Timestamp::as_micros),
            input_digest,
            run.n_open,
            int(run.next_event),
            codec,
            bytes,
        ];
        let n = file.run_small(INSERT_FRESH_RUN, params)?;
        return Ok((n == 1).then(|| file.last_inserted()));
    }
    let n = file.run_small(
        INSERT_RUN,
        params![
            None::<i64>,
            key(run.key),
            tenant_no.0,
            run.id.as_str(),
            run.definition.0,
            run.started_at.as_micros(),
            run.deadline.map(Timestamp::as_micros),
            input_digest,
            run.status as i64,
            run.n_open,
            run.n_failed,
            run.n_cancelled,
            run.cancelled,
            int(run.n_signals),
            run.n_unconsumed,
            run.failure.as_ref().map(json).transpose()?,
            int(run.next_event),
            run.end_event.map(int),
            run.ended_at.map(Timestamp::as_micros),
            codec,
            bytes,
        ],
    )?;
    Ok((n == 1).then(|| file.last_inserted()))
}

/// Whether a run is as [`INSERT_FRESH_RUN`] has it. All columns are named, so that a new one has to
/// be thought of here.
fn is_fresh(run: &RunRow) -> bool {
    let RunRow {
        key: _,
        tenant: _,
        id: _,
        definition: _,
        status,
        n_open: _,
        n_failed,
        n_cancelled,
        cancelled,
        n_signals,
        n_unconsumed,
        failure,
        next_event: _,
        end_event,
        started_at: _,
        deadline: _,
        ended_at,
    } = run;
    let is_counted = *n_failed > 0 || *n_cancelled > 0 || *n_signals > 0 || *n_unconsumed > 0;
    let is_over = failure.is_some() || end_event.is_some() || ended_at.is_some();
    *status == RunStatus::Running && !is_counted && !is_over && !cancelled
}

/// Writes every column that can change.
pub(crate) fn update(file: File<'_, '_>, no: i64, run: &RunRow) -> Rows<()> {
    file.run_small(
        UPDATE_RUN,
        params![
            no,
            run.status as i64,
            run.n_open,
            run.n_failed,
            run.n_cancelled,
            run.cancelled,
            int(run.n_signals),
            run.n_unconsumed,
            run.failure.as_ref().map(json).transpose()?,
            int(run.next_event),
            run.end_event.map(int),
            run.ended_at.map(Timestamp::as_micros),
        ],
    )?;
    Ok(())
}

/// Writes only what [`copy_advance`] copies.
pub(crate) fn advance(file: File<'_, '_>, no: i64, run: &RunRow) -> Rows<()> {
    file.run_small(ADVANCE_RUN, params![no, run.n_open, int(run.next_event)]).map(drop)
}

/// Copies what [`advance`] writes. If the rows are equal then, it is enough.
pub(crate) fn copy_advance(from: &RunRow, to: &mut RunRow) {
    to.n_open = from.n_open;
    to.next_event = from.next_event;
}

/// Writes only what [`copy_end`] copies.
pub(crate) fn end(file: File<'_, '_>, no: i64, run: &RunRow) -> Rows<()> {
    let params = params![
        no,
        run.status as i64,
        run.n_open,
        int(run.next_event),
        run.end_event.map(int),
        run.ended_at.map(Timestamp::as_micros),
    ];
    file.run_small(END_RUN, params).map(drop)
}

/// Copies what [`end`] writes. If the rows are equal then, it is enough.
pub(crate) fn copy_end(from: &RunRow, to: &mut RunRow) {
    copy_advance(from, to);
    to.status = from.status;
    to.end_event = from.end_event;
    to.ended_at = from.ended_at;
}

pub(crate) fn load(file: File<'_, '_>, run: RunKey) -> Rows<Option<StoredRun>> {
    file.first(READ_RUN, [key(run)], read_whole)
}

pub(crate) fn find(file: File<'_, '_>, tenant: &Tenant, id: &RunId) -> Rows<Option<StoredRun>> {
    file.first(FIND_RUN, [tenant.as_str(), id.as_str()], read_whole)
}

/// The last of so many runs before a key, if there are so many.
pub(crate) fn look_until(file: File<'_, '_>, before: RunKey, n: usize) -> Rows<Option<RunKey>> {
    let n_before = i64::try_from(n).unwrap_or(i64::MAX).saturating_sub(1);
    file.first(LOOK_UNTIL, params![key(before), n_before], |row| Cells::of(row).run_key(ONLY))
}

/// Runs before a key, down to another, newest first.
pub(crate) fn list(
    file: File<'_, '_>,
    filter: &RunFilter,
    before: RunKey,
    down_to: RunKey,
    rows_max: usize,
) -> Rows<Vec<StoredRun>> {
    let params = params![
        key(before),
        filter.tenant.as_ref().map(Tenant::as_str),
        filter.workflow,
        filter.status.map(|status| status as i64),
        i64::try_from(rows_max).unwrap_or(i64::MAX),
        key(down_to),
    ];
    file.all(LIST_RUNS, params, read_whole)
}

pub(crate) fn all(file: File<'_, '_>) -> Rows<Vec<StoredRun>> {
    file.all(DUMP_RUNS, [], read_whole)
}

selected! { Ended { Status, Failure, } }

/// How a run ended, if it did.
pub(crate) fn ended(file: File<'_, '_>, run: RunKey) -> Rows<Option<RunEnd>> {
    file.first(READ_ENDED, [key(run)], |row| {
        let cells = Cells::of(row);
        Ok(RunEnd {
            status: status(cells, Ended::Status)?,
            failure: cells.optional_json("run failure", Ended::Failure)?,
            output_of: None,
            output: EndOutput::Known(None),
        })
    })
}

/// What the tasks of a run are executed with: its definition and failure, and its input if that
/// is small.
pub(crate) struct Given {
    pub(crate) definition: DefinitionId,
    pub(crate) failure: Option<Box<RunFailure>>,
    pub(crate) input: Option<Payload>,
}

pub(crate) fn given(file: File<'_, '_>, run: RunKey) -> Rows<Option<Given>> {
    const fn at(column: &str) -> usize {
        GIVEN.index(column)
    }
    file.first(READ_GIVEN, [key(run)], |row| {
        let row = Cells::of(row);
        Ok(Given {
            definition: DefinitionId(row.count(const { at("definition") })?),
            failure: row.optional_json("run failure", const { at("failure") })?,
            input: payload::small(row.after(const { at("input_codec") }))?,
        })
    })
}
