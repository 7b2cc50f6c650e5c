//! Moments as the stores keep them: microseconds since 1970-01-01 UTC.
//!
//! All arithmetic saturates. A huge delay ends at the end of time instead of wrapping into the
//! past, where it would fire at once.

use core::fmt;
use core::time::Duration;

use serde::{Deserialize, Serialize};

/// A moment of the store's time, in microseconds since the Unix epoch.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The Unix epoch.
    pub const EPOCH: Self = Self(0);
    /// The last moment that can be written down.
    pub const MAX: Self = Self(i64::MAX);

    /// The moment `micros` microseconds after the epoch.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the epoch.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// This moment moved on by `span`, at most to [`Timestamp::MAX`].
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        let micros = i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(micros))
    }

    /// The moment as people write it, in UTC, as in `2026-01-01 12:00:00.000000`.
    #[must_use]
    pub fn utc(self) -> impl fmt::Display {
        Utc(self)
    }

    /// How long ago `earlier` was; zero if it lies in the future.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        let micros = self.0.saturating_sub(earlier.0).max(0);
        Duration::from_micros(micros.unsigned_abs())
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0.div_euclid(1_000_000), self.0.rem_euclid(1_000_000))
    }
}

/// A moment as people write it.
struct Utc(Timestamp);

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.0;
        let (secs, micros) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
        let (days, secs) = (secs.div_euclid(86_400), secs.rem_euclid(86_400));
        // Years begin in March, so that the day of a leap year is the last one.
        let days = days + 719_468;
        let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let day = day - (153 * month + 2) / 5 + 1;
        let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
        let year = era * 400 + year + next;
        let (hour, minute, second) = (secs / 3_600, secs / 60 % 60, secs % 60);
        write!(f, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{micros:06}")
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn a_huge_delay_ends_at_the_end_of_time_and_not_in_the_past() {
        // FC5
        assert_eq!(Timestamp::EPOCH.after(Duration::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::MAX.after(Duration::from_secs(1)), Timestamp::MAX);
    }

    #[test]
    fn moments_are_written_as_dates() {
        let written = |secs: i64, micros: i64| {
            Timestamp::from_micros(secs * 1_000_000 + micros).utc().to_string()
        };
        assert_eq!(written(0, 0), "1970-01-01 00:00:00.000000");
        assert_eq!(written(1_767_225_600, 25), "2026-01-01 00:00:00.000025");
        assert_eq!(written(951_827_696, 0), "2000-02-29 12:34:56.000000");
        assert_eq!(written(4_102_444_799, 999_999), "2099-12-31 23:59:59.999999");
        assert_eq!(written(-1, 0), "1969-12-31 23:59:59.000000");
    }

    #[test]
    fn a_clock_that_went_back_gives_no_negative_span() {
        let later = Timestamp::from_micros(10);
        assert_eq!(Timestamp::EPOCH.since(later), Duration::ZERO);
        assert_eq!(later.since(Timestamp::EPOCH), Duration::from_micros(10));
    }
}
