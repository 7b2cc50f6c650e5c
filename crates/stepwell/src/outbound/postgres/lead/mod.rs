//! What the leader does, each write fenced by its epoch.

pub(crate) mod reap;
pub(crate) mod term;
pub(crate) mod timers;
