//! The heartbeat loop: keeps the worker's lease, and stops executions whose claims were lost.

use std::sync::Arc;
use std::time::Duration;

use super::Worker;
use crate::ports::{ClaimRef, CommitItem, HeartbeatAnswer, Hint, Outcome};

/// Least time between two heartbeats that steps ask for by telling their progress.
const PROGRESS_PAUSE: Duration = Duration::from_secs(1);

impl Worker {
    /// Beats until the engine closes: also while it drains, or its running steps would be taken
    /// for dead.
    pub(super) async fn heartbeat_loop(self: Arc<Self>) {
        let mut hints = self.parts.store.hints();
        let mut beat_at = None;
        let clock = &self.parts.clock;
        let mut jumped = clock.jumped();
        loop {
            tokio::select! {
                biased;
                () = self.parts.closing.cancelled() => return,
                () = hints.given(Hint::Claims) => {}
                // The machine may have been suspended, and others heard nothing of it for long.
                () = &mut jumped => jumped = clock.jumped(),
                () = clock.sleep(self.parts.config.heartbeat_interval) => {}
                () = self.progress_due(beat_at) => {}
            }
            hints.look(Hint::Claims);
            beat_at = Some(self.parts.clock.elapsed());
            self.beat().await;
        }
    }

    /// Completes when a step has told its progress, and the last heartbeat is long enough ago.
    async fn progress_due(&self, beat_at: Option<Duration>) {
        self.parts.progress_told.notified().await;
        let since = beat_at.map(|at| self.parts.clock.elapsed().saturating_sub(at));
        let left = since.map_or(Duration::ZERO, |since| PROGRESS_PAUSE.saturating_sub(since));
        self.parts.clock.sleep(left).await;
    }

    /// Tells the store how far steps have come. What it does not take is told again.
    async fn report_progress(&self) {
        let held = &self.slots.held;
        let reports = held.unreported_progress();
        if reports.is_empty() {
            return;
        }
        match self.parts.store.report_progress(&self.parts.worker, &reports).await {
            Ok(()) => held.progress_reported(&reports),
            Err(error) => tracing::warn!(%error, "tell progress"),
        }
    }

    async fn beat(&self) {
        // Before the store lists this worker's claims, so that one it makes later is not taken for
        // one whose reply was lost.
        self.slots.calls.mark();
        let held = self.slots.held.refs();
        match self.parts.store.heartbeat(&self.parts.worker, &held).await {
            Ok(HeartbeatAnswer::Alive { lost, unknown }) => {
                self.slots.held.stop_lost(&lost);
                let calls = &self.slots.calls;
                let unexecuted = unknown.into_iter().filter(|claim| calls.had_ended(claim));
                self.hand_back_unexecuted(unexecuted.collect()).await;
                self.report_progress().await;
            }
            Ok(HeartbeatAnswer::Dead) => {
                self.register_again(&held).await;
            }
            Err(error) => {
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
