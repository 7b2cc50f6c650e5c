//! For how long the store has answered this engine without a break.
//!
//! A leader that was itself cut off cannot tell dead workers from an outage, so it reaps nobody
//! until it has had answers for a whole lease.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::ports::Clock;

/// Remembers since when the store has answered.
pub(crate) struct StoreContact {
    clock: Arc<dyn Clock>,
    /// A silence longer than this is a break.
    gap_max: Duration,
    streak: Mutex<Option<Streak>>,
}

/// Answers without a break, by this process's clock.
#[derive(Clone, Copy)]
struct Streak {
    first_at: Duration,
    last_at: Duration,
}

impl StoreContact {
    pub(crate) fn new(clock: Arc<dyn Clock>, gap_max: Duration) -> Self {
        Self { clock, gap_max, streak: Mutex::new(None) }
    }

    /// The store answered a request that was sent now or a moment ago.
    pub(crate) fn answered(&self) {
        let now = self.clock.elapsed();
        let mut streak = self.streak.lock().expect("no holder of the lock panics");
        let is_unbroken = |streak: &Streak| now.saturating_sub(streak.last_at) <= self.gap_max;
        let first_at = streak.filter(is_unbroken).map_or(now, |streak| streak.first_at);
        *streak = Some(Streak { first_at, last_at: now });
    }

    /// The store did not answer.
    pub(crate) fn broke(&self) {
        *self.streak.lock().expect("no holder of the lock panics") = None;
    }

    /// Whether the store has answered for at least `span` without a break.
    pub(crate) fn has_held_for(&self, span: Duration) -> bool {
        let streak = self.streak.lock().expect("no holder of the lock panics");
        streak.is_some_and(|streak| streak.last_at.saturating_sub(streak.first_at) >= span)
    }
}
