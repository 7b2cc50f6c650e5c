//! The worker: claims tasks, executes them, and keeps its leases alive.

mod calls;
mod claim;
mod context;
mod execute;
mod hands;
mod heartbeat;
mod held;
mod panic;
mod shutdown;

use std::sync::Arc;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

pub(crate) use context::{TaskArgs, TaskContext};
pub(crate) use hands::{Handful, Hands};
pub use shutdown::StopReport;

use crate::engine::{Committer, Error, Parts, Registry};
use crate::ports::WorkerRegistration;

/// One engine's worker.
pub(crate) struct Worker {
    pub(crate) parts: Arc<Parts>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) committer: Committer,
    hands: Arc<Hands>,
    /// Fires when the claim loop has ended: nothing can be claimed any more.
    claimed_last: CancellationToken,
}

impl Worker {
    /// Registers the worker and starts its loops.
    pub(crate) async fn start(
        parts: Arc<Parts>,
        registry: Arc<Registry>,
        committer: Committer,
        (hands, given): (Arc<Hands>, UnboundedReceiver<Handful>),
    ) -> Result<Arc<Self>, Error> {
        let claimed_last = CancellationToken::new();
        let worker = Arc::new(Self { parts, registry, committer, hands, claimed_last });
        worker.register().await?;
        let spawner = Arc::clone(&worker.parts.spawner);
        // User code that hogs the runtime must not cost the worker its leases.
        spawner.spawn_apart("heartbeat", Box::pin(Arc::clone(&worker).heartbeat_loop()));
        spawner.spawn(Box::pin(Arc::clone(&worker).claim_loop()));
        spawner.spawn(Box::pin(Arc::clone(&worker).hand_over_loop(given)));
        Ok(worker)
    }

    /// Claims nothing more.
    pub(crate) fn stop_claiming(&self) {
        self.hands.stopping.cancel();
    }

    /// Waits until no task is held.
    pub(crate) async fn emptied(&self) {
        self.hands.held.emptied().await;
    }

    /// Tasks that are held right now.
    pub(crate) fn n_held(&self) -> usize {
        self.hands.held.len()
    }

    async fn register(&self) -> Result<(), Error> {
        let registration = WorkerRegistration {
            worker: self.parts.worker.clone(),
            queues: self.parts.config.queues.clone(),
            services: self.registry.services(),
            lease: self.parts.config.lease,
        };
        Ok(self.parts.store.register_worker(registration).await?)
    }
}
