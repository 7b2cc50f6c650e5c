//! The file: how it is opened, how statements reach it, when its log must be on disk, and which
//! processes have it open.

mod error;
mod key_hasher;
mod open;
mod process_lock;
mod statements;
mod sync_mode;
mod wal;

pub(crate) use error::corrupt;
pub(crate) use key_hasher::KeyHasher;
pub(crate) use open::BUSY_TIMEOUT;
pub use open::SqliteOptions;
pub(crate) use process_lock::ProcessLocks;
pub(crate) use statements::{File, Scope, Statements};
pub(crate) use sync_mode::SyncMode;
pub(crate) use wal::WalFile;
