use async_trait::async_trait;
use stepwell_core::time::Timestamp;

use super::MemoryStore;
use super::queues::Place;
use super::runs::log;
use super::signals::waits;
use super::tables::Tables;
use crate::ports::{Inspection, StoreDump, StoreError, TaskPlace};

#[async_trait]
impl Inspection for MemoryStore {
    async fn dump(&self) -> Result<StoreDump, StoreError> {
        Ok(self.transact(|tables| dump(tables)))
    }
}

fn dump(tables: &Tables) -> StoreDump {
    let mut dump = StoreDump::default();
    for (key, run) in &tables.runs {
        dump.runs.insert(*key, log(run));
        dump.tasks.insert(*key, run.tasks.values().cloned().collect());
        dump.waits.insert(*key, waits(run));
        let signals = run.signals.values().map(|signal| signal.row.clone());
        dump.signals.insert(*key, signals.collect());
        dump.memos.insert(*key, run.memos.values().map(|memo| memo.memo.row.clone()).collect());
    }
    for (task, place) in &tables.queues.places {
        let place = match place {
            Place::Ready { key, at, .. } => TaskPlace::Ready(key.queue.clone(), at.0),
            Place::Throttled { .. } => TaskPlace::Throttled,
            Place::Parked { .. } => TaskPlace::Parked,
        };
        dump.places.insert(*task, place);
    }
    for (due, _, run, node) in &tables.timers.by_due {
        dump.timers.insert((*run, *node), *due);
    }
    for (worker, entry) in &tables.workers {
        dump.claims.insert(worker.clone(), entry.claims.iter().copied().collect());
    }
    for (tenant, entry) in &tables.queues.tenants {
        dump.admitted.insert(tenant.clone(), entry.n_admitted());
    }
    dump
}

impl MemoryStore {
    /// When the first timer that stands is due.
    #[must_use]
    pub fn next_due(&self) -> Option<Timestamp> {
        self.transact(|tables| tables.timers.by_due.first().map(|(due, ..)| *due))
    }

    /// How many claims are held, by live workers and by those not yet found dead.
    #[must_use]
    pub fn n_claims(&self) -> usize {
        self.transact(|tables| tables.workers.values().map(|worker| worker.claims.len()).sum())
    }

    /// How many runs have not ended.
    #[must_use]
    pub fn n_open_runs(&self) -> usize {
        self.transact(|tables| {
            tables.runs.values().filter(|run| !run.row.status.is_terminal()).count()
        })
    }
}
