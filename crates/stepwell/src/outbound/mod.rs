//! Implementations of the ports. They know the ports and the core, never each other or the engine.
//! Both databases keep their statements by `sql.rs`; stores without a clock of their own go by
//! `store_clock.rs`.

pub(crate) mod memory;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) mod sql;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;
pub(crate) mod store_clock;
pub(crate) mod tokio;
