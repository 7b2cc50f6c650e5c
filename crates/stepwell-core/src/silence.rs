//! Silence of workers, as one process observes it.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use crate::id::WorkerId;
use crate::lease::{LastBeat, Life, is_dead};

/// For how long workers have been silent while somebody was looking, by a clock that never jumps
/// with the time of day.
///
/// Silence is what one process has observed: the same count of beats at look after look. Between
/// two looks all processes may have stood still, or nobody may have reached the store. So a gap
/// counts for a quarter of the lease at most, which leaves a live worker the time to beat, and one
/// of more than half the lease tells nothing at all: the observation begins anew.
#[derive(Clone, Debug, Default)]
pub struct SilenceWatch {
    workers: BTreeMap<WorkerId, Silence>,
}

/// The silence of one worker.
#[derive(Clone, Copy, Debug)]
struct Silence {
    n_beats: u64,
    lease: Duration,
    observed: Duration,
    /// Until when it was observed.
    until: Duration,
}

/// When workers were looked at, by a clock that never jumps with the time of day.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Before the store was asked.
    pub asked_at: Duration,
    /// When its answer was there.
    pub answered_at: Duration,
}

impl SilenceWatch {
    /// Takes note of all lives there are, and gives the last beats of those that are dead.
    pub fn look(&mut self, look: Look, lives: &[Life]) -> Vec<LastBeat> {
        let mut before = core::mem::take(&mut self.workers);
        let mut dead = Vec::new();
        for life in lives {
            let LastBeat { worker, n_beats } = &life.last_beat;
            let known = before.remove(worker).filter(|known| known.n_beats == *n_beats);
            let silence = known
                .map_or_else(|| Silence::begin(look, life), |known| known.going_on(look, life));
            if is_dead(life, silence.observed) {
                dead.push(life.last_beat.clone());
            }
            self.workers.insert(worker.clone(), silence);
        }
        dead
    }

    /// The longest pause until the next look: none that would not count as a whole.
    #[must_use]
    pub fn pause_max(&self) -> Option<Duration> {
        self.workers.values().map(|silence| counted_max(silence.lease)).min()
    }
}

impl Silence {
    fn begin(look: Look, life: &Life) -> Self {
        // The beat may have come as late as the answer.
        let (n_beats, until) = (life.last_beat.n_beats, look.answered_at);
        Self { n_beats, lease: life.lease, observed: Duration::ZERO, until }
    }

    fn going_on(self, look: Look, life: &Life) -> Self {
        let gap = look.asked_at.saturating_sub(self.until);
        if gap > life.lease / 2 {
            return Self::begin(look, life);
        }
        let observed = self.observed.saturating_add(gap.min(counted_max(life.lease)));
        let until = self.until.max(look.asked_at);
        Self { lease: life.lease, observed, until, ..self }
    }
}

/// How much of a gap between two looks counts at most.
fn counted_max(lease: Duration) -> Duration {
    lease / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = secs(30);

    const fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn life(worker: &str, n_beats: u64) -> Life {
        let worker = WorkerId::new(worker).unwrap();
        let last_beat = LastBeat { worker, n_beats };
        Life { last_beat, lease: LEASE, has_left: false, is_gone: false }
    }

    /// A look at this second, answered at once.
    fn at(n: u64) -> Look {
        Look { asked_at: secs(n), answered_at: secs(n) }
    }

    #[test]
    fn silence_is_counted_from_the_look_that_found_the_last_beat() {
        let mut watch = SilenceWatch::default();
        for second in (0..30).step_by(2) {
            assert_eq!(watch.look(at(second), &[life("w", 7)]), []);
        }
        assert_eq!(watch.look(at(30), &[life("w", 7)]), [life("w", 7).last_beat]);
        assert_eq!(watch.look(at(32), &[life("w", 8)]), [], "it beat after all");
        assert_eq!(watch.look(at(34), &[life("w", 7)]), [], "a count that went back is news");
    }

    #[test]
    fn every_worker_is_judged_by_its_own_lease() {
        let mut watch = SilenceWatch::default();
        let (long, short) = (life("long", 1), Life { lease: secs(4), ..life("short", 1) });
        let lives = [long, short];
        watch.look(at(0), &lives);
        assert_eq!(watch.pause_max(), Some(secs(1)));
        for second in 1..4 {
            assert_eq!(watch.look(at(second), &lives), []);
        }
        assert_eq!(watch.look(at(4), &lives), [lives[1].last_beat.clone()]);
    }

    #[test]
    fn a_gap_between_looks_leaves_a_live_worker_the_time_to_beat() {
        // It beats every 15 s, half of its lease, and all processes stand still right before.
        let mut watch = SilenceWatch::default();
        for second in (0..=14).step_by(2) {
            watch.look(at(second), &[life("w", 1)]);
        }
        for stands_still in [1, 7, 8, 15, 16, 600, 1_000_000] {
            let mut watch = watch.clone();
            let woken = 14 + stands_still;
            assert_eq!(watch.look(at(woken), &[life("w", 1)]), []);
            assert_eq!(watch.look(at(woken + 2), &[life("w", 1)]), [], "after {stands_still} s");
            assert_eq!(watch.look(at(woken + 4), &[life("w", 2)]), []);
        }
    }

    #[test]
    fn a_long_gap_makes_the_observation_begin_anew() {
        let mut watch = SilenceWatch::default();
        for second in (0..=28).step_by(2) {
            watch.look(at(second), &[life("w", 1)]);
        }
        watch.look(at(100), &[life("w", 1)]);
        for second in (102..130).step_by(2) {
            assert_eq!(watch.look(at(second), &[life("w", 1)]), []);
        }
        assert_eq!(watch.look(at(130), &[life("w", 1)]).len(), 1);
    }

    #[test]
    fn an_answer_that_comes_late_is_no_silence() {
        let mut watch = SilenceWatch::default();
        let slow = Look { asked_at: secs(0), answered_at: secs(5) };
        watch.look(slow, &[life("w", 1)]);
        for second in (4..35).step_by(2) {
            assert_eq!(watch.look(at(second), &[life("w", 1)]), [], "at {second} s");
        }
        assert_eq!(watch.look(at(35), &[life("w", 1)]).len(), 1);
    }

    #[test]
    fn a_worker_that_is_no_longer_listed_is_forgotten() {
        let mut watch = SilenceWatch::default();
        watch.look(at(0), &[life("w", 1)]);
        watch.look(at(2), &[]);
        assert_eq!(watch.pause_max(), None);
    }
}
