//! The heartbeat loop: keeps the worker's lease, and stops executions whose claims are gone.

use super::Worker;
use crate::ports::{HeartbeatAnswer, Hint};

impl Worker {
    /// Beats until the engine closes: also while it drains, or its running steps would be taken
    /// for dead.
    pub(super) async fn heartbeat_loop(self) {
        let mut hints = self.parts.store.hints();
        loop {
            tokio::select! {
                biased;
                () = self.parts.closing.cancelled() => return,
                () = hints.given(Hint::Claims) => {}
                () = self.parts.clock.sleep(self.parts.config.heartbeat_interval) => {}
            }
            hints.look(Hint::Claims);
            self.beat().await;
        }
    }

    async fn beat(&self) {
        match self.parts.store.heartbeat(&self.parts.worker, &self.held.refs()).await {
            Ok(HeartbeatAnswer::Alive { lost }) => {
                self.parts.contact.answered();
                self.held.lose(&lost);
            }
            Ok(HeartbeatAnswer::Dead) => self.rise_again().await,
            Err(error) => {
                self.parts.contact.broke();
                tracing::warn!(%error, "heartbeat");
            }
        }
    }

    /// The worker was taken for dead: what it held is somebody else's by now.
    pub(super) async fn rise_again(&self) {
        tracing::warn!(worker = %self.parts.worker, "taken for dead, registering anew");
        self.held.lose(&self.held.refs());
        if let Err(error) = self.register().await {
            tracing::warn!(%error, "register worker");
        }
    }
}
