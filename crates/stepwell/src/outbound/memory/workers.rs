use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use stepwell_core::decide::{Happening, losses_after};
use stepwell_core::id::{Epoch, WorkerId};

use super::MemoryStore;
use super::line::Lot;
use super::tables::{Tables, WorkerEntry};
use crate::ports::{
    ClaimRef, HeartbeatAnswer, Hint, ReapRequest, Reaped, StoreError, WorkerRegistration, Workers,
};

#[async_trait]
impl Workers for MemoryStore {
    async fn register_worker(&self, registration: WorkerRegistration) -> Result<(), StoreError> {
        self.transact(|tables| {
            let WorkerRegistration { worker, queues, definitions, lease } = registration;
            let claims =
                tables.workers.remove(&worker).map(|entry| entry.claims).unwrap_or_default();
            let next = tables.worker_numbers.len();
            let number = *tables.worker_numbers.entry(worker.clone()).or_insert(next);
            let (seen_at, is_gone) = (tables.now, false);
            let entry =
                WorkerEntry { number, queues, definitions, lease, seen_at, claims, is_gone };
            tables.workers.insert(worker, entry);
            tables.serve_what_lives();
            Ok(())
        })
    }

    async fn heartbeat(
        &self,
        worker: &WorkerId,
        claims: &[ClaimRef],
    ) -> Result<HeartbeatAnswer, StoreError> {
        Ok(self.transact(|tables| heartbeat(tables, worker, claims)))
    }

    async fn deregister_worker(&self, worker: &WorkerId) -> Result<(), StoreError> {
        self.transact(|tables| {
            if let Some(entry) = tables.workers.get_mut(worker) {
                entry.is_gone = true;
                if entry.claims.is_empty() {
                    tables.workers.remove(worker);
                }
            }
            tables.serve_what_lives();
            Ok(())
        })
    }

    async fn reap(&self, epoch: Epoch, request: ReapRequest) -> Result<Reaped, StoreError> {
        self.transact(|tables| {
            tables.check_epoch(epoch)?;
            reap(tables, request)
        })
    }
}

fn heartbeat(tables: &mut Tables, worker: &WorkerId, claims: &[ClaimRef]) -> HeartbeatAnswer {
    let now = tables.now;
    let Some(entry) = tables.workers.get_mut(worker).filter(|entry| !entry.is_gone) else {
        return HeartbeatAnswer::Dead;
    };
    entry.seen_at = now;
    let is_lost = |claim: &&ClaimRef| !entry.claims.contains(claim);
    let is_unknown = |claim: &&ClaimRef| !claims.contains(claim);
    HeartbeatAnswer::Alive {
        lost: claims.iter().filter(is_lost).copied().collect(),
        unknown: entry.claims.iter().filter(is_unknown).copied().collect(),
    }
}

fn reap(tables: &mut Tables, request: ReapRequest) -> Result<Reaped, StoreError> {
    let now = tables.now;
    let is_silent = |entry: &WorkerEntry| now.since(entry.seen_at) > entry.lease;
    let is_dead =
        |entry: &WorkerEntry| entry.is_gone || (request.judges_silence && is_silent(entry));
    let dead = tables.workers.iter().filter(|(_, entry)| is_dead(entry));
    let mut dead: Vec<(usize, WorkerId)> =
        dead.map(|(worker, entry)| (entry.number, worker.clone())).collect();
    dead.sort_unstable();
    dead.truncate(request.workers_max);
    // All are dead before the first task moves: nothing comes back to what only they served.
    let dead = dead.iter().filter_map(|(_, worker)| tables.workers.remove(worker));
    let dead: Vec<WorkerEntry> = dead.collect();
    let served = tables.served();
    tables.line.serve_only(served);
    let mut reaped = Reaped::default();
    for entry in dead {
        reaped.n_workers += 1;
        reaped.n_tasks += entry.claims.len();
        lose(tables, &entry.claims, request.crash_limit)?;
    }
    if reaped.n_workers > 0 {
        tables.serve_what_lives();
        tables.earn(Hint::Claims);
    }
    Ok(reaped)
}

/// Takes all tasks of one dead worker from it, charged together.
fn lose(
    tables: &mut Tables,
    claims: &BTreeSet<ClaimRef>,
    crash_limit: u32,
) -> Result<(), StoreError> {
    let mut losses = Vec::with_capacity(claims.len());
    for claim in claims {
        let task = tables.book(claim.run)?.tasks.get(&claim.node);
        losses.push(task.map_or(0, |task| task.losses));
    }
    let mut by_run: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (claim, losses) in claims.iter().zip(losses_after(&losses, crash_limit)) {
        let happening = Happening::Lost { losses, crash_limit };
        by_run.entry(claim.run).or_default().push((claim.node, happening));
    }
    for (run, happenings) in by_run {
        for (node, happening) in happenings {
            // A loss that failed the run may have cancelled the run's other tasks with it.
            let is_running =
                tables.book(run)?.tasks.get(&node).is_some_and(|task| task.claim().is_some());
            if is_running {
                tables.happen(run, vec![(node, happening)])?;
            }
        }
    }
    Ok(())
}

impl Tables {
    /// Tells the line what live workers serve.
    fn serve_what_lives(&mut self) {
        let served = self.served();
        self.line.serve(served);
        self.earn(Hint::Ready);
    }

    fn served(&self) -> BTreeSet<Lot> {
        let mut served = BTreeSet::new();
        for worker in self.workers.values().filter(|worker| !worker.is_gone) {
            for queue in &worker.queues {
                served.extend(worker.definitions.iter().map(|id| (queue.clone(), *id)));
            }
        }
        served
    }
}
