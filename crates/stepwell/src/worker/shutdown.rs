//! Stopping: claim nothing more, drain, hand back what has really stopped, commit what has ended.

use std::future::Future;
use std::time::Duration;

use tokio::sync::watch;

use super::Worker;

/// How a stop went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StopReport {
    /// Tasks that were running when the stop began and ended within the grace period.
    pub n_drained: usize,
    /// Tasks that were stopped and went back to the queue, uncharged.
    pub n_handed_back: usize,
    /// Blocking steps that did not return. They keep their claims until they do, or until the
    /// process ends.
    pub n_still_running: usize,
    /// Tasks that have ended, or were stopped, and whose outcome is not stored, since the store
    /// does not answer. They are tried again for as long as the process lives.
    pub n_uncommitted: usize,
}

/// How long stopped executions get to unwind before they count as not stopping.
const UNWIND_TTL: Duration = Duration::from_secs(1);

/// How long the store gets to commit what has ended.
const COMMIT_TTL: Duration = Duration::from_secs(5);

impl Worker {
    /// The most time that a stop takes beyond its grace period.
    pub(crate) const STOP_OVERTIME_MAX: Duration = UNWIND_TTL.saturating_add(COMMIT_TTL);

    /// Claims nothing more. Says how many executions have ended before.
    pub(crate) fn begin_to_stop(&self) -> usize {
        self.slots.stopping.cancel();
        self.slots.held.n_ended()
    }

    /// Drains until the given moment of the engine's clock, while heartbeats go on, and hands back
    /// the rest. The moment may be moved while it drains.
    pub(crate) async fn stop(
        &self,
        n_ended_before: usize,
        drain_until: watch::Receiver<Duration>,
    ) -> StopReport {
        let held = &self.slots.held;
        let drained = async {
            self.last_call_ended().await;
            held.emptied().await;
        };
        let is_drained = tokio::select! {
            biased;
            () = drained => true,
            () = self.reached(drain_until) => false,
        };
        let (n_drained, n_left) =
            (held.n_ended().saturating_sub(n_ended_before), held.n_executing());
        if !is_drained {
            held.hand_back_all();
            let unwound = async {
                self.last_call_ended().await;
                held.executed().await;
            };
            self.within(UNWIND_TTL, unwound).await;
        }
        let n_still_running = held.n_executing();
        let committed = async {
            self.hand_back_unanswered().await;
            held.committed().await;
        };
        self.within(COMMIT_TTL, committed).await;
        let n_handed_back = n_left.saturating_sub(n_still_running);
        let n_uncommitted = held.n_uncommitted();
        StopReport { n_drained, n_handed_back, n_still_running, n_uncommitted }
    }

    /// Waits for the calls that may still bring claims: claim, start, commit. What they bring is
    /// drained like everything else.
    async fn last_call_ended(&self) {
        self.claim_loop_ended.cancelled().await;
        self.slots.calls.all_ended().await;
    }

    /// Waits for a moment of the engine's clock, wherever it is moved to.
    async fn reached(&self, mut moment: watch::Receiver<Duration>) {
        loop {
            let left = moment.borrow_and_update().saturating_sub(self.parts.clock.elapsed());
            tokio::select! {
                biased;
                Ok(()) = moment.changed() => {}
                () = self.parts.clock.sleep(left) => return,
            }
        }
    }

    async fn within(&self, span: Duration, wait: impl Future<Output = ()>) {
        tokio::select! {
            biased;
            () = wait => {}
            () = self.parts.clock.sleep(span) => {}
        }
    }
}
