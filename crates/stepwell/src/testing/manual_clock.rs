//! A clock that stands still until it is told to move.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use stepwell_core::time::Timestamp;

use super::waits::inner_waker;
use crate::ports::{BoxFuture, Clock};

/// Virtual time. Clones share one clock, which begins at 2026-01-01 00:00 UTC and moves only by
/// [`ManualClock::advance`] and [`ManualClock::advance_to`]. The time of day alone can be set apart
/// by [`ManualClock::jump`] and [`ManualClock::jump_back`].
#[derive(Clone, Default)]
pub struct ManualClock(Arc<Mutex<Time>>);

/// 2026-01-01 00:00 UTC, in seconds since the epoch.
const BEGINNING_SECS: u64 = 1_767_225_600;

#[derive(Default)]
struct Time {
    elapsed: Duration,
    /// By how much the time of day was set ahead, in microseconds; less than 0 for back.
    set_ahead: i64,
    n_jumps: u64,
    /// Who waits for the next jump.
    awaiting_jump: Vec<Waker>,
    /// Whom to wake, and when. The number keeps sleepers of one moment in order.
    sleepers: BTreeMap<(Duration, u64), Waker>,
    last_number: u64,
}

impl ManualClock {
    /// A clock at its beginning.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves time on and wakes everybody who slept until then.
    pub fn advance(&self, span: Duration) {
        let target = self.time().elapsed.saturating_add(span);
        self.wake_until(target);
    }

    /// Moves time on to a moment; a moment in the past changes nothing.
    pub fn advance_to(&self, moment: Timestamp) {
        self.advance(moment.since(self.now()));
    }

    /// Sets the time of day ahead, as a machine does that was suspended: nobody's sleep is over.
    pub fn jump(&self, span: Duration) {
        self.set_by(i64::try_from(span.as_micros()).unwrap_or(i64::MAX));
    }

    /// Sets the time of day back.
    pub fn jump_back(&self, span: Duration) {
        self.set_by(i64::try_from(span.as_micros()).map_or(i64::MIN, |micros| -micros));
    }

    fn set_by(&self, micros: i64) {
        let mut time = self.time();
        time.set_ahead = time.set_ahead.saturating_add(micros);
        time.n_jumps += 1;
        let awaiting = std::mem::take(&mut time.awaiting_jump);
        drop(time);
        awaiting.into_iter().for_each(Waker::wake);
    }

    /// How long until the first sleeper wakes.
    #[must_use]
    pub fn next_wake(&self) -> Option<Duration> {
        let time = self.time();
        let ((due, _), _) = time.sleepers.first_key_value()?;
        Some(due.saturating_sub(time.elapsed))
    }

    /// Whether a task sleeps until some moment to come.
    pub(super) fn will_wake(&self, task: &Waker) -> bool {
        self.time().sleepers.values().any(|waker| waker.will_wake(task))
    }

    fn wake_until(&self, target: Duration) {
        let mut time = self.time();
        time.elapsed = time.elapsed.max(target);
        let still_asleep = time.sleepers.split_off(&(target, u64::MAX));
        let awake = std::mem::replace(&mut time.sleepers, still_asleep);
        drop(time);
        awake.into_values().for_each(Waker::wake);
    }

    fn time(&self) -> MutexGuard<'_, Time> {
        self.0.lock().expect("no holder of the lock panics")
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        let time = self.time();
        let even = Timestamp::EPOCH.after(Duration::from_secs(BEGINNING_SECS)).after(time.elapsed);
        Timestamp::from_micros(even.as_micros().saturating_add(time.set_ahead))
    }

    fn elapsed(&self) -> Duration {
        self.time().elapsed
    }

    fn sleep(&self, span: Duration) -> BoxFuture<()> {
        let due = self.elapsed().saturating_add(span);
        Box::pin(Sleep { clock: self.clone(), due, number: None })
    }

    fn jumped(&self) -> BoxFuture<()> {
        let (clock, n_seen) = (self.clone(), self.time().n_jumps);
        Box::pin(std::future::poll_fn(move |cx| {
            let mut time = clock.time();
            if time.n_jumps > n_seen {
                return Poll::Ready(());
            }
            // A task that waits for several things is woken by each of them: once is enough.
            let waker = inner_waker(cx);
            time.awaiting_jump.retain(|known| !known.will_wake(&waker));
            time.awaiting_jump.push(waker);
            Poll::Pending
        }))
    }
}

impl std::fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ManualClock").field(&self.elapsed()).finish()
    }
}

struct Sleep {
    clock: ManualClock,
    due: Duration,
    number: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let clock = self.clock.clone();
        let mut time = clock.time();
        if time.elapsed >= self.due {
            return Poll::Ready(());
        }
        let number = *self.number.get_or_insert_with(|| {
            time.last_number += 1;
            time.last_number
        });
        time.sleepers.insert((self.due, number), inner_waker(cx));
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.clock.time().sleepers.remove(&(self.due, number));
        }
    }
}
