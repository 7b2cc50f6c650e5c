//! A clock of a process that can be made to jump, as those of machines that are suspended, set by
//! hand or brought back into step.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use stepwell::core::store_time::JUMP_MIN;
use stepwell::core::time::Timestamp;
use stepwell::ports::{BoxFuture, Clock};

use crate::chance::Chance;
use crate::real_time::{now_micros, pause};

/// By how much the two times of a clock jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jump {
    /// The time of day, ahead or back.
    pub now_millis: i64,
    /// The time since the start, which only goes ahead.
    pub elapsed_millis: u64,
}

const MINUTE: i64 = 60_000;
const DAY: i64 = 24 * 60 * MINUTE;

/// Times of day jump by up to so many milliseconds: somewhat more or less than a lease, and hours,
/// and years.
const NOW_MAX: [i64; 6] = [2_000, 10_000, MINUTE, 60 * MINUTE, DAY, 400 * DAY];

/// The time since the start jumps by up to this, as if the process had been frozen.
const ELAPSED_MAX: u64 = 6_000;

impl Jump {
    /// A jump by chance: mostly of the time of day, more often ahead than back.
    pub fn any(chance: &mut Chance) -> Self {
        let max = NOW_MAX[chance.below(NOW_MAX.len())];
        let span = 1 + i64::try_from(chance.next() % max.unsigned_abs()).unwrap_or(0);
        let now_millis = if chance.one_in(3) { -span } else { span };
        let elapsed_millis = if chance.one_in(3) { chance.next() % ELAPSED_MAX } else { 0 };
        Self { now_millis, elapsed_millis }
    }
}

/// The machine's clock, and how far it is off by now. Clones share it.
#[derive(Clone, Debug)]
pub struct JumpingClock(Arc<Off>);

#[derive(Debug)]
struct Off {
    started: Instant,
    now_off_micros: AtomicI64,
    elapsed_off_millis: AtomicU64,
}

impl JumpingClock {
    /// A clock that is right.
    #[expect(clippy::disallowed_methods, reason = "it stands for the machine's clock")]
    #[must_use]
    pub fn new() -> Self {
        let (now_off_micros, elapsed_off_millis) = Default::default();
        Self(Arc::new(Off { started: Instant::now(), now_off_micros, elapsed_off_millis }))
    }

    /// Jumps, from wherever it is.
    pub fn jump(&self, jump: Jump) {
        let micros = jump.now_millis.saturating_mul(1_000);
        self.0.now_off_micros.fetch_add(micros, Ordering::Relaxed);
        self.0.elapsed_off_millis.fetch_add(jump.elapsed_millis, Ordering::Relaxed);
    }
}

impl Default for JumpingClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for JumpingClock {
    fn now(&self) -> Timestamp {
        let off = self.0.now_off_micros.load(Ordering::Relaxed);
        Timestamp::from_micros(now_micros().saturating_add(off).max(0))
    }

    fn elapsed(&self) -> Duration {
        let off = self.0.elapsed_off_millis.load(Ordering::Relaxed);
        self.0.started.elapsed() + Duration::from_millis(off)
    }

    fn sleep(&self, span: Duration) -> BoxFuture<()> {
        Box::pin(pause(span))
    }

    fn jumped(&self) -> BoxFuture<()> {
        let clock = self.clone();
        Box::pin(async move {
            let mut last = clock.read();
            loop {
                pause(JUMP_MIN).await;
                let next = clock.read();
                if last.has_jumped_to(next) {
                    return;
                }
                last = next;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_a_clock_jump_apart() {
        let clock = JumpingClock::new();
        let before = clock.read();
        clock.jump(Jump { now_millis: -5_000, elapsed_millis: 0 });
        let back = clock.read();
        assert!(before.has_jumped_to(back) && back.now < before.now);
        clock.jump(Jump { now_millis: DAY, elapsed_millis: 3_000 });
        let ahead = clock.read();
        assert!(back.has_jumped_to(ahead) && ahead.now > before.now);
        assert!(ahead.elapsed >= before.elapsed + Duration::from_secs(3));
    }

    #[test]
    fn jumps_by_chance_go_both_ways() {
        let mut chance = Chance::new(1);
        let jumps: Vec<Jump> = (0..200).map(|_| Jump::any(&mut chance)).collect();
        assert!(jumps.iter().any(|jump| jump.now_millis > DAY));
        assert!(jumps.iter().any(|jump| jump.now_millis < -DAY));
        assert!(jumps.iter().any(|jump| jump.elapsed_millis > 2_500));
        assert!(jumps.iter().all(|jump| jump.elapsed_millis < ELAPSED_MAX));
    }
}
