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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_huge_delay_ends_at_the_end_of_time_and_not_in_the_past() {
        // FC5
        assert_eq!(Timestamp::EPOCH.after(Duration::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::MAX.after(Duration::from_secs(1)), Timestamp::MAX);
    }

    #[test]
    fn a_clock_that_went_back_gives_no_negative_span() {
        let later = Timestamp::from_micros(10);
        assert_eq!(Timestamp::EPOCH.since(later), Duration::ZERO);
        assert_eq!(later.since(Timestamp::EPOCH), Duration::from_micros(10));
    }
}
