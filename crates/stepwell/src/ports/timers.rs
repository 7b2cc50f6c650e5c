//! Firing due timers.

use std::time::Duration;

use async_trait::async_trait;
use stepwell_core::id::Epoch;

use super::StoreError;

/// What one round of firing did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FiredTimers {
    /// How many fired; one that nothing waits for any more goes without being counted.
    pub n_fired: usize,
    /// How long until the next one is due, by the store's time; zero if more are due now.
    pub next_due: Option<Duration>,
}

/// Fires due timers.
#[async_trait]
pub trait Timers {
    /// Fires up to `timers_max` timers that are due by the store's time, earliest first, with
    /// everything that follows, in one transaction. A timer fires once, and never early.
    ///
    /// Only the leader of `epoch` may; another gets [`StoreError::NotLeader`].
    async fn fire_timers(&self, epoch: Epoch, timers_max: usize)
    -> Result<FiredTimers, StoreError>;
}
