//! The worker: claims tasks, executes them, and keeps its leases alive.

mod calls;
mod claim;
mod context;
mod execute;
mod heartbeat;
mod held;
mod panic;
mod shutdown;

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use calls::ClaimCalls;
pub(crate) use context::{TaskArgs, TaskContext};
pub(crate) use held::Held;
pub use shutdown::StopReport;

use crate::engine::{Committer, Error, Parts, Registry};
use crate::ports::WorkerRegistration;

/// One engine's worker.
#[derive(Clone)]
pub(crate) struct Worker {
    pub(crate) parts: Parts,
    pub(crate) registry: Arc<Registry>,
    pub(crate) committer: Committer,
    pub(crate) held: Arc<Held>,
    /// One permit per task that may be executed at once.
    slots: Arc<Semaphore>,
    calls: Arc<ClaimCalls>,
    /// Fires when the engine begins to stop: nothing is claimed any more.
    stopping: CancellationToken,
    /// Fires when the claim loop has ended: nothing can be claimed any more.
    claimed_last: CancellationToken,
}

impl Worker {
    /// Registers the worker and starts its loops.
    pub(crate) async fn start(
        parts: Parts,
        registry: Arc<Registry>,
        committer: Committer,
    ) -> Result<Self, Error> {
        let slots = Arc::new(Semaphore::new(parts.config.slots));
        let worker = Self {
            parts,
            registry,
            committer,
            held: Arc::default(),
            slots,
            calls: Arc::default(),
            stopping: CancellationToken::new(),
            claimed_last: CancellationToken::new(),
        };
        worker.register().await?;
        let spawner = Arc::clone(&worker.parts.spawner);
        // User code that hogs the runtime must not cost the worker its leases.
        spawner.spawn_apart("heartbeat", Box::pin(worker.clone().heartbeat_loop()));
        spawner.spawn(Box::pin(worker.clone().claim_loop()));
        Ok(worker)
    }

    /// Claims nothing more.
    pub(crate) fn stop_claiming(&self) {
        self.stopping.cancel();
    }

    async fn register(&self) -> Result<(), Error> {
        let registration = WorkerRegistration {
            worker: self.parts.worker.clone(),
            queues: self.parts.config.queues.clone(),
            definitions: self.registry.ids(),
            lease: self.parts.config.lease,
        };
        Ok(self.parts.store.register_worker(registration).await?)
    }
}
