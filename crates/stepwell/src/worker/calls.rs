//! Which claims are under way, so that those whose reply was lost can be told from those whose
//! reply is still to come.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard};

use tokio::sync::Notify;

use crate::ports::ClaimRef;

/// Calls that may bring claims, by the salt of their tokens.
#[derive(Default)]
pub(super) struct ClaimCalls {
    calls: Mutex<Calls>,
    ended: Notify,
}

#[derive(Default)]
struct Calls {
    open: HashSet<u64>,
    /// Those that were open at the last [`mark`](ClaimCalls::mark), or have begun since.
    recent: HashSet<u64>,
}

impl ClaimCalls {
    /// A call is about to be sent.
    pub(super) fn begin(&self, salt: u64) {
        let mut calls = self.calls();
        calls.open.insert(salt);
        calls.recent.insert(salt);
    }

    /// Its reply was taken up, or will never come.
    pub(super) fn end(&self, salt: u64) {
        self.calls().open.remove(&salt);
        self.ended.notify_waiters();
    }

    /// Waits until none is under way.
    pub(super) async fn all_ended(&self) {
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            // Registered before the look, so that an end in between is not missed.
            ended.as_mut().enable();
            if self.calls().open.is_empty() {
                return;
            }
            ended.await;
        }
    }

    /// Marks the moment before claims are listed.
    pub(super) fn mark(&self) {
        let Calls { open, recent } = &mut *self.calls();
        recent.clone_from(open);
    }

    /// Whether the call that brought a claim had ended before the last mark.
    pub(super) fn is_past(&self, claim: &ClaimRef) -> bool {
        !self.calls().recent.contains(&claim.token.salt())
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().expect("no holder of the lock panics")
    }
}

#[cfg(test)]
mod tests {
    use stepwell_core::id::{Node, RunKey, Token};

    use super::*;

    fn claim(salt: u64) -> ClaimRef {
        ClaimRef { run: RunKey(1), node: Node(0), token: Token::new(7, salt) }
    }

    #[test]
    fn a_claim_is_past_once_its_call_has_ended_before_the_mark() {
        let calls = ClaimCalls::default();
        calls.begin(1);
        calls.mark();
        calls.begin(2);
        assert!(!calls.is_past(&claim(1)) && !calls.is_past(&claim(2)));
        calls.end(1);
        calls.end(2);
        // Their replies may have been taken up after the claims were listed.
        assert!(!calls.is_past(&claim(1)) && !calls.is_past(&claim(2)));
        calls.begin(3);
        calls.mark();
        assert!(calls.is_past(&claim(1)) && calls.is_past(&claim(2)));
        assert!(!calls.is_past(&claim(3)));
    }
}
