//! What running steps say about how far they have come.

use rusqlite::params;
use stepwell_core::id::{RunKey, WorkerId};
use stepwell_core::time::Timestamp;

use super::cells::{Cells, Rows, key, selected, token};
use crate::outbound::sql::named;
use crate::outbound::sqlite::file::File;
use crate::ports::{ProgressReport, ReportedProgress};

const SQL: &str = include_str!("../sql/progress.sql");
const DELETE_PROGRESS: &str = named(SQL, "delete_progress");
const DELETE_STALE_PROGRESS: &str = named(SQL, "delete_stale_progress");
const READ_PROGRESS: &str = named(SQL, "read_progress");
const TELL_PROGRESS: &str = named(SQL, "tell_progress");

/// Keeps what a task says, if it is still under the claim.
pub(crate) fn tell(file: File<'_, '_>, report: &ProgressReport, told_at: Timestamp) -> Rows<()> {
    let ProgressReport { claim, text } = report;
    let row = params![key(claim.run), claim.node.0, token(claim.token), told_at.as_micros(), text];
    file.run(TELL_PROGRESS, row).map(drop)
}

/// Forgets what tasks of a worker told in attempts that have ended.
pub(crate) fn forget_stale(file: File<'_, '_>, worker: &WorkerId) -> Rows<()> {
    file.run(DELETE_STALE_PROGRESS, [worker.as_str()]).map(drop)
}

/// Forgets what tasks of a worker told.
pub(crate) fn forget(file: File<'_, '_>, worker_no: i64) -> Rows<()> {
    file.run(DELETE_PROGRESS, [worker_no]).map(drop)
}

selected! { Reported { Node, Token, ToldAt, Text, } }

pub(crate) fn of_run(file: File<'_, '_>, run: RunKey) -> Rows<Vec<ReportedProgress>> {
    file.all(READ_PROGRESS, [key(run)], |row| {
        let row = Cells::of(row);
        Ok(ReportedProgress {
            node: row.node(Reported::Node)?,
            token: row.token(Reported::Token)?,
            told_at: row.time(Reported::ToldAt)?,
            text: row.get(Reported::Text)?,
        })
    })
}
