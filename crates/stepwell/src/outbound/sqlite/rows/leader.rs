//! The row that says who leads.

use rusqlite::params;
use stepwell_core::id::{Epoch, WorkerId};
use stepwell_core::time::Timestamp;

use super::cells::{Cells, Rows, int, selected};
use crate::outbound::sql::named;
use crate::outbound::sqlite::file::File;

const SQL: &str = include_str!("../sql/leader.sql");
const DELETE_LEADER: &str = named(SQL, "delete_leader");
const READ_LEADER: &str = named(SQL, "read_leader");
const SET_LEADER: &str = named(SQL, "set_leader");

/// A leader's term.
pub(crate) struct LeaderRow {
    pub(crate) worker: WorkerId,
    pub(crate) epoch: Epoch,
    pub(crate) until: Timestamp,
    /// The lock of its process, if it is a worker as well.
    pub(crate) process_lock: Option<String>,
}

selected! { Term { Worker, Epoch, Until, ProcessLock, } }

pub(crate) fn load(file: File<'_, '_>) -> Rows<Option<LeaderRow>> {
    file.first(READ_LEADER, [], |row| {
        let row = Cells::of(row);
        Ok(LeaderRow {
            worker: row.name(Term::Worker)?,
            epoch: Epoch(row.unsigned(Term::Epoch)?),
            until: row.time(Term::Until)?,
            process_lock: row.get(Term::ProcessLock)?,
        })
    })
}

pub(crate) fn set(
    file: File<'_, '_>,
    worker: &WorkerId,
    epoch: Epoch,
    until: Timestamp,
) -> Rows<()> {
    let row = params![worker.as_str(), int(epoch.0), until.as_micros()];
    file.run(SET_LEADER, row).map(drop)
}

/// Ends a term, unless another has begun.
pub(crate) fn delete(file: File<'_, '_>, epoch: Epoch) -> Rows<()> {
    file.run(DELETE_LEADER, [int(epoch.0)]).map(drop)
}
