//! Leases of workers: who is dead, and what becomes of the losses of its tasks.

use alloc::vec::Vec;
use core::time::Duration;

use crate::decide::is_suspect;
use crate::id::WorkerId;

/// What is known of the life of a worker that was not found dead yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Life {
    /// Whose life it is, and how often it has said that it lives.
    pub last_beat: LastBeat,
    /// How long it may be silent.
    pub lease: Duration,
    /// It said that it goes.
    pub has_left: bool,
    /// Its process is known to have ended.
    pub is_gone: bool,
}

/// A worker, and how often it had said that it lives when that was read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LastBeat {
    /// Which worker.
    pub worker: WorkerId,
    /// Its registrations and heartbeats so far.
    pub n_beats: u64,
}

/// Whether a worker is dead that was silent for so long.
#[must_use]
pub fn is_dead(life: &Life, silence: Duration) -> bool {
    life.has_left || life.is_gone || silence >= life.lease
}

/// The losses of every task a dead worker held, given what they were before.
///
/// A task that was alone is charged. Tasks lost in company are charged up to being suspects, never
/// beyond. Suspects are executed alone; if one is held beside others all the same, since workers
/// and leader go by different crash limits, it is charged alone: else nothing would ever end it.
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
    fn a_worker_is_dead_when_it_left_is_gone_or_was_silent_for_its_lease() {
        let last_beat = LastBeat { worker: WorkerId::new("w").unwrap(), n_beats: 1 };
        let lease = Duration::from_secs(30);
        let life = Life { last_beat, lease, has_left: false, is_gone: false };
        assert!(!is_dead(&life, Duration::from_secs(29)));
        assert!(is_dead(&life, Duration::from_secs(30)));
        assert!(is_dead(&Life { has_left: true, ..life.clone() }, Duration::ZERO));
        assert!(is_dead(&Life { is_gone: true, ..life }, Duration::ZERO));
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
