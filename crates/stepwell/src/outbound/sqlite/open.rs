//! Opening a file: checks, settings, threads.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::threads::{Tools, start_reader, start_writer};
use super::transaction::DefinitionCache;
use super::{Shared, SqliteStore, migrate, watch};
use crate::ports::{Clock, HintSender, StoreError};

/// The first version without a bug that could corrupt a file in WAL mode.
const VERSION_MIN: i32 = 3_051_003;

/// How long a transaction waits for another process's.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// A checkpoint moves the log into the file from this many pages on.
const CHECKPOINT_PAGES: u32 = 1_000;

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

    /// Opens the file on a clock and brings its tables up to date.
    fn open(self, clock: Arc<dyn Clock>) -> Result<SqliteStore, StoreError> {
        check_version()?;
        let mut connection = self.connect(false)?;
        migrate::migrate(&mut connection, clock.now())?;
        let hints = HintSender::default();
        let definitions = DefinitionCache::default();
        let told = Arc::new(AtomicI64::new(0));
        let tools = |connection| Tools {
            connection,
            clock: Arc::clone(&clock),
            hints: hints.clone(),
            definitions: Arc::clone(&definitions),
            told: Arc::clone(&told),
        };
        let unavailable = |error: std::io::Error| StoreError::Unavailable {
            operation: "open sqlite store",
            why: error.to_string(),
        };
        let writer = start_writer(tools(connection)).map_err(unavailable)?;
        let reader = start_reader(tools(self.connect(true)?)).map_err(unavailable)?;
        let shared = Arc::new(Shared { writer, reader, hints });
        watch::start(&shared, self.connect(true)?, definitions.clone(), Arc::clone(&told))
            .map_err(unavailable)?;
        Ok(SqliteStore { shared })
    }

    fn connect(&self, read_only: bool) -> Result<Connection, StoreError> {
        let access = if read_only {
            OpenFlags::SQLITE_OPEN_READ_ONLY
        } else {
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE
        };
        let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags).map_err(|error| {
            let (path, why) = (self.path.display(), error.to_string());
            StoreError::Unavailable {
                operation: "open sqlite store",
                why: format!("{path}: {why}; check that the folder exists and can be written"),
            }
        })?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.set_prepared_statement_cache_capacity(256);
        if !read_only {
            self.configure(&connection)?;
        }
        connection.pragma_update(None, "foreign_keys", false)?;
        Ok(connection)
    }

    fn configure(&self, connection: &Connection) -> Result<(), StoreError> {
        let mode: String =
            connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
        if mode != "wal" {
            return Err(StoreError::Unavailable {
                operation: "open sqlite store",
                why: format!("the file system allows no write-ahead log, only {mode}"),
            });
        }
        let synchronous = if self.synchronous_full { "full" } else { "normal" };
        connection.pragma_update(None, "synchronous", synchronous)?;
        connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
        connection.pragma_update(None, "journal_size_limit", LOG_BYTES_MAX)?;
        Ok(())
    }
}

impl SqliteStore {
    /// Opens a file on the given clock, as tests and simulations do.
    ///
    /// # Errors
    /// When the file cannot be opened, is no file of ours, or is of a newer version.
    pub fn with_clock(options: SqliteOptions, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        options.open(clock)
    }
}

fn check_version() -> Result<(), StoreError> {
    let version = rusqlite::version_number();
    if version < VERSION_MIN {
        return Err(StoreError::Corrupt {
            what: format!(
                "SQLite {} can corrupt files in WAL mode; at least 3.51.3 is needed",
                rusqlite::version()
            ),
        });
    }
    Ok(())
}
