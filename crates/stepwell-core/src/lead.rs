//! Who leads: a term that is kept, taken over, or followed.

use core::time::Duration;

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
    /// How long it lasted from its last renewal on.
    pub ttl: Duration,
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

impl Term<'_> {
    /// Whether the term runs. One that ends in a future farther than any renewal could have set
    /// was renewed by a clock that was set back since: nobody would lead until time has caught up.
    /// Twice its span, since a candidate may have read the time before the leader renewed.
    fn runs(&self, now: Timestamp) -> bool {
        self.until > now && self.until.since(now) <= self.ttl.saturating_mul(2)
    }
}

/// What becomes of a candidate under the stored term. A term that has run out is over even for
/// the worker that held it: others may have acted since.
#[must_use]
pub fn lead(term: Option<&Term<'_>>, candidate: &str, now: Timestamp) -> Leading {
    match term {
        Some(term) if term.runs(now) && term.worker == candidate => Leading::Keep(term.epoch),
        Some(term) if term.runs(now) && !term.is_vacant => Leading::Follow,
        _ => Leading::TakeOver,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(1);

    #[test]
    fn a_term_is_kept_by_its_leader_and_followed_by_others_until_it_ends() {
        let now = Timestamp::EPOCH.after(Duration::from_secs(9));
        let until = now.after(TTL);
        let term = Term { worker: "a", epoch: Epoch(4), until, ttl: TTL, is_vacant: false };
        assert_eq!(lead(Some(&term), "a", now), Leading::Keep(Epoch(4)));
        assert_eq!(lead(Some(&term), "b", now), Leading::Follow);
        assert_eq!(lead(Some(&term), "a", until), Leading::TakeOver);
        assert_eq!(lead(Some(&term), "b", until), Leading::TakeOver);
        assert_eq!(lead(None, "b", now), Leading::TakeOver);
    }

    #[test]
    fn a_clock_that_was_set_back_does_not_prolong_a_term() {
        let now = Timestamp::EPOCH.after(Duration::from_secs(9));
        let at = |until| Term { worker: "a", epoch: Epoch(4), until, ttl: TTL, is_vacant: false };
        let read_early = at(now.after(2 * TTL));
        assert_eq!(lead(Some(&read_early), "b", now), Leading::Follow);
        let set_back = at(now.after(Duration::from_hours(1)));
        assert_eq!(lead(Some(&set_back), "b", now), Leading::TakeOver);
        assert_eq!(lead(Some(&set_back), "a", now), Leading::TakeOver);
    }

    #[test]
    fn a_leader_that_is_gone_is_followed_by_the_next_at_once() {
        let now = Timestamp::EPOCH;
        let until = now.after(TTL);
        let term = Term { worker: "a", epoch: Epoch(4), until, ttl: TTL, is_vacant: true };
        assert_eq!(lead(Some(&term), "b", now), Leading::TakeOver);
        assert_eq!(lead(Some(&term), "a", now), Leading::Keep(Epoch(4)));
    }
}
