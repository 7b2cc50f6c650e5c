//! The row of `leader`.

use std::time::Duration;

use stepwell_core::id::Epoch;
use stepwell_core::time::Timestamp;
use tokio_postgres::Row;

use super::Read;
use super::cells::{Cells, columns, only, only_unsigned};

columns! {
    /// The columns of `leader` but for its key, which is always true.
    LEADER: Col = "leader" {
        changed Worker "worker" "text",
        changed Epoch "epoch" "bigint",
        changed Until "until" "bigint",
        changed TtlMicros "ttl_micros" "bigint",
        changed BackendPid "backend_pid" "int",
    }
}

/// The server process that serves the leader's connection, if that holds the leader's lock.
pub(crate) type BackendPid = Option<i32>;

/// Who leads, as the row says.
pub(crate) struct StoredTerm {
    pub(crate) worker: String,
    /// -1 is nobody's.
    pub(crate) epoch: i64,
    pub(crate) until: Timestamp,
    /// How long it lasted from its last renewal on.
    pub(crate) ttl: Duration,
    pub(crate) pid: BackendPid,
}

pub(crate) fn read(row: &Row) -> Read<StoredTerm> {
    let cells = Cells::of(row);
    Ok(StoredTerm {
        worker: cells.get(Col::Worker)?,
        epoch: cells.get(Col::Epoch)?,
        until: cells.time(Col::Until)?,
        ttl: Duration::from_micros(cells.unsigned(Col::TtlMicros)?),
        pid: cells.get(Col::BackendPid)?,
    })
}

/// The number of a term.
pub(crate) fn read_epoch(row: &Row) -> Read<Epoch> {
    only_unsigned(row).map(Epoch)
}

/// The process that holds the leader's lock, if it is this one.
pub(crate) fn read_pid(row: &Row) -> Read<BackendPid> {
    only(row)
}
