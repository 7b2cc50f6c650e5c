use std::time::Duration;

use async_trait::async_trait;
use stepwell_core::decide::Happening;
use stepwell_core::id::{Epoch, Node, RunKey};

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

    async fn put_off_timer(
        &self,
        epoch: Epoch,
        span: Duration,
    ) -> Result<Option<(RunKey, Node)>, StoreError> {
        self.transact(|tables| {
            tables.check_epoch(epoch)?;
            Ok(put_off(tables, span))
        })
    }
}

fn put_off(tables: &mut Tables, span: Duration) -> Option<(RunKey, Node)> {
    let (due, _, run, node) = tables.timers.by_due.first().copied()?;
    if due > tables.now {
        return None;
    }
    tables.timers.set(run, node, tables.now.after(span));
    Some((run, node))
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
