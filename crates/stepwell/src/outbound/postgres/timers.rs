use std::time::Duration;

use async_trait::async_trait;
use stepwell_core::id::{Epoch, Node, RunKey};

use super::lead::timers::{fire, put_off};
use super::rows::int;
use super::rows::timer::read_until_due;
use super::session::{Done, Params, PgResult};
use super::sql::{self, Sql};
use super::{PostgresStore, Role};
use crate::ports::{FiredTimers, StoreError, Timers};

const ANY_DUE_TIMER: Sql = sql::TIMER.named("any_due_timer");

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

    async fn put_off_timer(
        &self,
        epoch: Epoch,
        span: Duration,
    ) -> Result<Option<(RunKey, Node)>, StoreError> {
        self.with_retries(|| self.put_off_once(epoch, span)).await
    }
}

impl PostgresStore {
    /// How long until the next timer is due, if there is one.
    async fn until_due(&self, epoch: Epoch) -> Result<Option<Duration>, StoreError> {
        let params: Params<'_> = &[&int(epoch.0), &self.shared.pool.injected_now()];
        let rows = self.query_once(Role::Leader, ANY_DUE_TIMER, params).await?;
        read_until_due(rows.first().ok_or(StoreError::NotLeader)?)
    }

    async fn put_off_once(
        &self,
        epoch: Epoch,
        span: Duration,
    ) -> PgResult<Done<Option<(RunKey, Node)>>> {
        let session = self.begin_duty().await?;
        let answer = put_off(&session, epoch, span).await?;
        self.commit_session(session).await?;
        Ok(Done::quiet(answer))
    }

    async fn fire_once(&self, epoch: Epoch, timers_max: usize) -> PgResult<Done<FiredTimers>> {
        let session = self.begin_duty().await?;
        self.shared.ids(&session).lock_serving_shared().await?;
        let runs = self.shared.runs(&session);
        let (answer, hints) = fire(&runs, epoch, timers_max).await?;
        let learned = runs.queues.learned();
        self.commit_session(session).await?;
        Ok(Done { answer, hints, learned })
    }
}
