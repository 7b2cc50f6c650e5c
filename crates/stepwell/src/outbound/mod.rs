//! Implementations of the ports. They know the ports and the core, never each other or the
//! engine.

pub(crate) mod memory;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;
pub(crate) mod tokio;
