//! Whether a claim is under way, so that claims whose reply was lost can be told from those whose
//! reply is still to come.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts claim calls. Only the claim loop makes them, one at a time.
#[derive(Default)]
pub(super) struct ClaimCalls {
    n_begun: AtomicU64,
    n_ended: AtomicU64,
}

/// A moment at which no claim was under way.
#[derive(Clone, Copy)]
pub(super) struct Quiet(u64);

impl ClaimCalls {
    /// A claim is about to be sent.
    pub(super) fn begin(&self) {
        self.n_begun.fetch_add(1, Ordering::SeqCst);
    }

    /// Its reply was taken up, or will never come.
    pub(super) fn end(&self) {
        self.n_ended.fetch_add(1, Ordering::SeqCst);
    }

    /// The current moment, if no claim is under way.
    pub(super) fn quiet(&self) -> Option<Quiet> {
        let n_begun = self.n_begun.load(Ordering::SeqCst);
        (self.n_ended.load(Ordering::SeqCst) == n_begun).then_some(Quiet(n_begun))
    }

    /// Whether no claim has begun since then.
    pub(super) fn is_still(&self, quiet: Quiet) -> bool {
        self.n_begun.load(Ordering::SeqCst) == quiet.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_quiet_only_while_no_claim_is_under_way() {
        let calls = ClaimCalls::default();
        let before = calls.quiet().expect("nothing has begun");
        assert!(calls.is_still(before));
        calls.begin();
        assert!(calls.quiet().is_none() && !calls.is_still(before));
        calls.end();
        assert!(calls.quiet().is_some() && !calls.is_still(before));
    }
}
