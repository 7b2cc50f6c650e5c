//! The heartbeat loop: keeps the worker's lease, and stops executions whose claims are gone.

use std::sync::Arc;

use super::Worker;
use crate::ports::{ClaimRef, CommitItem, HeartbeatAnswer, Hint, Outcome};

impl Worker {
    /// Beats until the engine closes: also while it drains, or its running steps would be taken
    /// for dead.
    pub(super) async fn heartbeat_loop(self: Arc<Self>) {
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
        // Before the claims are listed: what is claimed later is no stray.
        self.hands.calls.mark();
        let held = self.hands.held.refs();
        match self.parts.store.heartbeat(&self.parts.worker, &held).await {
            Ok(HeartbeatAnswer::Alive { lost, unknown }) => {
                self.parts.contact.answered();
                self.hands.held.lose(&lost);
                let strays = unknown.into_iter().filter(|claim| self.hands.calls.is_past(claim));
                self.hand_back_strays(strays.collect()).await;
            }
            Ok(HeartbeatAnswer::Dead) => {
                self.rise_again(&held).await;
            }
            Err(error) => {
                self.parts.contact.broke();
                tracing::warn!(%error, "heartbeat");
            }
        }
    }

    /// Claims whose reply was lost: nobody executes them, and this worker's heartbeats would keep
    /// them for ever. An outcome committed meanwhile makes handing back change nothing.
    async fn hand_back_strays(&self, strays: Vec<ClaimRef>) {
        for claim in strays {
            tracing::warn!(?claim, "the reply to a claim was lost, handing it back");
            let item = CommitItem { claim, outcome: Outcome::Released };
            if let Err(error) = self.committer.commit(item).await {
                tracing::warn!(%error, "hand back a stray claim");
            }
        }
    }

    /// The worker was taken for dead: what it held then is somebody else's by now. It may have
    /// claimed anew since. A worker that is stopping does not come back. Says whether it did.
    pub(super) async fn rise_again(&self, held: &[ClaimRef]) -> bool {
        self.hands.held.lose(held);
        if self.hands.stopping.is_cancelled() {
            return false;
        }
        tracing::warn!(worker = %self.parts.worker, "taken for dead, registering anew");
        let registered = self.register().await;
        if let Err(error) = &registered {
            tracing::warn!(%error, "register worker");
        }
        registered.is_ok()
    }
}
