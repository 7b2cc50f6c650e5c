//! Open waits.

use rusqlite::params;
use stepwell_core::id::{DefinitionId, Node, RunKey, Tenant};
use stepwell_core::queue::TenantNo;
use stepwell_core::run::{WaitKind, WaitRow};
use stepwell_core::time::Timestamp;

use super::cells::{Cells, ONLY, Rows, int, json, key};
use crate::outbound::sql::{Column, Table, named};
use crate::outbound::sqlite::file::File;

const SQL: &str = include_str!("../sql/wait.sql");
const DELETE_WAIT: &str = named(SQL, "delete_wait");
const DELETE_WAITS: &str = named(SQL, "delete_waits");
const DUMP_WAITS: &str = named(SQL, "dump_waits");
const INSERT_WAIT: &str = named(SQL, "insert_wait");
const READ_WAITS: &str = named(SQL, "read_waits");
const WAITING_RUNS: &str = named(SQL, "waiting_runs");

pub(super) const WAIT: Table = Table {
    name: "wait",
    columns: &[
        Column::key("run", "integer"),
        Column::key("node", "integer"),
        Column::key("key", "text"),
        Column::kept("number", "integer"),
        Column::kept("place", "integer"),
        Column::kept("kind", "integer"),
        Column::kept("tenant_no", "integer"),
        Column::kept("definition", "integer"),
        Column::kept("run_key", "blob"),
        Column::kept("signals", "text"),
        Column::kept("matching", "text"),
        Column::kept("n_signals_before", "integer"),
        Column::kept("opened_at", "integer"),
        Column::kept("deadline", "integer"),
    ],
};

const fn at(column: &str) -> usize {
    WAIT.index(column)
}

fn read(row: Cells<'_, '_>) -> Rows<WaitRow> {
    Ok(WaitRow {
        node: row.node(const { at("node") })?,
        key: row.get(const { at("key") })?,
        number: row.unsigned(const { at("number") })?,
        place: row.count(const { at("place") })?,
        kind: row.state(const { at("kind") }, WaitKind::ALL, |kind| kind as i64)?,
        signals: row.json("awaited signals", const { at("signals") })?,
        matching: row.json("awaited attributes", const { at("matching") })?,
        n_signals_before: row.unsigned(const { at("n_signals_before") })?,
        opened_at: row.time(const { at("opened_at") })?,
        deadline: row.optional_time(const { at("deadline") })?,
    })
}

/// A run as the rows of its waits name it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitingRun {
    pub(crate) no: i64,
    pub(crate) key: RunKey,
    pub(crate) tenant_no: TenantNo,
    pub(crate) definition: DefinitionId,
}

pub(crate) fn insert(file: File<'_, '_>, run: WaitingRun, wait: &WaitRow) -> Rows<()> {
    file.run(
        INSERT_WAIT,
        params![
            run.no,
            wait.node.0,
            wait.key,
            int(wait.number),
            wait.place,
            wait.kind as i64,
            run.tenant_no.0,
            run.definition.0,
            key(run.key),
            json(&wait.signals)?,
            json(&wait.matching)?,
            int(wait.n_signals_before),
            wait.opened_at.as_micros(),
            wait.deadline.map(Timestamp::as_micros),
        ],
    )?;
    Ok(())
}

/// Deletes all waits of a task.
pub(crate) fn delete_all(file: File<'_, '_>, run_no: i64, node: Node) -> Rows<()> {
    file.run(DELETE_WAITS, params![run_no, node.0]).map(drop)
}

/// Deletes one wait of a function.
pub(crate) fn delete(file: File<'_, '_>, run_no: i64, node: Node, wait_key: &str) -> Rows<()> {
    file.run(DELETE_WAIT, params![run_no, node.0, wait_key]).map(drop)
}

/// The open waits of a run, oldest first.
pub(crate) fn of_run(file: File<'_, '_>, run: RunKey) -> Rows<Vec<WaitRow>> {
    file.all(READ_WAITS, [key(run)], |row| read(Cells::of(row)))
}

/// The runs of a tenant and a definition that wait for a signal, in the order of their keys.
pub(crate) fn waiting_runs(
    file: File<'_, '_>,
    (tenant, definition): (&Tenant, DefinitionId),
    signal: &str,
    after: Option<RunKey>,
    rows_max: usize,
) -> Rows<Vec<RunKey>> {
    let after = after.map(key);
    // Nothing is before the empty key.
    let after: &[u8] = after.as_ref().map_or(&[], |key| key);
    let n = i64::try_from(rows_max).unwrap_or(i64::MAX);
    let params = params![tenant.as_str(), definition.0, after, signal, n];
    file.all(WAITING_RUNS, params, |row| Cells::of(row).run_key(ONLY))
}

pub(crate) fn all(file: File<'_, '_>) -> Rows<Vec<(RunKey, WaitRow)>> {
    file.all(DUMP_WAITS, [], |row| {
        let row = Cells::of(row);
        Ok((row.run_key(const { at("run_key") })?, read(row)?))
    })
}
