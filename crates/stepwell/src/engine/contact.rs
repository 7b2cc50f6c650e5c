//! How long the store has answered without a break.
//!
//! A leader that was itself cut off cannot tell dead workers from an outage, so it reaps nobody
//! until it has had answers for a whole lease.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::ports::Clock;

/// Remembers since when the store has answered.
pub(crate) struct Contact {
    clock: Arc<dyn Clock>,
    /// A silence longer than this is a break.
    gap_max: Duration,
    spell: Mutex<Option<Spell>>,
}

#[derive(Clone, Copy)]
struct Spell {
    since: Duration,
    last: Duration,
}

impl Contact {
    pub(crate) fn new(clock: Arc<dyn Clock>, gap_max: Duration) -> Self {
        Self { clock, gap_max, spell: Mutex::new(None) }
    }

    /// The store answered a request that was sent now or a moment ago.
    pub(crate) fn answered(&self) {
        let now = self.clock.elapsed();
        let mut spell = self.spell.lock().expect("no holder of the lock panics");
        let is_unbroken = |spell: &Spell| now.saturating_sub(spell.last) <= self.gap_max;
        let since = spell.filter(is_unbroken).map_or(now, |spell| spell.since);
        *spell = Some(Spell { since, last: now });
    }

    /// The store did not answer.
    pub(crate) fn broke(&self) {
        *self.spell.lock().expect("no holder of the lock panics") = None;
    }

    /// Whether it has answered for at least `span` without a break.
    pub(crate) fn has_held_for(&self, span: Duration) -> bool {
        let spell = self.spell.lock().expect("no holder of the lock panics");
        spell.is_some_and(|spell| spell.last.saturating_sub(spell.since) >= span)
    }
}
