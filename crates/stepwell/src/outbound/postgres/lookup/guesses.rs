//! Guesses by which a transaction chooses its way. A wrong one shows inside the transaction, which
//! then starts again; the loop that starts it again is the only one who writes here.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use stepwell_core::id::WorkerId;

use super::super::rows::position::TenantInQueue;
use super::super::rows::worker::ServingWorker;
use super::super::session::Learned;
use crate::ports::ClaimRef;

/// Most workers of one process whose registration is remembered.
const WORKERS_MAX: usize = 1_000;

/// Most claims whose failures are remembered.
const FAILURES_MAX: usize = 10_000;

#[derive(Default)]
pub(crate) struct Guesses {
    /// Tenants that have a limit.
    limited: Mutex<HashSet<u32>>,
    /// What workers of this process were registered with when they last asked for tasks.
    workers: Mutex<HashMap<WorkerId, ServingWorker>>,
    /// Whether starts lately named runs that were there already.
    ids_repeat: AtomicBool,
    /// Tenants that have used up their positions in queues.
    full: Mutex<BTreeSet<TenantInQueue>>,
    /// How many attempts of tasks had failed when these claims began, where a worker was told
    /// otherwise. It does not change under a claim.
    failures: Mutex<HashMap<ClaimRef, u32>>,
}

impl Guesses {
    /// Whether one of these tenants has a limit.
    pub(crate) fn is_any_limited(&self, tenants: &BTreeSet<u32>) -> bool {
        let limited = lock(&self.limited);
        !limited.is_empty() && tenants.iter().any(|tenant_no| limited.contains(tenant_no))
    }

    /// What a worker is registered with.
    pub(crate) fn cached_worker(&self, worker: &WorkerId) -> Option<ServingWorker> {
        lock(&self.workers).get(worker).cloned()
    }

    pub(crate) fn ids_repeat(&self) -> bool {
        self.ids_repeat.load(Ordering::Acquire)
    }

    /// Whether this tenant has used up its positions in this queue.
    pub(crate) fn is_full(&self, tenant: &TenantInQueue) -> bool {
        lock(&self.full).contains(tenant)
    }

    /// Whether nobody is taken to have used up its positions.
    pub(crate) fn is_none_full(&self) -> bool {
        lock(&self.full).is_empty()
    }

    /// How many attempts had failed when a claim began, if its worker was told otherwise.
    pub(crate) fn failures(&self, claim: &ClaimRef) -> Option<u32> {
        lock(&self.failures).get(claim).copied()
    }

    /// A transaction went through and saw this.
    pub(crate) fn learn(&self, learned: &Learned) {
        if !learned.limits.is_empty() {
            let mut limited = lock(&self.limited);
            for (tenant_no, is_limited) in &learned.limits {
                if *is_limited {
                    limited.insert(*tenant_no);
                } else {
                    limited.remove(tenant_no);
                }
            }
        }
        if let Some(ids_repeat) = learned.ids_repeat {
            self.ids_repeat.store(ids_repeat, Ordering::Release);
        }
        for tenant in &learned.not_full {
            lock(&self.full).remove(tenant);
        }
    }

    pub(crate) fn remember_limits(&self, tenants: BTreeSet<u32>) {
        lock(&self.limited).extend(tenants);
    }

    pub(crate) fn remember_worker(&self, worker: WorkerId, serving: ServingWorker) {
        let mut workers = lock(&self.workers);
        if workers.len() >= WORKERS_MAX {
            workers.clear();
        }
        workers.insert(worker, serving);
    }

    pub(crate) fn remember_full(&self, full: BTreeSet<TenantInQueue>) {
        lock(&self.full).extend(full);
    }

    pub(crate) fn remember_failures(&self, failures: Vec<(ClaimRef, u32)>) {
        let mut known = lock(&self.failures);
        if known.len() >= FAILURES_MAX {
            known.clear();
        }
        known.extend(failures);
    }

    pub(crate) fn remember_taken_id(&self) {
        self.ids_repeat.store(true, Ordering::Release);
    }
}

fn lock<T>(guess: &Mutex<T>) -> MutexGuard<'_, T> {
    guess.lock().expect("no holder of the lock panics")
}
