//! Opening a file: checks and settings.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use stepwell_core::code::Code;

use super::SyncMode;
use crate::ports::StoreError;

/// The first version without a bug that could corrupt a file in WAL mode.
const VERSION_MIN: i32 = 3_051_003;

/// How long a transaction waits for another process's.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// How often, and after which pause, the switch to a write-ahead log is tried again.
const SWITCH_RETRIES_MAX: u32 = 500;
const SWITCH_PAUSE: Duration = Duration::from_millis(20);

/// A checkpoint moves the log into the file from this many pages on. Pages that change often are
/// moved once for all their changes, and few commits have to wait for it.
const CHECKPOINT_PAGES: u32 = 4_000;

/// What the writer keeps of the file in memory at most, so that a transaction does not read again
/// what the one before has written.
const CACHE_KIBIBYTES: i32 = 32 * 1024;

/// The log is cut back to this size after a checkpoint, in bytes.
const LOG_BYTES_MAX: u32 = 64 * 1024 * 1024;

/// How a file is opened.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    path: PathBuf,
    synchronous_full: bool,
}

impl SqliteOptions {
    /// The file at this path; it is made if it is not there, its folder is not.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self { path: path.as_ref().to_owned(), synchronous_full: true }
    }

    /// Trades the durability of the last moments for speed: after a power cut, commits that were
    /// already acknowledged may be missing. A crash of the process alone loses nothing.
    #[must_use]
    pub fn synchronous_normal(mut self) -> Self {
        self.synchronous_full = false;
        self
    }

    /// Where the file is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// How commits treat the disk.
    pub(crate) fn sync_mode(&self) -> SyncMode {
        SyncMode::new(self.synchronous_full)
    }

    /// A connection that writes. The file is made if it is not there.
    pub(crate) fn connect_to_write(&self) -> Result<Connection, StoreError> {
        check_version()?;
        let connection = self.try_connect(false).map_err(|error| self.explain(&error))?;
        check_log(&connection)?;
        Ok(connection)
    }

    /// A connection that only reads.
    pub(crate) fn connect_to_read(&self) -> Result<Connection, StoreError> {
        self.try_connect(true).map_err(|error| self.explain(&error))
    }

    fn try_connect(&self, read_only: bool) -> rusqlite::Result<Connection> {
        let access = if read_only {
            OpenFlags::SQLITE_OPEN_READ_ONLY
        } else {
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE
        };
        let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        // Otherwise SQLite plans some statements anew whenever another value is bound to them.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        if !read_only {
            self.configure(&connection)?;
        }
        connection.pragma_update(None, "foreign_keys", false)?;
        Ok(connection)
    }

    fn configure(&self, connection: &Connection) -> rusqlite::Result<()> {
        use_write_ahead_log(connection)?;
        let synchronous = if self.synchronous_full { "full" } else { "normal" };
        connection.pragma_update(None, "synchronous", synchronous)?;
        connection.pragma_update(None, "cache_size", -CACHE_KIBIBYTES)?;
        connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
        connection.pragma_update(None, "journal_size_limit", LOG_BYTES_MAX)
    }

    /// What is wrong with the file, and what to do about it.
    fn explain(&self, error: &rusqlite::Error) -> StoreError {
        let (path, why) = (self.path.display(), error.to_string());
        let refused = |code: Code, remedy: &str| StoreError::Refused {
            code,
            message: format!("{path}: {why}; {remedy}"),
        };
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => {
                refused(Code::NotAStore, "give the path of a store, or of a file to be made")
            }
            Some(ErrorCode::CannotOpen) if folder.is_some_and(|folder| !folder.is_dir()) => {
                refused(Code::NoSuchPlace, "make the folder first")
            }
            Some(ErrorCode::CannotOpen) if self.path.is_dir() => {
                refused(Code::NotAStore, "this is a folder; give the path of a file in it")
            }
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                refused(Code::MissingRights, "let this user read and write the file and its folder")
            }
            Some(ErrorCode::ReadOnly) => {
                refused(Code::ReadOnlyStore, "let this user write the file and its folder")
            }
            _ => StoreError::Unavailable {
                operation: "open sqlite store",
                why: format!("{path}: {why}"),
            },
        }
    }
}

/// Without a write-ahead log, readers and the writer would block each other.
fn check_log(connection: &Connection) -> Result<(), StoreError> {
    let mode: String =
        connection.pragma_query_value(None, "journal_mode", |row| row.get("journal_mode"))?;
    if mode != "wal" {
        return Err(StoreError::Unavailable {
            operation: "open sqlite store",
            why: format!("the file system allows no write-ahead log, only {mode}"),
        });
    }
    Ok(())
}

/// Switches the file to a write-ahead log. Processes that open a new file at the same moment meet
/// here, and SQLite says "busy" at once, whatever its time-out is: two that wait to upgrade their
/// locks would wait for ever.
#[expect(clippy::disallowed_methods, reason = "it is the thread that opens the file, and blocks")]
fn use_write_ahead_log(connection: &Connection) -> Result<String, rusqlite::Error> {
    let switch = || {
        connection
            .pragma_update_and_check(None, "journal_mode", "wal", |row| row.get("journal_mode"))
    };
    for _ in 0..SWITCH_RETRIES_MAX {
        match switch() {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                std::thread::sleep(SWITCH_PAUSE);
            }
            answer => return answer,
        }
    }
    switch()
}

fn check_version() -> Result<(), StoreError> {
    let version = rusqlite::version_number();
    if version < VERSION_MIN {
        let message = format!(
            "SQLite {} can corrupt files in WAL mode; build with at least 3.51.3",
            rusqlite::version()
        );
        return Err(StoreError::Refused { code: Code::BadConfig, message });
    }
    Ok(())
}
