//! The SQLite store: one file, no server, the default.
//!
//! One thread writes, and whatever waits goes into one durable transaction (group commit): each
//! call in a savepoint of its own if there are several, answered after the commit. It remembers
//! what it has read and writes a row once per call (`cache/`). Readers have connections of their
//! own. Several processes may share a file.
//!
//! A file per port stands here and is thin. Each folder knows only those that follow: `lead/`,
//! `run/`, `queue/`, `writer/`, `cache/`, `rows/`, `file/`.

mod cache;
mod claims;
mod commits;
mod definitions;
mod file;
mod inspection;
mod lead;
mod leadership;
mod memos;
mod progress;
mod queue;
mod rows;
mod run;
mod runs;
mod schema;
mod signals;
mod starts;
mod tenants;
mod timers;
mod workers;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize};

use rusqlite::Connection;
use stepwell_core::code::Code;
use stepwell_core::store_time::WrittenTime;

use crate::error::Error;
use crate::outbound::store_clock::StoreClock;
use crate::outbound::tokio::SystemClock;
use crate::ports::{Clock, HintSender, Hints, Store, StoreError, Traffic, TrafficCounter};
use cache::{DefinitionCache, RowCache};
pub use file::SqliteOptions;
use file::{File, Place, ProcessLocks, Statements, WalFile};
use writer::{
    Calls, Transaction, TransactionParts, Watch, WriterParts, start_reader, start_watch,
    start_writer,
};

/// A store in a SQLite file. Clones share one store.
#[derive(Clone)]
pub struct SqliteStore {
    shared: Arc<Shared>,
}

struct Shared {
    /// None where nothing is written.
    writer: Option<Calls>,
    reader: Calls,
    /// What claims need is read apart: nobody's long list holds up work.
    claims_reader: Calls,
    hints: HintSender,
    traffic: Arc<TrafficCounter>,
    /// How many tasks the last claim took.
    n_claimed_last: AtomicUsize,
}

impl SqliteStore {
    /// Opens the store in a file, which is made if it is not there.
    ///
    /// # Errors
    /// When the file cannot be opened, is no file of ours, or is of a newer version.
    #[expect(clippy::unused_async, reason = "opening may wait for another process one day")]
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(SqliteOptions::new(path))
    }

    /// Opens the store with other settings.
    ///
    /// # Errors
    /// As [`SqliteStore::open`](Self::open).
    pub fn open_with(options: SqliteOptions) -> Result<Self, Error> {
        Ok(Self::with_clock(options, Arc::new(SystemClock::new()))?)
    }

    /// The version of the tables that this program works on.
    #[must_use]
    pub fn schema_version() -> usize {
        schema::version_known()
    }

    /// Opens a file on the given clock, as tests and simulations do, and brings its tables up to
    /// date, unless the options say otherwise.
    ///
    /// # Errors
    /// When the file cannot be opened, is no file of ours, or is of a newer version.
    pub fn with_clock(options: SqliteOptions, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        Self::try_open(&options, clock).map_err(|error| options.name_damage(error))
    }

    fn try_open(options: &SqliteOptions, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        let connection = prepare(options, clock.as_ref())?;
        let locks = Arc::new(ProcessLocks::beside(options.path()));
        if let Some(connection) = &connection {
            locks.remove_free(&locks_needed(connection)?);
        }
        let to_read = options.connect_to_read()?;
        let clock = Arc::new(StoreClock::resume(clock, written_time(&to_read)?));
        let (hints, definitions) = (HintSender::default(), DefinitionCache::default());
        let (n_wakes, traffic) = (Arc::new(AtomicI64::new(0)), Arc::<TrafficCounter>::default());
        let parts = || TransactionParts {
            clock: Arc::clone(&clock),
            definitions: definitions.clone(),
            locks: Arc::clone(&locks),
            traffic: Arc::clone(&traffic),
            cache: RowCache::default(),
        };
        let writer = WriterParts {
            parts: parts(),
            hints: hints.clone(),
            n_wakes: Arc::clone(&n_wakes),
            sync_mode: options.sync_mode(),
            place: Place::of(options.path()),
            wal: WalFile::default(),
        };
        let start = |connection| start_writer(connection, writer).map_err(no_thread);
        let writer = connection.map(start).transpose()?;
        let reader = start_reader(to_read, parts()).map_err(no_thread)?;
        let to_read = options.connect_to_read()?;
        let claims_reader = start_reader(to_read, parts()).map_err(no_thread)?;
        let n_claimed_last = AtomicUsize::new(0);
        let hints_to_give = hints.clone();
        let shared = Shared { writer, reader, claims_reader, hints, traffic, n_claimed_last };
        let shared = Arc::new(shared);
        let store = Arc::downgrade(&shared);
        let watch = Watch { store, hints: hints_to_give, definitions, n_wakes };
        start_watch(options.connect_to_read()?, watch).map_err(no_thread)?;
        Ok(Self { shared })
    }

    /// What this store has asked of its file so far.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.shared.traffic.read()
    }

    /// Runs one transaction on the writing thread and waits until it is durable.
    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Transaction<'_, '_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.writer()?.call(work).await
    }

    /// As [`write`](Self::write), without waiting for the disk.
    async fn write_without_wait<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Transaction<'_, '_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.writer()?.call_without_wait(work).await
    }

    fn writer(&self) -> Result<&Calls, StoreError> {
        self.shared.writer.as_ref().ok_or_else(|| StoreError::Refused {
            code: Code::ReadOnlyStore,
            message: "the file was opened to be read only".into(),
        })
    }

    /// Reads in one snapshot on the reading thread.
    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Transaction<'_, '_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.shared.reader.call(work).await
    }

    /// As [`read`](Self::read), for what tasks are executed with.
    async fn read_for_claims<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Transaction<'_, '_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.shared.claims_reader.call(work).await
    }
}

/// Sees to the tables, as far as the options allow. Gives the connection that writes, if there is
/// to be one.
fn prepare(options: &SqliteOptions, clock: &dyn Clock) -> Result<Option<Connection>, StoreError> {
    if !options.migrates() {
        // A file of somebody else's is left as it is, so the first look changes nothing.
        schema::check(&options.connect_to_read()?, options)?;
    }
    if options.is_read_only() {
        return Ok(None);
    }
    let mut connection = options.connect_to_write()?;
    if options.migrates() {
        schema::migrate(&mut connection, clock.now())?;
    }
    Ok(Some(connection))
}

/// What was written down last of the store's time.
fn written_time(connection: &Connection) -> Result<WrittenTime, StoreError> {
    let statements = Statements::of(connection, rows::TABLES);
    let file = File { statements: &statements, traffic: &TrafficCounter::default() };
    Ok(rows::store::counters(file)?.time)
}

/// The process locks of workers that were not found dead.
fn locks_needed(connection: &Connection) -> Result<Vec<String>, StoreError> {
    let statements = Statements::of(connection, rows::TABLES);
    let file = File { statements: &statements, traffic: &TrafficCounter::default() };
    let lives = rows::worker::lives(file)?;
    Ok(lives.into_iter().map(|life| life.process_lock).collect())
}

fn no_thread(error: std::io::Error) -> StoreError {
    StoreError::Unavailable { operation: "open sqlite store", why: error.to_string() }
}

impl Store for SqliteStore {
    fn hints(&self) -> Hints {
        self.shared.hints.subscribe()
    }
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteStore").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use futures_util::FutureExt;

    use super::*;
    use crate::ports::{Claims, Runs};

    #[tokio::test]
    async fn what_tasks_are_executed_with_does_not_wait_for_other_reads() {
        let folder = tempfile::TempDir::new().unwrap();
        let store = SqliteStore::open(folder.path().join("readers.db")).await.unwrap();
        let (let_go, held) = mpsc::channel::<()>();
        let mut long_read = Box::pin(store.read(move |_| {
            let _ = held.recv();
            Ok(())
        }));
        assert!((&mut long_read).now_or_never().is_none(), "it is handed in");
        let mut list = Box::pin(store.ended(&[]));
        assert!((&mut list).now_or_never().is_none(), "it waits behind the long one");
        assert!(store.inputs(&[]).await.unwrap().is_empty());
        drop(let_go);
        long_read.await.unwrap();
        assert!(list.await.unwrap().is_empty());
    }
}
