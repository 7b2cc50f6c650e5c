//! The heartbeat loop: keeps the worker's lease, and stops executions whose claims were lost.

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
        // Before the store lists this worker's claims, so that one it makes later is not taken for
        // one whose reply was lost.
        self.slots.calls.mark();
        let held = self.slots.held.refs();
        match self.parts.store.heartbeat(&self.parts.worker, &held).await {
            Ok(HeartbeatAnswer::Alive { lost, unknown }) => {
                self.parts.contact.answered();
                self.slots.held.stop_lost(&lost);
                let calls = &self.slots.calls;
                let unexecuted = unknown.into_iter().filter(|claim| calls.had_ended(claim));
                self.hand_back_unexecuted(unexecuted.collect()).await;
            }
            Ok(HeartbeatAnswer::Dead) => {
                self.register_again(&held).await;
            }
            Err(error) => {
                self.parts.contact.broke();
                tracing::warn!(%error, "heartbeat");
            }
        }
    }

    /// Hands back what this worker holds without knowing of it: the reply to the call that claimed
    /// it was lost, or is late. For a worker that stops, and executes nothing that comes now.
    pub(super) async fn hand_back_unanswered(&self) {
        let held = self.slots.held.refs();
        match self.parts.store.heartbeat(&self.parts.worker, &held).await {
            Ok(HeartbeatAnswer::Alive { unknown, .. }) => self.hand_back_unexecuted(unknown).await,
            Ok(HeartbeatAnswer::Dead) => {}
            Err(error) => tracing::warn!(%error, "look for claims without a reply"),
        }
    }

    /// Hands back claims whose reply was lost: nobody executes them, and this worker's heartbeats
    /// would keep them for ever. If an outcome was committed meanwhile, handing back changes
    /// nothing.
    async fn hand_back_unexecuted(&self, unexecuted: Vec<ClaimRef>) {
        for claim in unexecuted {
            tracing::warn!(?claim, "the reply to a claim was lost, handing it back");
            let item = CommitItem { claim, outcome: Outcome::Released };
            if let Err(error) = self.committer.commit(item).await {
                tracing::warn!(%error, "hand back an unexecuted claim");
            }
        }
    }

    /// The store took this worker for dead, and the claims it held then are lost; those it has made
    /// since are not. Registers the worker again unless it is stopping, and says whether it did.
    pub(super) async fn register_again(&self, held: &[ClaimRef]) -> bool {
        self.slots.held.stop_lost(held);
        if self.slots.stopping.is_cancelled() {
            return false;
        }
        tracing::warn!(worker = %self.parts.worker, "taken for dead, registering again");
        let registered = self.register().await;
        if let Err(error) = &registered {
            tracing::warn!(%error, "register worker");
        }
        registered.is_ok()
    }
}
