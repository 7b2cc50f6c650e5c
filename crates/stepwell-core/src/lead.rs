//! Who leads: a term that is kept, taken over, or followed.

use crate::id::Epoch;
use crate::time::Timestamp;

/// A term of leadership as it is stored.
#[derive(Clone, Copy, Debug)]
pub struct Term<'t> {
    /// The id of the worker that leads.
    pub worker: &'t str,
    /// The epoch that its writes carry.
    pub epoch: Epoch,
    /// When the term runs out unless it is renewed.
    pub until: Timestamp,
    /// Whether the leader's process or connection is known to be gone.
    pub is_vacant: bool,
}

/// What becomes of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leading {
    /// It leads already and goes on in its epoch.
    Keep(Epoch),
    /// Nobody leads: it does from now on, in a greater epoch.
    TakeOver,
    /// Somebody else leads.
    Follow,
}

/// What becomes of a candidate under the stored term. A term that has run out is over even for
/// the worker that held it: others may have acted since.
#[must_use]
pub fn lead(term: Option<&Term<'_>>, candidate: &str, now: Timestamp) -> Leading {
    match term {
        Some(term) if term.until > now && term.worker == candidate => Leading::Keep(term.epoch),
        Some(term) if term.until > now && !term.is_vacant => Leading::Follow,
        _ => Leading::TakeOver,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    #[test]
    fn a_term_is_kept_by_its_leader_and_followed_by_others_until_it_ends() {
        let now = Timestamp::EPOCH.after(Duration::from_secs(9));
        let until = now.after(Duration::from_secs(1));
        let term = Term { worker: "a", epoch: Epoch(4), until, is_vacant: false };
        assert_eq!(lead(Some(&term), "a", now), Leading::Keep(Epoch(4)));
        assert_eq!(lead(Some(&term), "b", now), Leading::Follow);
        assert_eq!(lead(Some(&term), "a", until), Leading::TakeOver);
        assert_eq!(lead(Some(&term), "b", until), Leading::TakeOver);
        assert_eq!(lead(None, "b", now), Leading::TakeOver);
    }

    #[test]
    fn a_leader_that_is_gone_is_followed_by_the_next_at_once() {
        let now = Timestamp::EPOCH;
        let until = now.after(Duration::from_secs(1));
        let term = Term { worker: "a", epoch: Epoch(4), until, is_vacant: true };
        assert_eq!(lead(Some(&term), "b", now), Leading::TakeOver);
        assert_eq!(lead(Some(&term), "a", now), Leading::Keep(Epoch(4)));
    }
}
