//! The claim calls under way, so that claims whose reply was lost can be told from claims whose
//! reply is still to come.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard};

use tokio::sync::Notify;

use crate::ports::ClaimRef;

/// Calls that may bring claims (claim, start, commit), by the salt of their tokens.
#[derive(Default)]
pub(crate) struct OpenClaimCalls {
    calls: Mutex<Calls>,
    ended: Notify,
}

#[derive(Default)]
struct Calls {
    open: HashSet<u64>,
    /// Calls that were open at the last [`mark`](OpenClaimCalls::mark), or have begun since.
    recent: HashSet<u64>,
}

impl OpenClaimCalls {
    /// A call is about to be sent.
    pub(crate) fn begin(&self, salt: u64) {
        let mut calls = self.calls();
        calls.open.insert(salt);
        calls.recent.insert(salt);
    }

    /// The reply to a call was taken up, or will never come.
    pub(crate) fn end(&self, salt: u64) {
        self.calls().open.remove(&salt);
        self.ended.notify_waiters();
    }

    /// Waits until no call is under way.
    pub(crate) async fn all_ended(&self) {
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

    /// Marks the moment before the store lists the claims it knows of.
    pub(crate) fn mark(&self) {
        let Calls { open, recent } = &mut *self.calls();
        recent.clone_from(open);
    }

    /// Whether the call that brought a claim had ended before the last mark.
    pub(crate) fn had_ended(&self, claim: &ClaimRef) -> bool {
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
    fn the_call_of_a_claim_had_ended_if_it_did_so_before_the_mark() {
        let calls = OpenClaimCalls::default();
        calls.begin(1);
        calls.mark();
        calls.begin(2);
        assert!(!calls.had_ended(&claim(1)) && !calls.had_ended(&claim(2)));
        calls.end(1);
        calls.end(2);
        // Their replies may have been taken up after the claims were listed.
        assert!(!calls.had_ended(&claim(1)) && !calls.had_ended(&claim(2)));
        calls.begin(3);
        calls.mark();
        assert!(calls.had_ended(&claim(1)) && calls.had_ended(&claim(2)));
        assert!(!calls.had_ended(&claim(3)));
    }
}
