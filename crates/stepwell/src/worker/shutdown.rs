//! Stopping: claim nothing more, drain, hand back what has really stopped, close.

use std::time::Duration;

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
}

/// How long stopped executions get to unwind before they count as not stopping.
const UNWIND: Duration = Duration::from_millis(500);

impl Worker {
    /// Drains within `grace`, while heartbeats go on, and hands back the rest.
    pub(crate) async fn stop(&self, grace: Duration) -> StopReport {
        self.stop_claiming();
        // Calls that may still bring claims: claim, start, commit. What they bring is drained like
        // everything else.
        let last_call = async {
            self.claim_loop_ended.cancelled().await;
            self.slots.calls.all_ended().await;
        };
        tokio::select! {
            biased;
            () = last_call => {}
            () = self.parts.clock.sleep(grace.max(UNWIND)) => {}
        }
        let n_running = self.slots.held.len();
        let is_drained = self.wait_for_empty(grace).await;
        if is_drained {
            return StopReport { n_drained: n_running, ..StopReport::default() };
        }
        let n_left = self.slots.held.len();
        self.slots.held.hand_back_all();
        self.wait_for_empty(UNWIND).await;
        let n_still_running = self.slots.held.len();
        StopReport {
            n_drained: n_running.saturating_sub(n_left),
            n_handed_back: n_left - n_still_running.min(n_left),
            n_still_running,
        }
    }

    async fn wait_for_empty(&self, span: Duration) -> bool {
        tokio::select! {
            biased;
            () = self.slots.held.emptied() => true,
            () = self.parts.clock.sleep(span) => false,
        }
    }
}
