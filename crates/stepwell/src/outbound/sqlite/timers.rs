use async_trait::async_trait;
use rusqlite::{Row, params};
use stepwell_core::decide::Happening;
use stepwell_core::id::Epoch;

use super::rows::{node, run_key, time};
use super::transaction::Transaction;
use super::{SqliteStore, statements};
use crate::ports::{FiredTimers, StoreError, Timers};

#[async_trait]
impl Timers for SqliteStore {
    async fn fire_timers(
        &self,
        epoch: Epoch,
        timers_max: usize,
    ) -> Result<FiredTimers, StoreError> {
        self.write(move |transaction| {
            transaction.check_epoch(epoch)?;
            fire(transaction, timers_max)
        })
        .await
    }
}

fn fire(
    transaction: &mut Transaction<'_, '_>,
    timers_max: usize,
) -> Result<FiredTimers, StoreError> {
    let n = i64::try_from(timers_max).unwrap_or(i64::MAX);
    let due = params![transaction.now.as_micros(), n];
    let read = |row: &Row<'_>| Ok((run_key(row, 0)?, node(row, 1)?));
    let due = transaction.all(statements::DUE_TIMERS, due, read)?;
    let n_fired = due.len();
    for (run, node) in due {
        transaction.happen(run, node, Happening::TimerFired)?;
    }
    let next = transaction.first(statements::NEXT_TIMER, [], |row| time(row, 0))?;
    Ok(FiredTimers { n_fired, next_due: next.map(|due| due.since(transaction.now)) })
}
