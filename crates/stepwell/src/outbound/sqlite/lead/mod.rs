//! What the leader does: its term, timers that are due, and workers that are dead.

pub(crate) mod reap;
pub(crate) mod term;
pub(crate) mod timers;
