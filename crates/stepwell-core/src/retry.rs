//! Retry arithmetic: how long to wait before a failed step is tried again.
//!
//! `delay(n) = min(initial * factor^(n-1), cap)` for the n-th failure. The factor is kept in
//! thousandths so that policies can be compared and stored exactly.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::failure::RetryAdvice;
use crate::limits::{RETRIES_MAX, SPAN_MAX};

/// When and how often a failed step is tried again.
///
/// The default is not to retry at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Retry {
    /// Retries after the first execution; 0 means the first failure is final.
    pub retries_max: u32,
    /// Delay before the first retry.
    pub initial: Duration,
    /// What each further delay is multiplied by, in thousandths.
    pub factor_milli: u32,
    /// Longest delay.
    pub cap: Duration,
    /// Whether delays are spread between half and all of their length.
    pub jitter: bool,
}

impl Default for Retry {
    fn default() -> Self {
        Self::never()
    }
}

impl Retry {
    /// No retries: the first failure is final.
    #[must_use]
    pub const fn never() -> Self {
        Self::exponential(0)
    }

    /// `retries_max` retries, 1 s before the first, doubling up to 60 s.
    #[must_use]
    pub const fn exponential(retries_max: u32) -> Self {
        Self {
            retries_max,
            initial: Duration::from_secs(1),
            factor_milli: 2_000,
            cap: Duration::from_mins(1),
            jitter: false,
        }
    }

    /// `retries_max` retries with the same `delay` before each.
    #[must_use]
    pub const fn fixed(retries_max: u32, delay: Duration) -> Self {
        Self { retries_max, initial: delay, factor_milli: 1_000, cap: delay, jitter: false }
    }

    /// With another delay before the first retry.
    #[must_use]
    pub const fn initial(mut self, initial: Duration) -> Self {
        self.initial = initial;
        self
    }

    /// With another factor between delays, kept to three decimals.
    #[must_use]
    pub fn factor(mut self, factor: f64) -> Self {
        let milli = factor * 1_000.0 + 0.5;
        self.factor_milli = if milli >= f64::from(u32::MAX) {
            u32::MAX
        } else {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a float cast saturates, and `check` refuses factors below one"
            )]
            let milli = milli as u32;
            milli
        };
        self
    }

    /// With another longest delay.
    #[must_use]
    pub const fn cap(mut self, cap: Duration) -> Self {
        self.cap = cap;
        self
    }

    /// With delays spread at random between half and all of their length. Recommended wherever
    /// many steps may fail together, so that they do not come back together.
    #[must_use]
    pub const fn jitter(mut self) -> Self {
        self.jitter = true;
        self
    }

    /// What is wrong with this policy, if anything.
    ///
    /// # Errors
    /// With the field and its remedy in words.
    pub fn check(&self) -> Result<(), &'static str> {
        if self.retries_max > RETRIES_MAX {
            return Err("retries_max is over 1,000,000");
        }
        if self.factor_milli < 1_000 {
            return Err("factor is below 1, delays would shrink");
        }
        if self.initial > SPAN_MAX || self.cap > SPAN_MAX {
            return Err("a delay is longer than a hundred years");
        }
        Ok(())
    }

    /// The delay after the `n`-th failure (counted from 1), before jitter and without regard to
    /// the number of retries.
    #[must_use]
    pub fn delay(&self, n: u32) -> Duration {
        let cap = self.cap.as_nanos();
        let mut nanos = self.initial.as_nanos().min(cap);
        if self.factor_milli > 1_000 && nanos > 0 {
            for _ in 1..n {
                if nanos >= cap {
                    break;
                }
                // Rounded up: a tiny delay must keep growing instead of standing still.
                nanos = (nanos * u128::from(self.factor_milli)).div_ceil(1_000).min(cap);
            }
        }
        duration_from_nanos(nanos)
    }

    /// The delay before the next execution after `failures` failures, or `None` if the last one
    /// was final. `chance` is a uniformly random number; it only matters with jitter.
    #[must_use]
    pub fn delay_after(&self, failures: u32, advice: RetryAdvice, chance: u32) -> Option<Duration> {
        if failures > self.retries_max {
            return None;
        }
        match advice {
            RetryAdvice::Never => None,
            RetryAdvice::After(delay) => Some(delay.min(SPAN_MAX)),
            RetryAdvice::ByPolicy => Some(self.jittered(self.delay(failures), chance)),
        }
    }

    fn jittered(&self, delay: Duration, chance: u32) -> Duration {
        if !self.jitter {
            return delay;
        }
        let half = delay.as_nanos() / 2;
        duration_from_nanos(half + ((half * u128::from(chance)) >> 32))
    }
}

fn duration_from_nanos(nanos: u128) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn secs(delays: impl IntoIterator<Item = Duration>) -> Vec<u64> {
        delays.into_iter().map(|d| d.as_secs()).collect()
    }

    #[test]
    fn delays_double_from_one_second_and_stop_at_the_cap() {
        // R11
        let retry = Retry::exponential(10);
        assert_eq!(secs((1..=8).map(|n| retry.delay(n))), [1, 2, 4, 8, 16, 32, 60, 60]);
    }

    #[test]
    fn the_first_failure_is_final_by_default() {
        assert_eq!(Retry::default().delay_after(1, RetryAdvice::ByPolicy, 0), None);
    }

    #[test]
    fn retries_end_after_the_maximum() {
        let retry = Retry::exponential(2);
        assert!(retry.delay_after(2, RetryAdvice::ByPolicy, 0).is_some());
        assert_eq!(retry.delay_after(3, RetryAdvice::ByPolicy, 0), None);
    }

    #[test]
    fn advice_overrules_the_delay_but_not_the_maximum() {
        let retry = Retry::exponential(1);
        let after = RetryAdvice::After(Duration::from_secs(7));
        assert_eq!(retry.delay_after(1, after, 0), Some(Duration::from_secs(7)));
        assert_eq!(retry.delay_after(2, after, 0), None);
        assert_eq!(retry.delay_after(1, RetryAdvice::Never, 0), None);
    }

    #[test]
    fn absurd_policies_are_refused() {
        assert!(Retry::exponential(3).factor(0.5).check().is_err());
        assert!(Retry::exponential(3).factor(f64::NAN).check().is_err());
        assert!(Retry::exponential(u32::MAX).check().is_err());
        assert!(Retry::fixed(1, Duration::MAX).check().is_err());
        assert!(Retry::exponential(3).factor(1.5).check().is_ok());
    }

    proptest! {
        #[test]
        fn delays_never_shrink_and_never_pass_the_cap(
            initial in 0u64..u64::MAX, factor in 1_000u32.., cap in 0u64.., n in 1u32..2_000,
        ) {
            // FC5
            let retry = Retry {
                retries_max: u32::MAX,
                initial: Duration::from_nanos(initial),
                factor_milli: factor,
                cap: Duration::from_nanos(cap),
                jitter: false,
            };
            prop_assert!(retry.delay(n) <= retry.cap);
            prop_assert!(retry.delay(n) <= retry.delay(n + 1));
        }

        #[test]
        fn jitter_keeps_between_half_and_the_whole_delay(chance: u32, n in 1u32..20) {
            let retry = Retry::exponential(20).jitter();
            let delay = retry.delay_after(n, RetryAdvice::ByPolicy, chance).unwrap();
            prop_assert!(delay >= retry.delay(n) / 2 && delay <= retry.delay(n));
        }
    }
}
