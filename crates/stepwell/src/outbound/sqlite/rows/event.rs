//! Events that follow from no other row.

use rusqlite::params;
use stepwell_core::id::RunKey;
use stepwell_core::run::EventRow;

use super::cells::{Cells, Rows, int, json, key};
use crate::outbound::sql::{Column, Table, named};
use crate::outbound::sqlite::file::File;

const SQL: &str = include_str!("../sql/event.sql");
const DUMP_EVENTS: &str = named(SQL, "dump_events");
const INSERT_EVENT: &str = named(SQL, "insert_event");
const READ_EVENTS: &str = named(SQL, "read_events");

pub(super) const EVENT: Table = Table {
    name: "event",
    columns: &[
        Column::key("run", "integer"),
        Column::key("number", "integer"),
        Column::kept("at", "integer"),
        Column::kept("node", "integer"),
        Column::kept("attempt", "integer"),
        Column::kept("kind", "text"),
    ],
};

const fn at(column: &str) -> usize {
    EVENT.index(column)
}

fn read(row: Cells<'_, '_>) -> Rows<EventRow> {
    Ok(EventRow {
        number: row.unsigned(const { at("number") })?,
        at: row.time(const { at("at") })?,
        node: row.optional_node(const { at("node") })?,
        attempt: row.count(const { at("attempt") })?,
        kind: row.json("event", const { at("kind") })?,
    })
}

pub(crate) fn insert(file: File<'_, '_>, run_no: i64, event: &EventRow) -> Rows<()> {
    file.run(
        INSERT_EVENT,
        params![
            run_no,
            int(event.number),
            event.at.as_micros(),
            event.node.map(|node| node.0),
            event.attempt,
            json(&event.kind)?,
        ],
    )?;
    Ok(())
}

/// The events of a run in order.
pub(crate) fn of_run(file: File<'_, '_>, run: RunKey) -> Rows<Vec<EventRow>> {
    file.all(READ_EVENTS, [key(run)], |row| read(Cells::of(row)))
}

pub(crate) fn all(file: File<'_, '_>) -> Rows<Vec<(RunKey, EventRow)>> {
    file.all(DUMP_EVENTS, [], |row| {
        let row = Cells::of(row);
        Ok((row.run_key(EVENT.columns.len())?, read(row)?))
    })
}
