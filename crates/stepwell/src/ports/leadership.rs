//! Leadership: who does what only one may do.

use std::time::Duration;

use async_trait::async_trait;
use stepwell_core::id::{Epoch, WorkerId};

use super::StoreError;

/// Whether a candidate leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lead {
    /// It does, in this epoch.
    Leading(Epoch),
    /// Somebody else does.
    Following,
}

/// Elects a leader.
#[async_trait]
pub trait Leadership {
    /// Takes or keeps leadership for `ttl`. Every take-over opens a greater epoch, and writes of
    /// an older one are refused from then on; keeping it keeps the epoch.
    async fn lead(&self, candidate: &WorkerId, ttl: Duration) -> Result<Lead, StoreError>;

    /// Gives leadership up at once, if `epoch` is still the current one.
    async fn resign(&self, epoch: Epoch) -> Result<(), StoreError>;
}
