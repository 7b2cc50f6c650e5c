//! What the server says of itself.

use stepwell_core::id::Mark;
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

selected! { IdentityCol { Now, Revision, TenantMark, } }

/// What tells a database from another, or from what it was before it was restored.
#[derive(Clone, Copy)]
pub(crate) struct Identity {
    /// The database's time, in microseconds.
    pub(crate) now: i64,
    /// That of the definitions.
    pub(crate) revision: i64,
    /// That of the tenant that was asked for, if there is one.
    pub(crate) tenant_mark: Option<Mark>,
}

/// What a row begins with.
pub(crate) fn read_identity(row: &Row) -> Read<Identity> {
    identity(Cells::of(row))
}

pub(super) fn identity(cells: Cells<'_>) -> Read<Identity> {
    let mark: Option<i64> = cells.get(IdentityCol::TenantMark)?;
    Ok(Identity {
        now: cells.get(IdentityCol::Now)?,
        revision: cells.get(IdentityCol::Revision)?,
        tenant_mark: mark.map(Mark),
    })
}

/// A setting.
#[cfg(feature = "testing")]
pub(crate) fn read_setting(row: &Row) -> Read<String> {
    only(row)
}
