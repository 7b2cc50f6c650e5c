//! Callers that wait for runs to end: all of one engine share one query per wake-up. A hint that
//! names the runs which ended makes them look at those only; all are looked at when it is time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use stepwell_core::id::RunKey;
use stepwell_core::run::RunStatus;
use tokio::sync::{Notify, oneshot};

use crate::engine::Parts;
use crate::ports::{EndedRuns, Hint};

/// Most runs that one query asks for.
const RUNS_PER_QUERY: usize = 1_000;

/// The callers that wait for runs to end.
#[derive(Clone, Default)]
pub(crate) struct EndWaiters {
    waiting: Arc<Mutex<Waiting>>,
    /// Tells the loop that a caller was added.
    added: Arc<Notify>,
}

/// The runs that callers wait for.
#[derive(Default)]
struct Waiting {
    callers: HashMap<RunKey, Vec<oneshot::Sender<RunStatus>>>,
    /// Those that were not looked at yet: they may have ended before anybody waited.
    fresh: Vec<RunKey>,
}

impl EndWaiters {
    /// Starts the loop that wakes waiters.
    pub(crate) fn start(parts: &Arc<Parts>) -> Self {
        let waiters = Self::default();
        let (closes, wake_loop) =
            (ClosesOnDrop(Arc::clone(parts)), waiters.clone().wake_loop(Arc::clone(parts)));
        parts.spawner.spawn(Box::pin(async move {
            wake_loop.await;
            drop(closes);
        }));
        waiters
    }

    /// Resolves when the run has ended. `None` if the engine closed before.
    pub(crate) async fn ended(&self, run: RunKey) -> Option<RunStatus> {
        let (wake, woken) = oneshot::channel();
        self.waiting().add(run, wake);
        self.added.notify_one();
        woken.await.ok()
    }

    async fn wake_loop(self, parts: Arc<Parts>) {
        let mut hints = parts.store.hints();
        let mut poll_at = Duration::ZERO;
        loop {
            let (now, mut ended) = (parts.clock.elapsed(), hints.look_at_ended());
            if now >= poll_at {
                ended = EndedRuns::Any;
                poll_at = now + parts.config.poll_interval;
            }
            let runs = self.waiting().take_looks(ended);
            for page in runs.chunks(RUNS_PER_QUERY) {
                match parts.store.ended(page).await {
                    Ok(ended) => self.waiting().wake(&ended),
                    Err(error) => tracing::warn!(%error, "look for ended runs"),
                }
            }
            let is_idle = self.waiting().callers.is_empty();
            let poll = async {
                if is_idle {
                    return std::future::pending().await;
                }
                parts.clock.sleep(poll_at.saturating_sub(parts.clock.elapsed())).await;
            };
            tokio::select! {
                biased;
                () = parts.closing.cancelled() => break,
                () = self.added.notified() => {}
                () = hints.given(Hint::Ended) => {}
                () = poll => {}
            }
        }
        // Dropping the senders tells the callers that still wait.
        *self.waiting() = Waiting::default();
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().expect("no holder of the lock panics")
    }
}

impl Waiting {
    fn add(&mut self, run: RunKey, wake: oneshot::Sender<RunStatus>) {
        self.callers.entry(run).or_default().push(wake);
        self.fresh.push(run);
    }

    /// The runs to look at, when these are said to have ended: of them, and of those nobody has
    /// looked at yet, all that a caller still waits for.
    fn take_looks(&mut self, ended: EndedRuns) -> Vec<RunKey> {
        let mut runs = std::mem::take(&mut self.fresh);
        match ended {
            EndedRuns::Named(named) => runs.extend(named),
            EndedRuns::Any => runs = self.callers.keys().copied().collect(),
        }
        runs.sort_unstable();
        runs.dedup();
        runs.retain(|run| self.is_awaited(*run));
        runs
    }

    /// Whether a caller still waits for a run. Those that gave up are forgotten.
    fn is_awaited(&mut self, run: RunKey) -> bool {
        let Some(wakes) = self.callers.get_mut(&run) else { return false };
        wakes.retain(|wake| !wake.is_closed());
        let is_awaited = !wakes.is_empty();
        if !is_awaited {
            self.callers.remove(&run);
        }
        is_awaited
    }

    fn wake(&mut self, ended: &[(RunKey, RunStatus)]) {
        for (run, status) in ended {
            for wake in self.callers.remove(run).into_iter().flatten() {
                let _ = wake.send(*status);
            }
        }
    }
}

/// Closes the engine when its runtime ends, which drops the loop half-way. Else the heartbeat and
/// the leader, which have threads of their own, would go on for a worker that can do nothing, and
/// callers would wait for ever.
struct ClosesOnDrop(Arc<Parts>);

impl Drop for ClosesOnDrop {
    fn drop(&mut self) {
        self.0.closing.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_that_names_runs_makes_nobody_look_at_others() {
        let mut waiting = Waiting::default();
        let mut callers = Vec::new();
        for run in [1, 2, 3, 4].map(RunKey) {
            let (wake, woken) = oneshot::channel();
            waiting.add(run, wake);
            callers.push(woken);
        }
        let nobody = || EndedRuns::Named(Vec::new());
        let keys = |runs: &[u128]| runs.iter().copied().map(RunKey).collect::<Vec<_>>();
        assert_eq!(waiting.take_looks(nobody()), keys(&[1, 2, 3, 4]), "nobody has looked yet");
        assert_eq!(waiting.take_looks(nobody()), keys(&[]));
        let ended = EndedRuns::Named(keys(&[9, 3, 3, 1]));
        assert_eq!(waiting.take_looks(ended), keys(&[1, 3]), "9 concerns nobody here");
        callers.remove(0);
        waiting.wake(&[(RunKey(2), RunStatus::Completed)]);
        assert_eq!(waiting.take_looks(EndedRuns::Any), keys(&[3, 4]));
        assert_eq!(waiting.callers.len(), 2, "who gave up is forgotten");
    }
}
