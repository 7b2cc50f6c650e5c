use async_trait::async_trait;
use stepwell_core::id::Epoch;

use super::SqliteStore;
use super::lead::{term, timers};
use crate::ports::{FiredTimers, StoreError, Timers};

#[async_trait]
impl Timers for SqliteStore {
    async fn fire_timers(
        &self,
        epoch: Epoch,
        timers_max: usize,
    ) -> Result<FiredTimers, StoreError> {
        self.write(move |transaction| {
            term::check_epoch(transaction, epoch)?;
            timers::fire(transaction, timers_max)
        })
        .await
    }
}
