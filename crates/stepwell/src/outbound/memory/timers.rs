use std::time::Duration;

use async_trait::async_trait;
use stepwell_core::decide::Happening;
use stepwell_core::id::Epoch;

use super::MemoryStore;
use super::tables::Tables;
use crate::ports::{FiredTimers, StoreError, Timers};

#[async_trait]
impl Timers for MemoryStore {
    async fn fire_timers(
        &self,
        epoch: Epoch,
        timers_max: usize,
    ) -> Result<FiredTimers, StoreError> {
        self.transact(|tables| {
            tables.check_epoch(epoch)?;
            fire(tables, timers_max)
        })
    }
}

fn fire(tables: &mut Tables, timers_max: usize) -> Result<FiredTimers, StoreError> {
    let mut n_fired = 0;
    for _ in 0..timers_max {
        let Some((due, _, run, node)) = tables.timers.by_due.first().copied() else { break };
        if due > tables.now {
            break;
        }
        tables.timers.clear(run, node);
        let verdict = tables.happen(run, Happening::timer_fired(node))?;
        n_fired += usize::from(verdict.is_applied());
    }
    Ok(FiredTimers { n_fired, next_due: next_due(tables) })
}

fn next_due(tables: &Tables) -> Option<Duration> {
    tables.timers.by_due.first().map(|(due, ..)| due.since(tables.now))
}
