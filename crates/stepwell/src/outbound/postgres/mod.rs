//! The PostgreSQL store: many processes on many machines.
//!
//! A call is one transaction of a few set-based statements, however many runs it concerns: lock
//! the runs, read what the rules need, decide in the core, write everything that follows.
//! Database time decides what is due or expired.

mod batch;
mod claims;
mod columns;
mod commits;
mod connect;
mod definitions;
mod error;
mod hand_over;
mod inputs;
mod inspection;
mod join;
mod known;
mod leadership;
mod limits;
mod line;
mod migrate;
mod notify;
mod open;
mod options;
mod passed;
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

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use connect::Role;
pub use options::PostgresOptions;
use pool::Pool;
use stepwell_core::id::{DefinitionId, Queue, WorkerId};
use transaction::{DefinitionCache, Transaction};

use crate::ports::{
    Hint, HintSender, Hints, Store, StoreError, StoredDefinition, Traffic, TrafficCounter,
};

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
    /// Tenants that were seen to have a limit: a guess that is checked whenever it matters.
    limited: Mutex<HashSet<u32>>,
    /// Tenants that were seen to be new to a queue; see `introduce_strangers`.
    strangers: Mutex<BTreeSet<(u32, Queue)>>,
    /// Rows that do not change.
    known: Mutex<known::Known>,
    /// What workers of this process were registered with when they last asked for work.
    askers: Mutex<HashMap<WorkerId, claims::Asking>>,
    /// What was taken from queues that may not be passed yet.
    passing: Mutex<passed::Passing>,
    /// What [`saw_revisions`](Self::saw_revisions) saw last.
    revisions: AtomicI64,
    traffic: TrafficCounter,
    /// Whether starts lately named runs that were there already: a guess that is made good.
    ids_repeat: AtomicBool,
    /// Whether an engine of this store led when it last asked.
    leads: AtomicBool,
}

impl Shared {
    /// The injected time, if there is one; else a statement takes the database's own.
    fn injected_now(&self) -> Option<i64> {
        self.pool.clock.as_ref().map(|clock| clock.now().as_micros())
    }

    fn known(&self) -> MutexGuard<'_, known::Known> {
        self.known.lock().expect("no holder of the lock panics")
    }

    fn strangers(&self) -> MutexGuard<'_, BTreeSet<(u32, Queue)>> {
        self.strangers.lock().expect("no holder of the lock panics")
    }

    /// Those of these definitions that were read before.
    fn known_definitions(
        &self,
        ids: &BTreeSet<DefinitionId>,
    ) -> BTreeMap<DefinitionId, Arc<StoredDefinition>> {
        let known = self.definitions.lock().expect("no holder of the lock panics");
        ids.iter().filter_map(|id| Some((*id, Arc::clone(known.get(id)?)))).collect()
    }

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

    /// A transaction that is yet to be opened.
    async fn take(&self, role: Role) -> Result<Transaction, StoreError> {
        let client = self.shared.pool.get(role).await?;
        Ok(Transaction::on(client, &self.shared))
    }

    /// Begins a transaction whose statements all see one snapshot.
    async fn begin_snapshot(&self) -> Result<Transaction, StoreError> {
        let client = self.shared.pool.get(Role::Work).await?;
        Transaction::begin_snapshot(client, &self.shared).await
    }

    /// Commits, then tells others what there is to see.
    async fn commit_transaction(&self, transaction: Transaction) -> Result<(), StoreError> {
        self.give_hints(&transaction.commit().await?);
        Ok(())
    }

    /// Ends a transaction that closed itself if all went well. If it met another one, it is rolled
    /// back before it is tried again: it must not wait for its own locks.
    async fn conclude<T>(
        &self,
        transaction: Transaction,
        answer: Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match &answer {
            Ok(_) => self.give_hints(&transaction.ended()),
            Err(error) if error::is_conflict(error) => transaction.roll_back().await?,
            Err(_) => {}
        }
        answer
    }

    /// A look at the store that changes nothing, or one row at most: one statement in one round
    /// trip.
    async fn glance(
        &self,
        role: Role,
        sql: &'static str,
        params: transaction::Params<'_>,
    ) -> Result<Option<tokio_postgres::Row>, StoreError> {
        let transaction = self.take(role).await?;
        let (opened, row, closed) = tokio::join!(
            biased;
            transaction.open_timeless(),
            transaction.one(sql, params),
            transaction.close(),
        );
        let row = opened.and(row)?;
        closed?;
        transaction.ended();
        Ok(row)
    }

    fn give_hints(&self, earned: &[Hint]) {
        for hint in earned {
            self.shared.hints.give(*hint);
        }
        self.shared.outbox.tell(earned.iter().collect());
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
                    self.introduce_strangers().await?;
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
