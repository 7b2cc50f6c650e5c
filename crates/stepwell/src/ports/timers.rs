//! Firing due timers.

use std::time::Duration;

use async_trait::async_trait;
use stepwell_core::id::{Epoch, Node, RunKey};

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

    /// Makes the first timer that is due be due so much later, without a look at its run, and says
    /// whose it is. For one that cannot be fired: it must not hold up those behind it.
    ///
    /// Only the leader of `epoch` may; another gets [`StoreError::NotLeader`].
    async fn put_off_timer(
        &self,
        epoch: Epoch,
        span: Duration,
    ) -> Result<Option<(RunKey, Node)>, StoreError>;
}
