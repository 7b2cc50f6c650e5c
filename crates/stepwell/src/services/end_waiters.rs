//! Callers that wait for runs to end: all of one engine share one query per wake-up.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use stepwell_core::id::RunKey;
use stepwell_core::run::RunStatus;
use tokio::sync::{Notify, oneshot};

use crate::engine::Parts;
use crate::ports::Hint;

/// The callers that wait for runs to end.
#[derive(Clone, Default)]
pub(crate) struct EndWaiters {
    waiting: Arc<Mutex<HashMap<RunKey, Vec<oneshot::Sender<RunStatus>>>>>,
    /// Tells the loop that a caller was added.
    added: Arc<Notify>,
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
        self.waiting().entry(run).or_default().push(wake);
        self.added.notify_one();
        woken.await.ok()
    }

    async fn wake_loop(self, parts: Arc<Parts>) {
        let mut hints = parts.store.hints();
        loop {
            hints.look(Hint::Ended);
            let runs = self.runs();
            if !runs.is_empty() {
                match parts.store.ended(&runs).await {
                    Ok(ended) => self.wake(&ended),
                    Err(error) => tracing::warn!(%error, "look for ended runs"),
                }
            }
            let is_idle = self.waiting().is_empty();
            let poll = async {
                if is_idle {
                    return std::future::pending().await;
                }
                parts.clock.sleep(parts.config.poll_interval).await;
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
        self.waiting().clear();
    }

    /// The runs that a caller still waits for.
    fn runs(&self) -> Vec<RunKey> {
        let mut waiting = self.waiting();
        waiting.retain(|_, wakes| {
            wakes.retain(|wake| !wake.is_closed());
            !wakes.is_empty()
        });
        waiting.keys().copied().collect()
    }

    fn wake(&self, ended: &[(RunKey, RunStatus)]) {
        let mut waiting = self.waiting();
        for (run, status) in ended {
            for wake in waiting.remove(run).into_iter().flatten() {
                let _ = wake.send(*status);
            }
        }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<RunKey, Vec<oneshot::Sender<RunStatus>>>> {
        self.waiting.lock().expect("no holder of the lock panics")
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
