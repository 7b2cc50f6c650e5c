use async_trait::async_trait;
use std::time::Duration;

use stepwell_core::id::{Epoch, Node, RunKey};

use super::lead::{term, timers};
use super::{SqliteStore, rows};
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

    async fn put_off_timer(
        &self,
        epoch: Epoch,
        span: Duration,
    ) -> Result<Option<(RunKey, Node)>, StoreError> {
        self.write(move |transaction| {
            term::check_epoch(transaction, epoch)?;
            let (file, now) = (transaction.file, transaction.now);
            let first = rows::timer::due(file, now, 1)?.into_iter().next();
            if first.is_some() {
                rows::timer::put_off_first(file, now.after(span))?;
            }
            Ok(first)
        })
        .await
    }
}
