//! Trials: spans in which a worker executes suspects, one at a time and nothing beside them.
//!
//! A suspect that shared its worker could be charged for what another task did. So a worker that
//! meets one asks for a trial, claims nothing more, lets what it executes end, and then takes
//! suspects with empty hands. Here stands who may hold a trial, how long it lasts and when the next
//! one may begin; which tasks are suspects is told by [`is_suspect`].

use core::time::Duration;

use crate::decide::is_suspect;

/// How long a worker waits for what it executes to end. After that it goes on as before.
pub const EMPTYING_MAX: Duration = Duration::from_secs(10);

/// How long a trial takes suspects at least, if there are any; longer after a long wait for empty
/// hands, which would not pay otherwise.
const TAKING_MIN: Duration = Duration::from_secs(1);

/// How long a worker that may not hold a trial, or found nothing to execute in one, does not ask
/// for another.
const ASKING_PAUSE: Duration = Duration::from_secs(1);

/// One worker in so many may hold a trial.
const WORKERS_PER_TRIAL: usize = 4;

/// The live workers that serve the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crew {
    /// How many there are, the one who asks included.
    pub n_workers: usize,
    /// How many of the others hold a trial.
    pub n_in_trial: usize,
}

/// Whether a worker may begin a trial that belongs to these crews: in each of them one worker in
/// four may hold one at a time, and one in any case.
#[must_use]
pub fn may_begin(crews: &[Crew]) -> bool {
    let has_room = |crew: &Crew| crew.n_in_trial < (crew.n_workers / WORKERS_PER_TRIAL).max(1);
    crews.iter().all(has_room)
}

/// Whether a worker that holds tasks with these losses may get others: not beside a suspect, also
/// if it does not know that it holds one, since the reply that told it was lost.
#[must_use]
pub fn may_serve_others(losses: impl IntoIterator<Item = u32>, crash_limit: u32) -> bool {
    !losses.into_iter().any(|n| is_suspect(n, crash_limit))
}

/// One trial, in moments of the worker's monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    began_at: Duration,
    emptied_at: Duration,
    n_taken: usize,
}

impl Trial {
    /// A worker stops claiming other tasks.
    #[must_use]
    pub const fn begin(now: Duration) -> Self {
        Self { began_at: now, emptied_at: now, n_taken: 0 }
    }

    /// Its hands are empty.
    pub fn emptied(&mut self, now: Duration) {
        self.emptied_at = now;
    }

    /// It took a suspect.
    pub fn took(&mut self) {
        self.n_taken += 1;
    }

    /// Whether it may take another suspect: there is time for one in any case, and then for as long
    /// as the wait for empty hands took.
    #[must_use]
    pub fn goes_on(&self, now: Duration) -> bool {
        let taking_max = self.emptied_at.saturating_sub(self.began_at).max(TAKING_MIN);
        self.n_taken == 0 || now.saturating_sub(self.emptied_at) < taking_max
    }
}

/// When a worker may hold its next trial.
#[derive(Clone, Copy, Debug, Default)]
pub struct TrialTimes {
    /// Until then it serves the others.
    serves_until: Duration,
    /// Until then it does not ask.
    asks_from: Duration,
}

impl TrialTimes {
    /// Whether a worker that has met a suspect asks for a trial.
    #[must_use]
    pub fn may_ask(&self, now: Duration) -> bool {
        self.pause(now).is_zero()
    }

    /// How long it does not ask for one.
    #[must_use]
    pub fn pause(&self, now: Duration) -> Duration {
        self.serves_until.max(self.asks_from).saturating_sub(now)
    }

    /// It may not hold a trial now.
    pub fn refused(&mut self, now: Duration) {
        self.asks_from = now.saturating_add(ASKING_PAUSE);
    }

    /// A trial has ended. The others are served for as long as they had to wait.
    pub fn ended(&mut self, trial: &Trial, now: Duration) {
        self.serves_until = now.saturating_add(now.saturating_sub(trial.began_at));
        if trial.n_taken == 0 {
            self.refused(now);
        }
    }

    /// Nobody else waits for this worker, and it executes nothing: there is nobody to be served
    /// before suspects.
    pub fn others_are_served(&mut self) {
        self.serves_until = Duration::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn crew(n_workers: usize, n_in_trial: usize) -> Crew {
        Crew { n_workers, n_in_trial }
    }

    #[test]
    fn one_worker_in_four_may_hold_a_trial_and_one_in_any_case() {
        // R14
        for (n_workers, n_max) in [(1, 1), (2, 1), (3, 1), (4, 1), (7, 1), (8, 2), (15, 3)] {
            assert!(may_begin(&[crew(n_workers, n_max - 1)]), "{n_workers} workers");
            assert!(!may_begin(&[crew(n_workers, n_max)]), "{n_workers} workers");
        }
    }

    #[test]
    fn beside_a_suspect_a_worker_gets_nothing() {
        // R14, FA10
        assert!(may_serve_others([], 3));
        assert!(may_serve_others([0, 1], 3));
        assert!(!may_serve_others([2], 3));
    }

    #[test]
    fn every_crew_of_a_worker_must_have_room() {
        // R14
        assert!(may_begin(&[crew(9, 1), crew(2, 0)]));
        assert!(!may_begin(&[crew(9, 1), crew(2, 1)]));
        assert!(may_begin(&[]));
    }

    #[test]
    fn a_trial_takes_suspects_for_a_second_or_as_long_as_it_waited_for_empty_hands() {
        // R14
        let mut trial = Trial::begin(secs(100));
        trial.emptied(secs(100));
        trial.took();
        assert!(trial.goes_on(secs(100)));
        assert!(!trial.goes_on(secs(101)));
        let mut trial = Trial::begin(secs(100));
        trial.emptied(secs(108));
        trial.took();
        assert!(trial.goes_on(secs(115)));
        assert!(!trial.goes_on(secs(116)));
    }

    #[test]
    fn a_trial_takes_one_suspect_in_any_case() {
        // R14
        let mut trial = Trial::begin(secs(0));
        trial.emptied(secs(1));
        assert!(trial.goes_on(secs(60)));
        trial.took();
        assert!(!trial.goes_on(secs(60)));
    }

    #[test]
    fn the_others_are_served_for_as_long_as_a_trial_took() {
        // R14
        let mut times = TrialTimes::default();
        assert!(times.may_ask(secs(0)));
        let mut trial = Trial::begin(secs(100));
        trial.emptied(secs(105));
        trial.took();
        times.ended(&trial, secs(130));
        assert_eq!(times.pause(secs(135)), secs(25));
        assert!(!times.may_ask(secs(159)));
        assert!(times.may_ask(secs(160)));
    }

    #[test]
    fn a_worker_whose_hands_did_not_empty_goes_on_for_as_long_as_it_waited() {
        // R14
        let mut times = TrialTimes::default();
        let trial = Trial::begin(secs(100));
        times.ended(&trial, secs(100) + EMPTYING_MAX);
        assert!(!times.may_ask(secs(119)));
        assert!(times.may_ask(secs(120)));
    }

    #[test]
    fn if_nobody_else_waits_the_next_trial_begins_at_once() {
        // R14
        let mut times = TrialTimes::default();
        let mut trial = Trial::begin(secs(0));
        trial.took();
        times.ended(&trial, secs(3_600));
        times.others_are_served();
        assert!(times.may_ask(secs(3_600)));
    }

    #[test]
    fn who_is_refused_or_finds_nothing_does_not_ask_again_at_once() {
        // R14
        let mut times = TrialTimes::default();
        times.refused(secs(5));
        times.others_are_served();
        assert!(!times.may_ask(secs(5)));
        assert!(times.may_ask(secs(6)));
        let mut times = TrialTimes::default();
        times.ended(&Trial::begin(secs(5)), secs(5));
        times.others_are_served();
        assert!(!times.may_ask(secs(5)));
        assert!(times.may_ask(secs(6)));
    }
}
