//! Leases of workers: who is dead, and what becomes of the losses of its tasks.

use alloc::vec::Vec;
use core::time::Duration;

use crate::decide::is_suspect;
use crate::time::Timestamp;

/// What is known of the life of a worker that was not found dead yet.
#[derive(Clone, Copy, Debug)]
pub struct Life {
    /// When it was last heard of.
    pub seen_at: Timestamp,
    /// How long it may be silent.
    pub lease: Duration,
    /// It said that it goes.
    pub has_left: bool,
    /// Its process is known to have ended.
    pub is_gone: bool,
}

/// Whether a worker is dead. Its silence counts only for a leader that `judges_silence`: one
/// that was itself in contact with the store for long enough.
#[must_use]
pub fn is_dead(life: &Life, now: Timestamp, judges_silence: bool) -> bool {
    let is_silent = now.since(life.seen_at) > life.lease;
    life.has_left || life.is_gone || (judges_silence && is_silent)
}

/// The losses of every task a dead worker held, given what they were before.
///
/// A suspect is charged alone. A task that was alone is charged. Tasks lost in company are
/// charged up to being suspects, never beyond.
#[must_use]
pub fn losses_after(losses: &[u32], crash_limit: u32) -> Vec<u32> {
    if let Some(suspect) = losses.iter().position(|n| is_suspect(*n, crash_limit)) {
        let charged = |(ix, n): (usize, &u32)| if ix == suspect { n + 1 } else { *n };
        return losses.iter().enumerate().map(charged).collect();
    }
    if let [alone] = losses {
        return alloc::vec![alone + 1];
    }
    losses.iter().map(|n| (n + 1).min(crash_limit.saturating_sub(1))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_dead_when_it_left_is_gone_or_was_silent_for_longer_than_its_lease() {
        let seen_at = Timestamp::EPOCH;
        let lease = Duration::from_secs(30);
        let life = Life { seen_at, lease, has_left: false, is_gone: false };
        let at = |secs| seen_at.after(Duration::from_secs(secs));
        assert!(!is_dead(&life, at(30), true));
        assert!(is_dead(&life, at(31), true));
        assert!(!is_dead(&life, at(31), false));
        assert!(is_dead(&Life { has_left: true, ..life }, at(0), false));
        assert!(is_dead(&Life { is_gone: true, ..life }, at(0), false));
    }

    #[test]
    fn tasks_lost_in_company_become_suspects_and_no_more() {
        // R14, FA10
        assert_eq!(losses_after(&[0, 1, 0], 3), [1, 2, 1]);
        assert_eq!(losses_after(&[0, 0], 2), [1, 1]);
    }

    #[test]
    fn a_suspect_is_charged_alone() {
        // R14, FA10
        assert_eq!(losses_after(&[0, 2, 1], 3), [0, 3, 1]);
    }

    #[test]
    fn a_task_lost_alone_is_charged() {
        assert_eq!(losses_after(&[0], 3), [1]);
        assert_eq!(losses_after(&[2], 3), [3]);
        assert!(losses_after(&[], 3).is_empty());
    }
}
