//! The claims a worker holds right now, and how to stop the execution of each.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use stepwell_core::id::Token;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::ports::{ClaimRef, ProgressReport};

/// Stops one execution. The step sees that it is cancelled; the worker sees why.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop {
    token: CancellationToken,
    marks: Arc<Marks>,
}

#[derive(Debug, Default)]
struct Marks {
    /// Whether the task goes back to the queue; else another worker has it by now.
    hands_back: AtomicBool,
    /// Whether the step's code has ended. The claim is held until its outcome is committed.
    has_ended: AtomicBool,
    progress: Mutex<ToldProgress>,
}

/// What a step told of how far it has come.
#[derive(Debug, Default)]
struct ToldProgress {
    text: Option<String>,
    is_reported: bool,
}

impl Stop {
    pub(crate) fn token(&self) -> &CancellationToken {
        &self.token
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.token.is_cancelled()
    }

    pub(crate) fn hands_back(&self) -> bool {
        self.marks.hands_back.load(Ordering::Acquire)
    }

    /// The step tells how far it has come.
    pub(crate) fn tell(&self, text: String) {
        let mut progress = self.progress();
        if progress.text.as_ref() != Some(&text) {
            *progress = ToldProgress { text: Some(text), is_reported: false };
        }
    }

    fn progress(&self) -> MutexGuard<'_, ToldProgress> {
        self.marks.progress.lock().expect("no holder of the lock panics")
    }

    /// What the step told last, unless the store has it.
    fn unreported(&self) -> Option<String> {
        let progress = self.progress();
        progress.text.clone().filter(|_| !progress.is_reported && !self.has_ended())
    }

    fn has_ended(&self) -> bool {
        self.marks.has_ended.load(Ordering::Acquire)
    }

    fn hand_back(&self) {
        self.marks.hands_back.store(true, Ordering::Release);
        self.token.cancel();
    }
}

struct Entry {
    stop: Stop,
    is_suspect: bool,
}

#[derive(Default)]
struct Claims {
    entries: BTreeMap<ClaimRef, Entry>,
    /// How many claims were dropped so far.
    n_dropped: usize,
    /// Whether every claim goes back to the queue, those that are still to come as well.
    hands_back: bool,
}

/// The claims a worker holds right now.
#[derive(Default)]
pub(crate) struct HeldClaims {
    claims: Mutex<Claims>,
    /// Tells that a claim was dropped, that an execution has ended, or that a suspect is none any
    /// more.
    changed: Notify,
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
        for claim in dropped {
            claims.remove(claim);
        }
        drop(claims);
        self.changed.notify_waiters();
    }

    /// The code of a step has ended; its outcome is still to be committed.
    pub(crate) fn execution_ended(&self, stop: &Stop) {
        stop.marks.has_ended.store(true, Ordering::Release);
        self.changed.notify_waiters();
    }

    /// A task came further than its losses: it is no suspect any more.
    pub(crate) fn clear_suspect(&self, claim: &ClaimRef) {
        if let Some(entry) = self.claims().entries.get_mut(claim) {
            entry.is_suspect = false;
        }
        self.changed.notify_waiters();
    }

    pub(crate) fn refs(&self) -> Vec<ClaimRef> {
        self.claims().entries.keys().copied().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.claims().entries.len()
    }

    fn holds_suspect(&self) -> bool {
        self.claims().entries.values().any(|entry| entry.is_suspect)
    }

    /// The store says that these claims no longer hold: their executions are stopped.
    pub(crate) fn stop_lost(&self, lost: &[ClaimRef]) {
        let claims = self.claims();
        for entry in lost.iter().filter_map(|claim| claims.entries.get(claim)) {
            entry.stop.token.cancel();
        }
    }

    /// What steps told and the store does not know yet.
    pub(crate) fn unreported_progress(&self) -> Vec<ProgressReport> {
        let claims = self.claims();
        let report = |(claim, entry): (&ClaimRef, &Entry)| {
            Some(ProgressReport { claim: *claim, text: entry.stop.unreported()? })
        };
        claims.entries.iter().filter_map(report).collect()
    }

    /// The store has these. A step may have told something else meanwhile.
    pub(crate) fn progress_reported(&self, reports: &[ProgressReport]) {
        let claims = self.claims();
        for ProgressReport { claim, text } in reports {
            let progress = claims.entries.get(claim).map(|entry| entry.stop.progress());
            if let Some(mut progress) = progress.filter(|told| told.text.as_ref() == Some(text)) {
                progress.is_reported = true;
            }
        }
    }

    /// Stops everything; what really stops goes back to the queue, and what is claimed later does
    /// so without being executed.
    pub(crate) fn hand_back_all(&self) {
        let mut claims = self.claims();
        claims.hands_back = true;
        claims.entries.values().for_each(|entry| entry.stop.hand_back());
    }

    /// How many steps are being executed, as opposed to waiting for their commit.
    pub(crate) fn n_executing(&self) -> usize {
        self.claims().entries.values().filter(|entry| !entry.stop.has_ended()).count()
    }

    /// How many steps have ended whose outcome is still to be committed.
    pub(crate) fn n_uncommitted(&self) -> usize {
        self.claims().entries.values().filter(|entry| entry.stop.has_ended()).count()
    }

    /// How many executions have ended so far, committed or not.
    pub(crate) fn n_ended(&self) -> usize {
        let claims = self.claims();
        let n_uncommitted = claims.entries.values().filter(|entry| entry.stop.has_ended()).count();
        claims.n_dropped + n_uncommitted
    }

    /// Waits until no claim is held.
    pub(crate) async fn emptied(&self) {
        self.until(|held| held.len() == 0).await;
    }

    /// Waits until no suspect is held.
    pub(crate) async fn suspects_done(&self) {
        self.until(|held| !held.holds_suspect()).await;
    }

    /// Waits until no step is being executed.
    pub(crate) async fn executed(&self) {
        self.until(|held| held.n_executing() == 0).await;
    }

    /// Waits until every outcome there is has been committed.
    pub(crate) async fn committed(&self) {
        self.until(|held| held.n_uncommitted() == 0).await;
    }

    async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Registered before the look, so that a change in between is not missed.
            changed.as_mut().enable();
            if is_so(self) {
                return;
            }
            changed.await;
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
        if self.hands_back {
            stop.hand_back();
        }
        self.entries.insert(claim, Entry { stop: stop.clone(), is_suspect });
        stop
    }

    fn remove(&mut self, claim: &ClaimRef) {
        let entry = self.entries.remove(claim);
        self.n_dropped += usize::from(entry.is_some());
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use stepwell_core::id::{Node, RunKey};

    use super::*;

    #[test]
    fn a_suspect_is_done_when_its_claim_is_dropped_or_it_came_further_than_its_losses() {
        // R14
        let held = HeldClaims::default();
        let claim = |n: u64| ClaimRef { run: RunKey(1), node: Node(0), token: Token::new(n, 0) };
        held.add([(claim(1), false)].into_iter());
        assert!(held.suspects_done().now_or_never().is_some());
        let ends: [fn(&HeldClaims, ClaimRef); 2] =
            [|held, claim| held.drop_claims(&[claim]), |held, claim| held.clear_suspect(&claim)];
        for (n, end) in (2..).zip(ends) {
            held.add([(claim(n), true)].into_iter());
            let mut done = std::pin::pin!(held.suspects_done());
            assert!(done.as_mut().now_or_never().is_none());
            end(&held, claim(n));
            assert!(done.now_or_never().is_some());
        }
    }
}
