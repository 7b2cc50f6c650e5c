//! The world a case plays in: one store, one manual clock, and short verbs.
//!
//! Verbs that change something hold the store to its invariants afterwards, so every case checks
//! far more than what it names. Verbs expect success; a case that wants to see a refusal calls
//! [`World::store`] itself.

mod beats;
mod chance;
mod duty;
mod functions;
mod reading;
mod setup;
mod signals;
mod sketch;
mod work;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use stepwell_core::id::{Node, Queue, RunId, RunKey, Tenant, WorkerId};

use super::invariants::{check_invariants, regressions};
use crate::ports::{DynStore, MarkedService, StoreDump, StoredDefinition};
use crate::testing::ManualClock;

pub use beats::Beats;
pub use chance::Chance;
pub use functions::words;
pub use setup::{payload, run_of};
pub use signals::{Sending, wait_for, waiting};
pub use sketch::Sketch;
pub use work::{
    Batch, completed, completed_with, failed, failed_for_good, failed_forgetting, failed_until,
    step_of,
};

/// The worker that every [`World::define`] registers.
pub const WORKER: &str = "worker";

/// Whose runs [`World::start`] starts.
pub const TENANT: &str = "acme";

/// The lease of every worker a world registers.
pub const LEASE: Duration = Duration::from_secs(30);

/// The crash limit that claims and reaps of a world go by.
pub const CRASH_LIMIT: u32 = 3;

/// A check looks at every row, so a world of many rows is checked every few verbs only: each
/// verb pays for this many rows.
const ROWS_PER_ACT: usize = 64;

/// A store on a manual clock, with short verbs for what workers, clients and leaders do.
pub struct World {
    store: DynStore,
    clock: Arc<ManualClock>,
    desk: Mutex<Desk>,
}

/// What a world remembers between verbs.
#[derive(Default)]
struct Desk {
    n_runs: u64,
    n_flows: u64,
    n_claims: u64,
    n_signals: u64,
    served: Vec<MarkedService>,
    queues: BTreeSet<Queue>,
    workers: BTreeSet<WorkerId>,
    beats: Beats,
    last_dump: Option<StoreDump>,
    n_rows: usize,
    n_acts: usize,
}

/// A stored definition, with steps by name.
#[derive(Clone, Debug)]
pub struct Flow(pub Arc<StoredDefinition>);

/// A started run, with steps by name.
#[derive(Clone, Debug)]
pub struct Run {
    /// The engine's key.
    pub key: RunKey,
    /// Whose run it is.
    pub tenant: Tenant,
    /// The caller's id.
    pub id: RunId,
    /// What it runs on.
    pub flow: Flow,
}

impl World {
    /// A world around an empty store that lives on this clock.
    #[must_use]
    pub fn new(store: DynStore, clock: Arc<ManualClock>) -> Self {
        Self { store, clock, desk: Mutex::default() }
    }

    /// The store itself, for what no verb covers.
    #[must_use]
    pub fn store(&self) -> &DynStore {
        &self.store
    }

    /// The clock the store lives on.
    #[must_use]
    pub fn clock(&self) -> &ManualClock {
        &self.clock
    }

    /// Lets time pass.
    pub fn pass(&self, span: Duration) {
        self.clock.advance(span);
    }

    /// Holds the store to its invariants now, and to what it showed at the last check.
    pub async fn check(&self) {
        let dump = check_invariants(&*self.store).await;
        let mut desk = self.desk();
        let before = desk.last_dump.take();
        let broken = before.map(|before| regressions(&before, &dump)).unwrap_or_default();
        desk.n_acts = 0;
        let n_tasks: usize = dump.tasks.values().map(Vec::len).sum();
        desk.n_rows = n_tasks + dump.signals.values().map(Vec::len).sum::<usize>();
        desk.last_dump = Some(dump);
        drop(desk);
        assert!(broken.is_empty(), "what had ended changed:\n{}", broken.join("\n"));
    }

    /// Checks after a verb that changed something.
    async fn acted(&self) {
        let is_due = {
            let mut desk = self.desk();
            desk.n_acts += 1;
            desk.n_acts * ROWS_PER_ACT >= desk.n_rows
        };
        if is_due {
            self.check().await;
        }
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().expect("no verb panics while it holds the desk")
    }
}

impl Flow {
    /// The node of a step.
    #[must_use]
    pub fn node(&self, step: &str) -> Node {
        self.0.definition.find(step).expect("the case names a step of the flow")
    }
}

impl Run {
    /// The node of a step.
    #[must_use]
    pub fn node(&self, step: &str) -> Node {
        self.flow.node(step)
    }
}

/// A tenant by name.
#[must_use]
pub fn tenant(name: &str) -> Tenant {
    Tenant::new(name).expect("the case gives a usable name")
}

/// A worker's id by name.
#[must_use]
pub fn worker(name: &str) -> WorkerId {
    WorkerId::new(name).expect("the case gives a usable name")
}

/// A queue by name.
#[must_use]
pub fn queue(name: &str) -> Queue {
    Queue::new(name).expect("the case gives a usable name")
}
