//! The memory store: serial, deterministic, gone with the process.
//!
//! For tests and for learning. Every call runs under one lock and completes without waiting, so
//! a test on virtual time sees the same order on every run. Time comes from the clock it is
//! given and never steps back below what was stored.

mod claims;
mod commits;
mod definitions;
mod inspection;
mod leadership;
mod memos;
mod positions;
mod progress;
mod queues;
mod runs;
mod signals;
mod starts;
mod tables;
mod tenants;
mod timers;
mod workers;

use std::sync::{Arc, Mutex, MutexGuard};

use stepwell_core::store_time::WrittenTime;
use stepwell_core::time::Timestamp;

use crate::outbound::store_clock::StoreClock;
use crate::outbound::tokio::SystemClock;
use crate::ports::{Clock, Hint, HintSender, Hints, Store, StoreError};
use tables::Tables;

/// A store in memory. Clones share one store.
#[derive(Clone)]
pub struct MemoryStore {
    tables: Arc<Mutex<Tables>>,
    clock: Arc<StoreClock>,
    hints: HintSender,
}

impl MemoryStore {
    /// An empty store on the machine's clock.
    #[must_use]
    pub fn new() -> Self {
        Self::with_clock(Arc::new(SystemClock::new()))
    }

    /// An empty store on the given clock.
    #[must_use]
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        let fresh = WrittenTime { now: Timestamp::EPOCH, clock_at: Timestamp::EPOCH };
        let clock = Arc::new(StoreClock::resume(clock, fresh));
        Self { tables: Arc::default(), clock, hints: HintSender::default() }
    }

    /// Runs one transaction: nobody else looks at the tables meanwhile, and the hints it earned
    /// are given after it.
    fn transact<T>(&self, work: impl FnOnce(&mut Tables) -> T) -> T {
        let mut tables = self.lock();
        tables.now = self.clock.now(tables.now).now;
        tables.queues.n_enqueued = 0;
        let answer = work(&mut tables);
        if tables.queues.n_enqueued > 0 {
            tables.earn(Hint::Ready);
        }
        let earned = std::mem::take(&mut tables.earned_hints);
        drop(tables);
        self.hints.give_all(&earned);
        answer
    }

    /// A panic inside a transaction can only come from a broken rule. The tables may then be
    /// half written, and going on would make it worse.
    fn lock(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().expect("no transaction panicked before")
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl Store for MemoryStore {
    fn hints(&self) -> Hints {
        self.hints.subscribe()
    }
}

impl std::fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

/// A row that another row points at is missing.
fn corrupt(what: impl Into<String>) -> StoreError {
    StoreError::Corrupt { what: what.into() }
}
