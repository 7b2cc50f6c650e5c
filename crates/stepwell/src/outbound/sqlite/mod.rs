//! The SQLite store: one file, no server, the default.
//!
//! One thread writes, and whatever waits goes into one durable transaction (group commit): each
//! call in a savepoint of its own if there are several, answered after the commit. It remembers
//! what it has read and writes a row once per call, see `book.rs`. Readers have connections of
//! their own. Several processes may share a file.

mod book;
mod claims;
mod commits;
mod definitions;
mod error;
mod file;
mod hand_over;
mod held;
mod inputs;
mod inspection;
mod leadership;
mod line;
mod log;
mod migrate;
mod open;
#[cfg(test)]
mod plans;
mod rows;
mod runs;
mod seat;
mod standing;
mod starts;
mod statements;
mod tenants;
mod threads;
mod timers;
mod transaction;
mod watch;
mod workers;
mod write_run;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

pub use open::SqliteOptions;

use crate::ports::{HintSender, Hints, Store, StoreError, Traffic, TrafficCounter};
use threads::Jobs;
use transaction::Transaction;

/// A store in a SQLite file. Clones share one store.
#[derive(Clone)]
pub struct SqliteStore {
    shared: Arc<Shared>,
}

struct Shared {
    writer: Jobs,
    reader: Jobs,
    hints: HintSender,
    traffic: Arc<TrafficCounter>,
    /// How many tasks the last claim took.
    n_claimed_last: AtomicUsize,
}

impl SqliteStore {
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
        self.shared.writer.call(work).await
    }

    /// As [`write`](Self::write), without waiting for the disk.
    async fn write_without_wait<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Transaction<'_, '_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.shared.writer.call_without_wait(work).await
    }

    /// Reads in one snapshot on the reading thread.
    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Transaction<'_, '_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.shared.reader.call(work).await
    }
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
