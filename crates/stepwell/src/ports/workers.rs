//! Workers: who is alive, what they serve, and what becomes of the work of the dead.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use stepwell_core::id::{Epoch, Queue, WorkerId};
use stepwell_core::lease::{LastBeat, Life};

use super::{ClaimRef, MarkedService, StoreError};

/// A worker introduces itself.
#[derive(Clone, Debug)]
pub struct WorkerRegistration {
    /// Its id; a restarted process is a new worker.
    pub worker: WorkerId,
    /// The queues it serves.
    pub queues: Vec<Queue>,
    /// The services whose code it has.
    pub services: Vec<MarkedService>,
    /// How long it may be silent before it counts as dead.
    pub lease: Duration,
}

/// The answer to a heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeartbeatAnswer {
    /// The lease is renewed.
    Alive {
        /// Claims among the given ones that no longer hold: cancelled, or moved on.
        lost: Vec<ClaimRef>,
        /// Claims this worker holds that were not among the given ones: the reply to the call
        /// that made them may have been lost.
        unknown: Vec<ClaimRef>,
    },
    /// The worker was taken for dead. It drops its claims and registers anew.
    Dead,
}

impl HeartbeatAnswer {
    /// The answer to a live worker that named these claims and holds those.
    pub(crate) fn compare(held: &BTreeSet<ClaimRef>, named: &[ClaimRef]) -> Self {
        let known: BTreeSet<&ClaimRef> = named.iter().collect();
        Self::Alive {
            lost: named.iter().filter(|claim| !held.contains(claim)).copied().collect(),
            unknown: held.iter().filter(|claim| !known.contains(claim)).copied().collect(),
        }
    }
}

/// Workers that the leader found dead.
#[derive(Clone, Debug)]
pub struct ReapRequest {
    /// Losses at which a task ends.
    pub crash_limit: u32,
    /// The dead, and the beats after which nothing was heard of them.
    pub dead: Vec<LastBeat>,
}

/// Most tasks that one transaction moves because of what workers serve. Who enqueues meanwhile may
/// have to wait for it.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) const SETTLED_SERVICES_MAX: usize = 500;

/// What a round of reaping did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reaped {
    /// Workers found dead.
    pub n_workers: usize,
    /// Tasks taken from them.
    pub n_tasks: usize,
}

/// Keeps workers.
#[async_trait]
pub trait Workers {
    /// Registers a worker, or replaces its registration; its turns between queues begin anew.
    /// Tasks that nobody served until now come back into their queues, stamped anew in the order
    /// of their arrival: some at once, the others by [`settle_services`](Self::settle_services).
    ///
    /// Refused with `SW0012`, and nothing changed, if the store has no service of a given number
    /// and mark: the workflows have to be registered anew.
    async fn register_worker(&self, registration: WorkerRegistration) -> Result<(), StoreError>;

    /// Renews a worker's lease and tells which of its claims no longer hold, and which it holds
    /// without having named them.
    async fn heartbeat(
        &self,
        worker: &WorkerId,
        claims: &[ClaimRef],
    ) -> Result<HeartbeatAnswer, StoreError>;

    /// Takes a worker off the list. Tasks that nobody serves any more are parked, some at once, the
    /// others by [`settle_services`](Self::settle_services). Claims it still holds are reaped as
    /// those of a dead worker.
    async fn deregister_worker(&self, worker: &WorkerId) -> Result<(), StoreError>;

    /// Moves some of the tasks that wait where they no longer belong, since workers came or went or
    /// policies were replaced: those that are served come back into their queues, those that
    /// nobody serves are parked, and where the queue of a step has changed, its parked tasks
    /// follow. Says whether there are more. Anybody may call it, at any time.
    async fn settle_services(&self) -> Result<bool, StoreError>;

    /// The workers that were not reaped yet and may have to be, those who registered first at the
    /// front. Every registration and every heartbeat is a beat of its own.
    async fn lives(&self) -> Result<Vec<Life>, StoreError>;

    /// Takes the tasks of dead workers from them: back to the queue, or FAILED at the crash limit.
    /// A worker that has beaten since it was found dead stays as it is. All are dead before the
    /// first task moves, so that none claims behind the reaping; those who registered first come
    /// first.
    ///
    /// Only the leader of `epoch` may; another gets [`StoreError::NotLeader`].
    async fn reap(&self, epoch: Epoch, request: ReapRequest) -> Result<Reaped, StoreError>;
}
