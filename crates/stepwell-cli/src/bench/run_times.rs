//! When runs were started and when their steps were executed, written down by the steps
//! themselves without a lock.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::measure;
use super::progress::Progress;
use crate::commands::Failure;

/// Without any progress for this long, something is broken.
const STILL_MAX: Duration = Duration::from_mins(2);

/// How often to look how far things are. The end is seen at once when `n_ended` says so.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);

/// The times of many runs, in nanoseconds since this was made; 0 for not yet.
pub(super) struct RunTimes {
    epoch: Instant,
    starts: Vec<AtomicU64>,
    marks: Vec<AtomicU64>,
    n_marks: usize,
    n_ended: AtomicUsize,
    n_repeated: AtomicUsize,
    n_others: AtomicUsize,
}

impl RunTimes {
    /// For runs that make this many marks each; the last one is their end.
    pub(super) fn new(n_runs: usize, n_marks: usize) -> Self {
        let zeros = |n: usize| (0..n).map(|_| AtomicU64::new(0)).collect();
        Self {
            epoch: measure::now(),
            starts: zeros(n_runs),
            marks: zeros(n_runs * n_marks),
            n_marks,
            n_ended: AtomicUsize::new(0),
            n_repeated: AtomicUsize::new(0),
            n_others: AtomicUsize::new(0),
        }
    }

    pub(super) fn n_runs(&self) -> usize {
        self.starts.len()
    }

    fn elapsed(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX).max(1)
    }

    /// The run is about to be started.
    pub(super) fn start(&self, run: usize) {
        if let Some(start) = self.starts.get(run) {
            start.store(self.elapsed(), Ordering::Relaxed);
        }
    }

    /// A step of the run is executed. Runs without a place here are only counted.
    pub(super) fn mark(&self, run: usize, mark: usize) {
        if run >= self.n_runs() {
            self.n_others.fetch_add(1, Ordering::Release);
            return;
        }
        let before = self.marks[run * self.n_marks + mark].swap(self.elapsed(), Ordering::Relaxed);
        if before != 0 {
            self.n_repeated.fetch_add(1, Ordering::Relaxed);
        } else if mark + 1 == self.n_marks {
            self.n_ended.fetch_add(1, Ordering::Release);
        }
    }

    /// The last step of the run is executed.
    pub(super) fn end(&self, run: usize) {
        self.mark(run, self.n_marks - 1);
    }

    pub(super) fn n_ended(&self) -> usize {
        self.n_ended.load(Ordering::Acquire)
    }

    /// How many steps were executed of runs that have no place here.
    pub(super) fn n_others(&self) -> usize {
        self.n_others.load(Ordering::Acquire)
    }

    /// Waits until the last steps of this many runs were executed.
    pub(super) async fn ended(&self, n_runs: usize, progress: &Progress) -> Result<(), Failure> {
        let (mut n_seen, mut seen_at) = (0, measure::now());
        loop {
            let n_ended = self.n_ended();
            progress.set(n_ended);
            if n_ended >= n_runs {
                return self.check_once();
            }
            if n_ended > n_seen {
                (n_seen, seen_at) = (n_ended, measure::now());
            } else if seen_at.elapsed() > STILL_MAX {
                let message = format!("{n_ended} of {n_runs} runs came to their last step");
                return Err(Failure::Unexpected(format!(
                    "{message}, and no more for {STILL_MAX:?}"
                )));
            }
            measure::pause(LOOK_INTERVAL).await;
        }
    }

    fn check_once(&self) -> Result<(), Failure> {
        match self.n_repeated.load(Ordering::Relaxed) {
            0 => Ok(()),
            n => Err(Failure::Unexpected(format!("{n} steps were executed twice"))),
        }
    }

    /// From the start of each run to this mark, in microseconds.
    pub(super) fn since_start(&self, mark: usize) -> Vec<u64> {
        let span = |run: usize| between(self.started(run)?, self.marked(run, mark)?);
        (0..self.n_runs()).filter_map(span).collect()
    }

    /// From the start of this run to its first mark, in microseconds.
    pub(super) fn waited(&self, run: usize) -> Option<u64> {
        between(self.started(run)?, self.marked(run, 0)?)
    }

    /// From each mark to the next one, in microseconds.
    pub(super) fn between_marks(&self) -> Vec<u64> {
        let span =
            |run: usize, mark: usize| between(self.marked(run, mark)?, self.marked(run, mark + 1)?);
        let of_run = |run| (0..self.n_marks - 1).filter_map(move |mark| span(run, mark));
        (0..self.n_runs()).flat_map(of_run).collect()
    }

    /// The moment of a mark, in microseconds since this was made.
    pub(super) fn marked_at(&self, run: usize, mark: usize) -> Option<u64> {
        self.marked(run, mark).map(|nanos| nanos / 1_000)
    }

    /// Now, in microseconds since this was made.
    pub(super) fn now(&self) -> u64 {
        self.elapsed() / 1_000
    }

    fn started(&self, run: usize) -> Option<u64> {
        Some(self.starts[run].load(Ordering::Relaxed)).filter(|nanos| *nanos > 0)
    }

    fn marked(&self, run: usize, mark: usize) -> Option<u64> {
        let nanos = self.marks[run * self.n_marks + mark].load(Ordering::Relaxed);
        Some(nanos).filter(|nanos| *nanos > 0)
    }
}

/// From one moment to another, in microseconds.
fn between(earlier: u64, later: u64) -> Option<u64> {
    later.checked_sub(earlier).map(|nanos| nanos / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_is_executed_twice_is_noticed() {
        let times = RunTimes::new(2, 2);
        times.mark(0, 0);
        times.mark(0, 1);
        assert_eq!(times.n_ended(), 1);
        assert!(times.check_once().is_ok());
        times.end(0);
        assert_eq!(times.n_ended(), 1);
        assert!(times.check_once().is_err());
    }

    #[test]
    fn spans_are_of_what_was_marked() {
        let times = RunTimes::new(3, 2);
        times.start(0);
        times.mark(0, 0);
        times.mark(0, 1);
        times.start(1);
        assert_eq!((times.since_start(1).len(), times.between_marks().len()), (1, 1));
    }
}
