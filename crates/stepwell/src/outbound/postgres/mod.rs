//! The PostgreSQL store: many processes on many machines.
//!
//! A call is one transaction of a few set-based statements, however many runs it concerns: lock
//! the runs, read what the rules need, decide in the core, write everything that follows.
//! Database time decides what is due or expired.

mod batch;
mod claims;
mod commits;
mod connect;
mod definitions;
mod error;
mod inspection;
mod leadership;
mod limits;
mod line;
mod migrate;
mod notify;
mod open;
mod options;
mod pool;
#[cfg(feature = "testing")]
mod probe;
mod rows;
mod runs;
mod starts;
mod statements;
mod tenants;
mod timers;
mod tls;
mod transaction;
mod workers;
mod write;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use connect::Role;
pub use options::PostgresOptions;
use pool::Pool;
use transaction::{DefinitionCache, Transaction};

use crate::ports::{HintSender, Hints, Store, StoreError, Traffic, TrafficCounter};

/// A store in a PostgreSQL schema. Clones share one pool of connections.
#[derive(Clone)]
pub struct PostgresStore {
    shared: Arc<Shared>,
}

struct Shared {
    pool: Pool,
    hints: HintSender,
    definitions: DefinitionCache,
    outbox: Arc<notify::Outbox>,
    /// What [`saw_revisions`](Self::saw_revisions) saw last.
    revisions: AtomicI64,
    traffic: TrafficCounter,
}

impl Shared {
    /// Forgets definitions if policies have changed since the last look, perhaps by another
    /// process: what is read next is fresh.
    fn saw_revisions(&self, revisions: i64) {
        if self.revisions.swap(revisions, Ordering::AcqRel) != revisions {
            self.definitions.lock().expect("no holder of the lock panics").clear();
        }
    }
}

/// How often a transaction is tried again that met another one.
const CONFLICT_RETRIES_MAX: usize = 10;

impl PostgresStore {
    /// What this store has sent to the server so far.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.shared.traffic.read()
    }

    /// Begins a transaction and reads its time.
    async fn begin(&self) -> Result<Transaction, StoreError> {
        self.begin_as(Role::Work).await
    }

    /// Begins a transaction on a connection that is kept for this.
    async fn begin_as(&self, role: Role) -> Result<Transaction, StoreError> {
        let client = self.shared.pool.get(role).await?;
        Transaction::begin(client, &self.shared).await
    }

    /// Begins a transaction whose statements all see one snapshot.
    async fn begin_snapshot(&self) -> Result<Transaction, StoreError> {
        let client = self.shared.pool.get(Role::Work).await?;
        Transaction::begin_snapshot(client, &self.shared).await
    }

    /// Commits, then tells others what there is to see.
    async fn commit_transaction(&self, transaction: Transaction) -> Result<(), StoreError> {
        let earned = transaction.commit().await?;
        for hint in &earned {
            self.shared.hints.give(*hint);
        }
        if !earned.is_empty() {
            self.shared.outbox.tell();
        }
        Ok(())
    }

    /// Tries again what failed because of another transaction. Calls carry their own ids and
    /// tokens, so trying again is safe.
    async fn with_retries<T, F>(&self, mut call: impl FnMut() -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let mut n_tries = 0;
        loop {
            match call().await {
                Err(error) if error::is_conflict(&error) && n_tries < CONFLICT_RETRIES_MAX => {
                    n_tries += 1;
                    tracing::debug!(%error, n_tries, "met another transaction, trying again");
                }
                answer => return answer,
            }
        }
    }
}

impl Store for PostgresStore {
    fn hints(&self) -> Hints {
        self.shared.hints.subscribe()
    }
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresStore").finish_non_exhaustive()
    }
}
