//! Timers of tasks, and of runs as a whole.

use rusqlite::params;
use stepwell_core::id::{Node, RunKey};
use stepwell_core::time::Timestamp;

use super::cells::{Cells, ONLY, Rows, int, selected};
use crate::outbound::sql::{Column, Table, named};
use crate::outbound::sqlite::file::File;

const SQL: &str = include_str!("../sql/timer.sql");
const DELETE_DUE_TIMER: &str = named(SQL, "delete_due_timer");
const DELETE_TIMER: &str = named(SQL, "delete_timer");
const DUE_TIMERS: &str = named(SQL, "due_timers");
const DUMP_TIMERS: &str = named(SQL, "dump_timers");
const NEXT_TIMER: &str = named(SQL, "next_timer");
const PUT_OFF_FIRST_TIMER: &str = named(SQL, "put_off_first_timer");
const SET_TIMER: &str = named(SQL, "set_timer");

pub(super) const TIMER: Table = Table {
    name: "timer",
    columns: &[
        Column::key("due_at", "integer"),
        Column::key("number", "integer"),
        Column::kept("run", "integer"),
        Column::kept("node", "integer"),
    ],
};

/// Sets the timer of a task, or one of the run as a whole.
pub(crate) fn set(
    file: File<'_, '_>,
    due_at: Timestamp,
    number: u64,
    run_no: i64,
    node: Node,
) -> Rows<()> {
    let row = params![due_at.as_micros(), int(number), run_no, node.0];
    file.run(SET_TIMER, row).map(drop)
}

pub(crate) fn delete(file: File<'_, '_>, run_no: i64, node: Node) -> Rows<()> {
    file.run(DELETE_TIMER, params![run_no, node.0]).map(drop)
}

/// Deletes a timer that fired, unless it was set anew.
pub(crate) fn delete_due(file: File<'_, '_>, run_no: i64, node: Node, now: Timestamp) -> Rows<()> {
    file.run(DELETE_DUE_TIMER, params![run_no, node.0, now.as_micros()]).map(drop)
}

selected! { Set { RunKey, Node, DueAt, } }

/// The tasks whose timers are due, earliest first.
pub(crate) fn due(
    file: File<'_, '_>,
    now: Timestamp,
    timers_max: usize,
) -> Rows<Vec<(RunKey, Node)>> {
    let n = i64::try_from(timers_max).unwrap_or(i64::MAX);
    file.all(DUE_TIMERS, params![now.as_micros(), n], |row| {
        let row = Cells::of(row);
        Ok((row.run_key(Set::RunKey)?, row.node(Set::Node)?))
    })
}

/// Makes the timer that is due first be due at another moment.
pub(crate) fn put_off_first(file: File<'_, '_>, due_at: Timestamp) -> Rows<()> {
    file.run(PUT_OFF_FIRST_TIMER, [due_at.as_micros()]).map(drop)
}

/// When the next timer is due.
pub(crate) fn next_due(file: File<'_, '_>) -> Rows<Option<Timestamp>> {
    file.first(NEXT_TIMER, [], |row| Cells::of(row).time(ONLY))
}

pub(crate) fn all(file: File<'_, '_>) -> Rows<Vec<((RunKey, Node), Timestamp)>> {
    file.all(DUMP_TIMERS, [], |row| {
        let row = Cells::of(row);
        Ok(((row.run_key(Set::RunKey)?, row.node(Set::Node)?), row.time(Set::DueAt)?))
    })
}
