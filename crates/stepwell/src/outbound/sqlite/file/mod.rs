//! The file: how it is opened, how statements reach it, when its log must be on disk, and which
//! processes have it open.

mod error;
mod key_hasher;
mod open;
mod place;
mod process_lock;
mod statements;
mod sync_mode;
mod wal;

use std::path::{Path, PathBuf};

pub(crate) use error::corrupt;
pub(crate) use key_hasher::KeyHasher;
pub(crate) use open::BUSY_TIMEOUT;
pub use open::SqliteOptions;
pub(crate) use place::Place;
pub(crate) use process_lock::ProcessLocks;
pub(crate) use statements::{File, Scope, Statements};
pub(crate) use sync_mode::SyncMode;
pub(crate) use wal::WalFile;

/// The path of something that lies beside a database.
fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(suffix);
    PathBuf::from(path)
}
