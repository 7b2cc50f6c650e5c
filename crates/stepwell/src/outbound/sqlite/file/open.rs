//! Opening a file: checks and settings.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use stepwell_core::code::Code;

use super::SyncMode;
use super::error::damaged;
use crate::ports::StoreError;

/// The first version without a bug that could corrupt a file in WAL mode.
const VERSION_MIN: i32 = 3_051_003;

/// A database has at least one page, and the smallest page has this many bytes.
const BYTES_MIN: u64 = 512;

const GIVE_A_STORE: &str = "give the path of a store, or of a file to be made";
const GIVE_ANOTHER: &str = "give the path of a store";

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
    access: Access,
}

/// What may be done to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    /// It is made if it is not there, and its tables are brought up to date.
    Migrate,
    /// Rows are written. File and tables have to be there as this program knows them.
    Work,
    /// Rows are read.
    Read,
}

impl SqliteOptions {
    /// The file at this path; it is made if it is not there, its folder is not.
    pub fn new(path: impl AsRef<Path>) -> Self {
        let access = Access::Migrate;
        Self { path: path.as_ref().to_owned(), synchronous_full: true, access }
    }

    /// Refuses a file that is not there, and one with tables of another version. Without this,
    /// opening makes the file and brings its tables up to date.
    #[must_use]
    pub fn without_migration(mut self) -> Self {
        self.access = Access::Work;
        self
    }

    /// For those who only look: as [`without_migration`](Self::without_migration), and whatever
    /// would write is refused with `SW0031`.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.access = Access::Read;
        self
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

    /// Whether the file is made if it is not there, and its tables are brought up to date.
    pub(crate) fn migrates(&self) -> bool {
        self.access == Access::Migrate
    }

    /// Whether nothing is written.
    pub(crate) fn is_read_only(&self) -> bool {
        self.access == Access::Read
    }

    /// A connection that writes. The file is made if it is not there, unless that is forbidden.
    pub(crate) fn connect_to_write(&self) -> Result<Connection, StoreError> {
        check_version()?;
        self.check_size()?;
        let connection = self.try_connect(false).map_err(|error| self.explain(&error))?;
        check_log(&connection)?;
        Ok(connection)
    }

    /// A connection that only reads.
    pub(crate) fn connect_to_read(&self) -> Result<Connection, StoreError> {
        self.check_size()?;
        self.try_connect(true).map_err(|error| self.explain(&error))
    }

    /// SQLite takes a file that is too small to be a database for an empty one, and would write
    /// over what somebody noted there.
    fn check_size(&self) -> Result<(), StoreError> {
        let bytes = std::fs::metadata(&self.path).map_or(0, |file| file.len());
        if (1..BYTES_MIN).contains(&bytes) && self.path.is_file() {
            let message = format!("this is no database; {GIVE_A_STORE}");
            return Err(self.refused(Code::NotAStore, &message));
        }
        Ok(())
    }

    fn try_connect(&self, read_only: bool) -> rusqlite::Result<Connection> {
        let access = match (read_only, self.migrates()) {
            (true, _) => OpenFlags::SQLITE_OPEN_READ_ONLY,
            (false, true) => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
            (false, false) => OpenFlags::SQLITE_OPEN_READ_WRITE,
        };
        let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        // Otherwise SQLite plans some statements anew whenever another value is bound to them.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        if read_only {
            // SQLite reads nothing before it has to; what is no database is found here.
            connection.pragma_query_value(None, "schema_version", |_| Ok(()))?;
        } else {
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

    /// What makes the file, or brings its tables up to date.
    pub(crate) fn command(&self) -> String {
        format!("`stepwell migrate --store {}`", self.path.display())
    }

    /// What is wrong with the file, and what to do about it.
    fn explain(&self, error: &rusqlite::Error) -> StoreError {
        if let Some(refusal) = self.explain_place() {
            return refusal;
        }
        let why = error.to_string();
        let refused = |code, remedy| self.refused(code, &format!("{why}; {remedy}"));
        match error.sqlite_error_code() {
            // The caller says which file it is.
            Some(ErrorCode::DatabaseCorrupt) => damaged(&why),
            Some(ErrorCode::NotADatabase) => refused(Code::NotAStore, GIVE_A_STORE),
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                refused(Code::MissingRights, "let this user read and write the file and its folder")
            }
            Some(ErrorCode::ReadOnly) => {
                refused(Code::ReadOnlyStore, "let this user write the file and its folder")
            }
            _ => StoreError::Unavailable {
                operation: "open sqlite store",
                why: format!("{}: {why}", self.path.display()),
            },
        }
    }

    /// What is wrong with the place; SQLite says no more than that it cannot open the file.
    fn explain_place(&self) -> Option<StoreError> {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let is_missing = matches!(self.path.try_exists(), Ok(false));
        if self.path.is_dir() {
            let message = "this is a folder; give the path of a file in it";
            return Some(self.refused(Code::NotAStore, message));
        }
        if folder.is_some_and(|folder| !folder.is_dir()) {
            let remedy = if self.migrates() { "make the folder first" } else { GIVE_ANOTHER };
            let message = format!("there is no such folder; {remedy}");
            return Some(self.refused(Code::NoSuchPlace, &message));
        }
        (is_missing && !self.migrates()).then(|| {
            let message =
                format!("there is no such file; {GIVE_ANOTHER}, or make one: {}", self.command());
            self.refused(Code::NoSuchPlace, &message)
        })
    }

    /// Says which file is damaged.
    pub(crate) fn name_damage(&self, error: StoreError) -> StoreError {
        match error {
            StoreError::Damaged { what } => {
                StoreError::Damaged { what: format!("{}: {what}", self.path.display()) }
            }
            error => error,
        }
    }

    fn refused(&self, code: Code, what: &str) -> StoreError {
        StoreError::Refused { code, message: format!("{}: {what}", self.path.display()) }
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
