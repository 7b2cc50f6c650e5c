//! The time of a store that has no clock of its own: it goes as the machine's clock goes, and never
//! back.

use core::time::Duration;

use crate::time::Timestamp;

/// Both times of one moment, as a machine tells them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The time of day, which can be set.
    pub now: Timestamp,
    /// How long the machine has been running, which only grows.
    pub elapsed: Duration,
}

/// A time of day that moves on by so much more or less than time did has jumped.
pub const JUMP_MIN: Duration = Duration::from_secs(1);

impl Reading {
    /// Whether the time of day has jumped, ahead or back, between this moment and a later one.
    #[must_use]
    pub fn has_jumped_to(self, later: Self) -> bool {
        let expected = self.now.after(later.elapsed.saturating_sub(self.elapsed));
        later.now.since(expected).max(expected.since(later.now)) >= JUMP_MIN
    }
}

/// What a store has written down of its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenTime {
    /// The store's time.
    pub now: Timestamp,
    /// The time of day at that moment, by the clock of whoever wrote it.
    pub clock_at: Timestamp,
}

/// The time of a store, as one process knows it.
///
/// Steps ahead of the clock are followed, as a machine that was suspended makes them. Steps back
/// are not: time goes on from where it was, at the clock's pace. So a clock that once was ahead,
/// be it by years, stops nothing.
#[derive(Clone, Copy, Debug)]
pub struct StoreTime {
    now: Timestamp,
    read: Reading,
}

impl StoreTime {
    /// Goes on from what was written down last. What has passed since is told by the clock alone.
    #[must_use]
    pub fn resume(written: WrittenTime, read: Reading) -> Self {
        let passed = read.now.since(written.clock_at);
        Self { now: read.now.max(written.now.after(passed)), read }
    }

    /// Moves on to a later moment, and not behind what others have written meanwhile.
    #[must_use]
    pub fn at(self, read: Reading, written: Timestamp) -> Self {
        let by_clock = read.now.since(self.read.now);
        let elapsed = read.elapsed.saturating_sub(self.read.elapsed);
        // Less than a jump is the trembling of clocks that are kept in step.
        let passed = if by_clock >= elapsed + JUMP_MIN { by_clock } else { elapsed };
        let now = self.now.after(passed).max(read.now).max(written);
        Self { now, read }
    }

    /// The store's time.
    #[must_use]
    pub fn now(self) -> Timestamp {
        self.now
    }

    /// What to write down.
    #[must_use]
    pub fn written(self) -> WrittenTime {
        WrittenTime { now: self.now, clock_at: self.read.now }
    }

    /// Whether the clock is behind the store's time by more than a moment.
    #[must_use]
    pub fn is_clock_behind(self) -> bool {
        self.now.since(self.read.now) >= JUMP_MIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const YEAR: u64 = 365 * 86_400;

    fn at(secs: u64) -> Timestamp {
        Timestamp::EPOCH.after(Duration::from_secs(secs))
    }

    fn reading(now: u64, elapsed: u64) -> Reading {
        Reading { now: at(now), elapsed: Duration::from_secs(elapsed) }
    }

    fn fresh() -> WrittenTime {
        WrittenTime { now: Timestamp::EPOCH, clock_at: Timestamp::EPOCH }
    }

    /// Plays readings, and gives the store's time after each.
    fn play<const N: usize>(written: WrittenTime, readings: [(u64, u64); N]) -> [u64; N] {
        let mut time: Option<StoreTime> = None;
        readings.map(|(now, elapsed)| {
            let read = reading(now, elapsed);
            let next = time.map_or_else(
                || StoreTime::resume(written, read),
                |time| time.at(read, Timestamp::EPOCH),
            );
            time = Some(next);
            next.now().since(Timestamp::EPOCH).as_secs()
        })
    }

    #[test]
    fn a_time_of_day_that_moves_apart_from_time_has_jumped() {
        let last = reading(50_000, 10_000);
        assert!(!last.has_jumped_to(reading(50_001, 10_001)), "time went on");
        assert!(!last.has_jumped_to(reading(50_600, 10_600)), "nobody looked for long");
        assert!(last.has_jumped_to(reading(50_009, 10_001)), "the machine was suspended");
        assert!(last.has_jumped_to(reading(49_000, 10_001)), "the clock was set back");
    }

    #[test]
    fn time_goes_as_the_clock_goes() {
        assert_eq!(play(fresh(), [(1_000, 5), (1_010, 15), (1_011, 16)]), [1_000, 1_010, 1_011]);
        assert_eq!(play(fresh(), [(1_000, 5), (9_000, 6), (9_001, 7)]), [1_000, 9_000, 9_001]);
    }

    #[test]
    fn a_clock_that_once_was_ahead_does_not_stop_time() {
        // By years, for ten seconds.
        let ahead = 1_000 + 10 * YEAR;
        let readings = [(1_000, 0), (ahead, 1), (ahead + 9, 10), (1_011, 11), (1_071, 71)];
        assert_eq!(play(fresh(), readings), [1_000, ahead, ahead + 9, ahead + 10, ahead + 70]);
    }

    #[test]
    fn a_suspended_machine_counts_also_while_its_clock_is_behind() {
        let readings = [(5_000, 0), (1_000, 10), (1_000 + 28_800, 11)];
        assert_eq!(play(fresh(), readings), [5_000, 5_010, 5_010 + 28_800]);
        let set_back_unseen = [(5_000, 0), (5_100, 3_600)];
        assert_eq!(play(fresh(), set_back_unseen), [5_000, 8_600]);
    }

    #[test]
    fn a_clock_that_trembles_does_not_drive_time_ahead() {
        let mut time = StoreTime::resume(fresh(), reading(1_000, 0));
        for n in 0..1_000_u64 {
            let millis = if n % 2 == 0 { 900 } else { 0 };
            let now = at(1_000 + n).after(Duration::from_millis(millis));
            let read = Reading { now, elapsed: Duration::from_secs(n) };
            time = time.at(read, Timestamp::EPOCH);
        }
        assert!(time.now() <= at(2_001), "{}", time.now());
    }

    #[test]
    fn time_goes_on_from_what_was_written_at_the_clocks_pace() {
        let written = WrittenTime { now: at(9_000), clock_at: at(1_000) };
        assert_eq!(play(written, [(1_600, 0), (1_610, 10)]), [9_600, 9_610], "closed for a while");
        assert_eq!(play(written, [(500, 0), (510, 10)]), [9_000, 9_010], "and set back meanwhile");
        assert!(StoreTime::resume(written, reading(1_600, 0)).is_clock_behind());
        let right = WrittenTime { now: at(1_000), clock_at: at(1_000) };
        assert_eq!(play(right, [(1_600, 0)]), [1_600]);
        assert!(!StoreTime::resume(right, reading(1_600, 0)).is_clock_behind());
    }

    #[test]
    fn time_is_never_behind_what_others_have_written() {
        let time = StoreTime::resume(fresh(), reading(1_000, 0));
        let time = time.at(reading(1_001, 1), at(3_000));
        assert_eq!(time.now(), at(3_000));
        assert_eq!(time.at(reading(1_002, 2), at(3_000)).now(), at(3_001));
    }
}
