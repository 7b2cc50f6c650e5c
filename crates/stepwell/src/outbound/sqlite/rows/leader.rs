//! The row that says who leads.

use std::time::Duration;

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
    /// How long it lasted from its last renewal on.
    pub(crate) ttl: Duration,
    /// The lock of its process, if it is a worker as well.
    pub(crate) process_lock: Option<String>,
}

selected! { Term { Worker, Epoch, Until, TtlMicros, ProcessLock, } }

pub(crate) fn load(file: File<'_, '_>) -> Rows<Option<LeaderRow>> {
    file.first(READ_LEADER, [], |row| {
        let row = Cells::of(row);
        Ok(LeaderRow {
            worker: row.name(Term::Worker)?,
            epoch: Epoch(row.unsigned(Term::Epoch)?),
            until: row.time(Term::Until)?,
            ttl: Duration::from_micros(row.unsigned(Term::TtlMicros)?),
            process_lock: row.get(Term::ProcessLock)?,
        })
    })
}

/// Lets a worker lead from now on, for so long.
pub(crate) fn set(
    file: File<'_, '_>,
    worker: &WorkerId,
    epoch: Epoch,
    (now, ttl): (Timestamp, Duration),
) -> Rows<()> {
    let ttl_micros = i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX);
    let row = params![worker.as_str(), int(epoch.0), now.after(ttl).as_micros(), ttl_micros];
    file.run(SET_LEADER, row).map(drop)
}

/// Ends a term, unless another has begun.
pub(crate) fn delete(file: File<'_, '_>, epoch: Epoch) -> Rows<()> {
    file.run(DELETE_LEADER, [int(epoch.0)]).map(drop)
}
