//! The heartbeat loop: keeps the worker's lease, and stops executions whose claims were lost.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::Worker;
use crate::ports::{ClaimRef, CommitItem, HeartbeatAnswer, Hint, Hints, Outcome, StoreError};

/// Least time between two heartbeats that steps ask for by telling their progress.
const PROGRESS_PAUSE: Duration = Duration::from_secs(1);

/// Most heartbeats in a second because claims were taken. Further ones are told together.
const TAKEN_BEATS_MAX: usize = 5;

impl Worker {
    /// Beats until the engine closes: also while it drains, or its running steps would be taken
    /// for dead. A heartbeat that fails is tried again soon: there must be time for several in a
    /// lease.
    pub(super) async fn heartbeat_loop(self: Arc<Self>) {
        let mut hints = self.parts.store.hints();
        let mut beat_at = None;
        let mut taken_beats = VecDeque::with_capacity(TAKEN_BEATS_MAX);
        let clock = &self.parts.clock;
        let mut jumped = clock.jumped();
        let mut n_failed = 0;
        loop {
            let pause = pause_after(n_failed, self.parts.config.heartbeat_interval);
            tokio::select! {
                biased;
                () = self.parts.closing.cancelled() => return,
                () = self.claims_taken(&mut hints, &taken_beats) => {
                    taken_beats.truncate(TAKEN_BEATS_MAX - 1);
                    taken_beats.push_front(clock.elapsed());
                }
                // The machine may have been suspended, and others heard nothing of it for long.
                () = &mut jumped => jumped = clock.jumped(),
                () = clock.sleep(pause) => {}
                () = self.progress_due(beat_at) => {}
            }
            hints.look(Hint::Claims);
            beat_at = Some(self.parts.clock.elapsed());
            n_failed = match self.beat().await {
                Ok(()) => 0,
                Err(error) => {
                    tracing::warn!(%error, n_failed, "heartbeat");
                    n_failed + 1
                }
            };
        }
    }

    /// Completes when claims of this worker were taken, unless there were many heartbeats because
    /// of that in the last second: then when that is over.
    async fn claims_taken(&self, hints: &mut Hints, taken_beats: &VecDeque<Duration>) {
        hints.claims_taken_from(&self.parts.worker).await;
        let first = taken_beats.get(TAKEN_BEATS_MAX - 1).copied();
        self.pause_since(first, Duration::from_secs(1)).await;
    }

    /// Completes when a step has told its progress, and the last heartbeat is long enough ago.
    async fn progress_due(&self, beat_at: Option<Duration>) {
        self.parts.progress_told.notified().await;
        self.pause_since(beat_at, PROGRESS_PAUSE).await;
    }

    /// Waits until a heartbeat is so long ago.
    async fn pause_since(&self, beat_at: Option<Duration>, pause: Duration) {
        let since = beat_at.map(|at| self.parts.clock.elapsed().saturating_sub(at));
        let left = since.map_or(Duration::ZERO, |since| pause.saturating_sub(since));
        if !left.is_zero() {
            self.parts.clock.sleep(left).await;
        }
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

    async fn beat(self: &Arc<Self>) -> Result<(), StoreError> {
        // Before the store lists this worker's claims, so that one it makes later is not taken for
        // one whose reply was lost.
        self.slots.calls.mark();
        let held = self.slots.held.refs();
        match self.renew_lease(&held).await? {
            HeartbeatAnswer::Alive { lost, unknown } => {
                self.slots.held.stop_lost(&lost);
                let calls = &self.slots.calls;
                let unexecuted = unknown.into_iter().filter(|claim| calls.had_ended(claim));
                let unexecuted: Vec<ClaimRef> = unexecuted.collect();
                if !unexecuted.is_empty() {
                    // Heartbeats do not wait for it.
                    let worker = Arc::clone(self);
                    self.parts.spawner.spawn(Box::pin(async move {
                        worker.hand_back_unexecuted(unexecuted).await;
                    }));
                }
                self.report_progress().await;
            }
            HeartbeatAnswer::Dead => {
                self.register_again(&held).await;
            }
        }
        Ok(())
    }

    /// Asks the store, for a sixth of the lease at most: one that goes dark must leave the time to
    /// ask again.
    async fn renew_lease(&self, held: &[ClaimRef]) -> Result<HeartbeatAnswer, StoreError> {
        let span = self.parts.config.lease / 6;
        tokio::select! {
            biased;
            answer = self.parts.store.heartbeat(&self.parts.worker, held) => answer,
            () = self.parts.clock.sleep(span) => {
                let why = format!("no answer within {span:?}");
                Err(StoreError::Unavailable { operation: "heartbeat", why })
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

/// How long to wait for the next heartbeat. After one that failed it is a tenth of the interval,
/// doubled with each one that fails after it, up to the interval.
fn pause_after(n_failed: u32, interval: Duration) -> Duration {
    match n_failed.checked_sub(1) {
        None => interval,
        Some(n_doubled) => (interval / 10 * (1 << n_doubled.min(4))).min(interval),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heartbeat_that_failed_is_tried_again_soon() {
        let secs = |n_failed| pause_after(n_failed, Duration::from_secs(10)).as_secs();
        assert_eq!([0, 1, 2, 3, 4, 5, 6, 100].map(secs), [10, 1, 2, 4, 8, 10, 10, 10]);
    }
}
