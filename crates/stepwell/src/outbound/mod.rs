//! Implementations of the ports. They know the ports and the core, never each other or the
//! engine; both databases keep their statements by `sql.rs`.

pub(crate) mod memory;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) mod sql;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;
pub(crate) mod tokio;
