use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use stepwell_core::decide::Happening;
use stepwell_core::id::{Epoch, Node, RunKey};
use tokio_postgres::Row;

use super::batch::{Happened, Happenings};
use super::rows::{self, int, int32, key, node, run_key, time};
use super::transaction::Params;
use super::{PostgresStore, Role, statements};
use crate::ports::{FiredTimers, StoreError, Timers};

#[async_trait]
impl Timers for PostgresStore {
    async fn fire_timers(
        &self,
        epoch: Epoch,
        timers_max: usize,
    ) -> Result<FiredTimers, StoreError> {
        match self.until_due(epoch).await? {
            Some(Duration::ZERO) => self.with_retries(|| self.fire_once(epoch, timers_max)).await,
            next_due => Ok(FiredTimers { n_fired: 0, next_due }),
        }
    }
}

impl PostgresStore {
    /// How long until the next timer is due, if there is one.
    async fn until_due(&self, epoch: Epoch) -> Result<Option<Duration>, StoreError> {
        let params: Params<'_> = &[&int(epoch.0), &self.shared.injected_now()];
        let row = self.glance(Role::Leader, statements::ANY_DUE_TIMER, params).await?;
        let row = row.filter(|row| row.get(0)).ok_or(StoreError::NotLeader)?;
        let micros: Option<i64> = row.try_get(1)?;
        Ok(micros.map(|micros| Duration::from_micros(u64::try_from(micros).unwrap_or(0))))
    }

    async fn fire_once(&self, epoch: Epoch, timers_max: usize) -> Result<FiredTimers, StoreError> {
        let mut transaction = self.begin_as(Role::Leader).await?;
        transaction.share_service().await?;
        transaction.check_epoch(epoch).await?;
        let now = transaction.now;
        let n = i64::try_from(timers_max).unwrap_or(i64::MAX);
        let rows = transaction.all(statements::DUE_TIMERS, &[&now.as_micros(), &n]).await?;
        let read = |row: &Row| Ok((run_key(row, 0)?, node(row, 1)?));
        let due: Vec<(RunKey, Node)> = rows::read_all(&rows, read)?;
        let mut happenings = Happenings::new();
        for (run, node) in &due {
            let happening = Happening::TimerFired;
            let happened = Happened { node: *node, token: None, happening };
            happenings.entry(*run).or_default().push(happened);
        }
        let fired = transaction.happen(happenings).await?;
        let is_stale = |timer: &&(RunKey, Node)| !fired.contains(&(timer.0, timer.1, None));
        let stale: BTreeSet<_> = due.iter().filter(is_stale).collect();
        if !stale.is_empty() {
            let runs: Vec<_> = stale.iter().map(|(run, _)| key(*run)).collect();
            let nodes: Vec<i32> = stale.iter().map(|(_, node)| int32(node.0)).collect();
            transaction.run(statements::CLEAR_TIMERS, &[&runs, &nodes]).await?;
        }
        let next = transaction.one(statements::NEXT_TIMER, &[]).await?;
        let next = next.map(|row| time(&row, 0)).transpose()?;
        self.commit_transaction(transaction).await?;
        Ok(FiredTimers { n_fired: fired.len(), next_due: next.map(|due| due.since(now)) })
    }
}
