use std::time::{Duration, Instant, SystemTime};

use stepwell_core::time::Timestamp;

use crate::ports::{BoxFuture, Clock};

/// A time of day that moves on by so much more or less than time did has jumped.
const JUMP_MIN: Duration = Duration::from_secs(1);

/// The machine's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemClock {
    started: Instant,
}

impl SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the leaf that reads the clock")]
    pub(crate) fn new() -> Self {
        Self { started: Instant::now() }
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the leaf that reads the clock")]
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Timestamp::EPOCH.after(since_epoch.unwrap_or_default())
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    #[expect(clippy::disallowed_methods, reason = "this is the leaf that waits")]
    fn sleep(&self, span: Duration) -> BoxFuture<()> {
        Box::pin(tokio::time::sleep(span))
    }

    fn jumped(&self) -> BoxFuture<()> {
        let clock = *self;
        Box::pin(async move {
            let mut last = Reading::of(&clock);
            loop {
                clock.sleep(JUMP_MIN).await;
                let next = Reading::of(&clock);
                if last.has_jumped_to(next) {
                    return;
                }
                last = next;
            }
        })
    }
}

/// Both times of one moment.
#[derive(Clone, Copy)]
struct Reading {
    now: Timestamp,
    elapsed: Duration,
}

impl Reading {
    fn of(clock: &SystemClock) -> Self {
        Self { now: clock.now(), elapsed: clock.elapsed() }
    }

    fn has_jumped_to(self, next: Self) -> bool {
        let expected = self.now.after(next.elapsed.saturating_sub(self.elapsed));
        let apart = next.now.since(expected).max(expected.since(next.now));
        apart >= JUMP_MIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_day_that_moves_apart_from_time_has_jumped() {
        let at = |now: u64, elapsed: u64| Reading {
            now: Timestamp::EPOCH.after(Duration::from_millis(now)),
            elapsed: Duration::from_millis(elapsed),
        };
        let last = at(50_000, 10_000);
        assert!(!last.has_jumped_to(at(51_000, 11_000)), "time went on");
        assert!(!last.has_jumped_to(at(650_000, 610_000)), "nobody looked for long");
        assert!(!last.has_jumped_to(at(51_300, 11_000)), "the clock was set a little");
        assert!(last.has_jumped_to(at(60_000, 11_000)), "the machine was suspended");
        assert!(last.has_jumped_to(at(40_000, 11_000)), "the clock was set back");
    }
}
