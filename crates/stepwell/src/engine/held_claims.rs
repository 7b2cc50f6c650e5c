//! The claims a worker holds right now, and how to stop the execution of each.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use stepwell_core::id::Token;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::ports::ClaimRef;

/// Stops one execution. The step sees that it is cancelled; the worker sees why.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop {
    token: CancellationToken,
    /// Whether the task goes back to the queue; else another worker has it by now.
    hands_back: Arc<AtomicBool>,
}

impl Stop {
    pub(crate) fn token(&self) -> &CancellationToken {
        &self.token
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.token.is_cancelled()
    }

    pub(crate) fn hands_back(&self) -> bool {
        self.hands_back.load(Ordering::Acquire)
    }
}

struct Entry {
    stop: Stop,
    is_suspect: bool,
}

#[derive(Default)]
struct Claims {
    entries: BTreeMap<ClaimRef, Entry>,
    n_suspects: usize,
}

/// The claims a worker holds right now.
#[derive(Default)]
pub(crate) struct HeldClaims {
    claims: Mutex<Claims>,
    dropped: Notify,
    suspect_dropped: Notify,
}

impl HeldClaims {
    /// Adds claims, suspects or not. An older claim on the same task no longer counts: its
    /// execution is stopped, and its outcome would change nothing.
    pub(crate) fn add(&self, added: impl Iterator<Item = (ClaimRef, bool)>) -> Vec<Stop> {
        let mut claims = self.claims();
        added.map(|(claim, is_suspect)| claims.add(claim, is_suspect)).collect()
    }

    /// The worker is done with these claims.
    pub(crate) fn drop_claims(&self, dropped: &[ClaimRef]) {
        let mut claims = self.claims();
        let n_suspects = claims.n_suspects;
        for claim in dropped {
            claims.remove(claim);
        }
        if claims.n_suspects < n_suspects {
            self.suspect_dropped.notify_one();
        }
        drop(claims);
        self.dropped.notify_waiters();
    }

    /// Waits until the worker is done with a suspect: the next one may be claimed.
    pub(crate) async fn suspect_dropped(&self) {
        self.suspect_dropped.notified().await;
    }

    pub(crate) fn refs(&self) -> Vec<ClaimRef> {
        self.claims().entries.keys().copied().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.claims().entries.len()
    }

    pub(crate) fn holds_suspect(&self) -> bool {
        self.claims().n_suspects > 0
    }

    /// The store says that these claims no longer hold: their executions are stopped.
    pub(crate) fn stop_lost(&self, lost: &[ClaimRef]) {
        let claims = self.claims();
        for entry in lost.iter().filter_map(|claim| claims.entries.get(claim)) {
            entry.stop.token.cancel();
        }
    }

    /// Stops everything; what really stops goes back to the queue.
    pub(crate) fn hand_back_all(&self) {
        for entry in self.claims().entries.values() {
            entry.stop.hands_back.store(true, Ordering::Release);
            entry.stop.token.cancel();
        }
    }

    /// Waits until no claim is held.
    pub(crate) async fn emptied(&self) {
        loop {
            let dropped = self.dropped.notified();
            tokio::pin!(dropped);
            // Registered before the look, so that a drop in between is not missed.
            dropped.as_mut().enable();
            if self.len() == 0 {
                return;
            }
            dropped.await;
        }
    }

    fn claims(&self) -> MutexGuard<'_, Claims> {
        self.claims.lock().expect("no holder of the lock panics")
    }
}

impl Claims {
    fn add(&mut self, claim: ClaimRef, is_suspect: bool) -> Stop {
        let of_task = |token| ClaimRef { token, ..claim };
        let same_task = of_task(Token(u128::MIN))..=of_task(Token(u128::MAX));
        for entry in self.entries.range(same_task).map(|(_, entry)| entry) {
            entry.stop.token.cancel();
        }
        let stop = Stop::default();
        let older = self.entries.insert(claim, Entry { stop: stop.clone(), is_suspect });
        self.n_suspects += usize::from(is_suspect);
        self.n_suspects -= usize::from(older.is_some_and(|older| older.is_suspect));
        stop
    }

    fn remove(&mut self, claim: &ClaimRef) {
        let entry = self.entries.remove(claim);
        self.n_suspects -= usize::from(entry.is_some_and(|entry| entry.is_suspect));
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use stepwell_core::id::{Node, RunKey};

    use super::*;

    #[test]
    fn the_end_of_a_suspect_is_told_so_that_the_next_one_is_claimed() {
        let held = HeldClaims::default();
        let claim = |n: u64| ClaimRef { run: RunKey(1), node: Node(0), token: Token::new(n, 0) };
        for (n, is_suspect) in [(1, false), (2, true)] {
            held.add([(claim(n), is_suspect)].into_iter());
            assert!(held.suspect_dropped().now_or_never().is_none());
            held.drop_claims(&[claim(n)]);
            assert_eq!(held.suspect_dropped().now_or_never().is_some(), is_suspect);
        }
    }
}
