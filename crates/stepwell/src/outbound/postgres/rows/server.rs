//! What the server says of itself.

use tokio_postgres::Row;

use super::Read;
use super::cells::{Cells, only, selected};

selected! { Server { Version, IsStandby, IsReadOnly, } }

/// A server, as far as the store depends on it.
pub(crate) struct ServerView {
    pub(crate) version: i32,
    pub(crate) takes_writes: bool,
}

pub(crate) fn read(row: &Row) -> Read<ServerView> {
    let cells = Cells::of(row);
    let is_standby: bool = cells.get(Server::IsStandby)?;
    let is_read_only: bool = cells.get(Server::IsReadOnly)?;
    let takes_writes = !is_standby && !is_read_only;
    Ok(ServerView { version: cells.get(Server::Version)?, takes_writes })
}

/// The version that the tables have.
pub(crate) fn read_schema_version(row: &Row) -> Read<usize> {
    Ok(usize::try_from(only::<i32>(row)?).unwrap_or_default())
}

/// The server process of a connection.
pub(crate) fn read_pid(row: &Row) -> Read<i32> {
    only(row)
}

/// The database's time, in microseconds, which a row begins with.
pub(crate) fn read_now(row: &Row) -> Read<i64> {
    only(row)
}

/// A setting.
#[cfg(feature = "testing")]
pub(crate) fn read_setting(row: &Row) -> Read<String> {
    only(row)
}
