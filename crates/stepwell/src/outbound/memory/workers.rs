use std::collections::BTreeSet;

use async_trait::async_trait;
use stepwell_core::decide::{Happening, TaskHappening};
use stepwell_core::id::{Epoch, WorkerId};
use stepwell_core::lease::{LastBeat, Life, losses_after};

use super::MemoryStore;
use super::queues::ServiceKey;
use super::tables::{Tables, WorkerEntry};
use crate::ports::{
    ClaimRef, HeartbeatAnswer, Hint, MarkedService, ReapRequest, Reaped, StoreError,
    WorkerRegistration, Workers,
};

#[async_trait]
impl Workers for MemoryStore {
    async fn register_worker(&self, registration: WorkerRegistration) -> Result<(), StoreError> {
        self.transact(|tables| {
            let WorkerRegistration { worker, queues, services, lease } = registration;
            let is_stored = |service: &MarkedService| {
                let mut stored = tables.definitions.iter();
                stored.any(|stored| stored.marked_service() == *service)
            };
            if !services.iter().all(is_stored) {
                return Err(StoreError::unknown_service());
            }
            let services = services.iter().map(|service| service.id).collect();
            let before = tables.workers.remove(&worker);
            let (claims, in_trial) =
                before.map(|entry| (entry.claims, entry.in_trial)).unwrap_or_default();
            tables.n_beats += 1;
            let next = tables.worker_numbers.len();
            let number = *tables.worker_numbers.entry(worker.clone()).or_insert(next);
            let (n_beats, is_gone, next_turn) = (tables.n_beats, false, 0);
            let entry = WorkerEntry {
                number,
                queues,
                services,
                next_turn,
                lease,
                n_beats,
                claims,
                in_trial,
                is_gone,
            };
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
            let is_here = |entry: &&mut WorkerEntry| !entry.is_gone;
            let Some(entry) = tables.workers.get_mut(worker).filter(is_here) else { return Ok(()) };
            entry.is_gone = true;
            if entry.claims.is_empty() {
                tables.workers.remove(worker);
            }
            tables.serve_what_lives();
            Ok(())
        })
    }

    async fn settle_services(&self) -> Result<bool, StoreError> {
        // All of it is done with what makes it necessary.
        Ok(false)
    }

    async fn lives(&self) -> Result<Vec<Life>, StoreError> {
        let tables = self.lock();
        let mut workers: Vec<(&WorkerId, &WorkerEntry)> = tables.workers.iter().collect();
        workers.sort_unstable_by_key(|(_, entry)| entry.number);
        Ok(workers.into_iter().map(|(worker, entry)| entry.life(worker)).collect())
    }

    async fn reap(&self, epoch: Epoch, request: ReapRequest) -> Result<Reaped, StoreError> {
        self.transact(|tables| {
            tables.check_epoch(epoch)?;
            reap(tables, &request)
        })
    }
}

fn heartbeat(tables: &mut Tables, worker: &WorkerId, claims: &[ClaimRef]) -> HeartbeatAnswer {
    let Some(entry) = tables.workers.get_mut(worker).filter(|entry| !entry.is_gone) else {
        return HeartbeatAnswer::Dead;
    };
    tables.n_beats += 1;
    entry.n_beats = tables.n_beats;
    HeartbeatAnswer::compare(&entry.claims, claims)
}

fn reap(tables: &mut Tables, request: &ReapRequest) -> Result<Reaped, StoreError> {
    let is_silent = |beat: &&LastBeat| {
        tables.workers.get(&beat.worker).is_some_and(|entry| entry.n_beats == beat.n_beats)
    };
    let dead = request.dead.iter().filter(is_silent);
    let dead: BTreeSet<(usize, &WorkerId)> =
        dead.map(|beat| (tables.workers[&beat.worker].number, &beat.worker)).collect();
    // All are dead before the first task moves: nothing comes back to what only they served.
    let dead = dead.iter().filter_map(|(_, worker)| tables.workers.remove(worker));
    let dead: Vec<WorkerEntry> = dead.collect();
    let served = tables.served();
    tables.queues.serve_only(served);
    let mut reaped = Reaped::default();
    for entry in dead {
        reaped.n_workers += 1;
        reaped.n_tasks += entry.claims.len();
        lose(tables, &entry.claims, request.crash_limit)?;
    }
    if reaped.n_workers > 0 {
        tables.serve_what_lives();
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
        let task = tables.run(claim.run)?.tasks.get(&claim.node);
        losses.push(task.map_or(0, |task| task.losses));
    }
    for (claim, losses) in claims.iter().zip(losses_after(&losses, crash_limit)) {
        // A loss that failed the run may have cancelled the run's other tasks with it; then it
        // is not current any more.
        let happening = TaskHappening::Lost { losses, crash_limit };
        tables.happen(claim.run, Happening::Task(claim.node, happening))?;
    }
    Ok(())
}

impl WorkerEntry {
    fn life(&self, worker: &WorkerId) -> Life {
        let Self { n_beats, lease, is_gone: has_left, .. } = *self;
        let last_beat = LastBeat { worker: worker.clone(), n_beats };
        Life { last_beat, lease, has_left, is_gone: false }
    }
}

impl Tables {
    /// Tells the queues what live workers serve.
    pub(super) fn serve_what_lives(&mut self) {
        let served = self.served();
        self.queues.serve(served, &self.definitions);
        self.earn(Hint::Ready);
    }

    fn served(&self) -> BTreeSet<ServiceKey> {
        let mut served = BTreeSet::new();
        for worker in self.workers.values().filter(|worker| !worker.is_gone) {
            for queue in &worker.queues {
                served.extend(worker.services.iter().map(|id| (queue.clone(), *id)));
            }
        }
        served
    }
}
