//! The worker: claims tasks, executes them, and keeps its leases alive.

mod claim;
mod execute;
mod function;
mod heartbeat;
mod shutdown;
mod trial;

use std::sync::Arc;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

pub use shutdown::StopReport;

use crate::engine::{ClaimedBatch, Committer, Parts, Registry, WorkerSlots};
use crate::error::Error;
use crate::ports::{MarkedService, StoreError, WorkerRegistration};

/// One engine's worker.
pub(crate) struct Worker {
    pub(crate) parts: Arc<Parts>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) committer: Committer,
    slots: Arc<WorkerSlots>,
    /// Fires when the claim loop has ended: it will make no claim call any more.
    claim_loop_ended: CancellationToken,
}

impl Worker {
    /// Registers the worker and starts its loops.
    pub(crate) async fn start(
        parts: Arc<Parts>,
        registry: Arc<Registry>,
        committer: Committer,
        (slots, handed_over): (Arc<WorkerSlots>, UnboundedReceiver<ClaimedBatch>),
    ) -> Result<Arc<Self>, Error> {
        let claim_loop_ended = CancellationToken::new();
        let worker = Arc::new(Self { parts, registry, committer, slots, claim_loop_ended });
        worker.parts.patiently(|| worker.register()).await?;
        let spawner = Arc::clone(&worker.parts.spawner);
        // User code that hogs the runtime must not cost the worker its leases.
        spawner.spawn_apart("heartbeat", Box::pin(Arc::clone(&worker).heartbeat_loop()));
        spawner.spawn(Box::pin(Arc::clone(&worker).claim_loop()));
        spawner.spawn(Box::pin(Arc::clone(&worker).hand_over_loop(handed_over)));
        Ok(worker)
    }

    /// Waits until no task is held, also none that this worker does not know of.
    pub(crate) async fn emptied(&self) {
        self.slots.held.emptied().await;
        self.hand_back_unanswered().await;
    }

    /// Tasks that are held right now.
    pub(crate) fn n_held(&self) -> usize {
        self.slots.held.len()
    }

    /// Registers the worker. Where the store does not know its workflows, since it was restored or
    /// made anew, they are registered again before.
    async fn register(&self) -> Result<(), StoreError> {
        let services = self.registry.services();
        match self.parts.store.register_worker(self.registration(services.clone())).await {
            Err(error) if error.is_unknown_definition() => {
                let unknown = services.iter().map(|service| service.mark);
                self.registry.register_anew(&self.parts, unknown).await?;
                let services = self.registry.services();
                self.parts.store.register_worker(self.registration(services)).await
            }
            other => other,
        }
    }

    fn registration(&self, services: Vec<MarkedService>) -> WorkerRegistration {
        WorkerRegistration {
            worker: self.parts.worker.clone(),
            queues: self.parts.config.queues.clone(),
            services,
            lease: self.parts.config.lease,
        }
    }
}
