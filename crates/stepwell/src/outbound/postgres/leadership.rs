use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use stepwell_core::id::{Epoch, WorkerId};

use super::lead::term::{lead, resign};
use super::rows::leader::read_epoch;
use super::session::{Done, Params, PgResult};
use super::sql::{self, Sql};
use super::{PostgresStore, Role};
use crate::ports::{Lead, Leadership, StoreError};

const RENEW_LEADER: Sql = sql::LEADER.named("renew_leader");

#[async_trait]
impl Leadership for PostgresStore {
    async fn lead(&self, candidate: &WorkerId, ttl: Duration) -> Result<Lead, StoreError> {
        if self.shared.leads.load(Ordering::Acquire) {
            // Whoever leads goes on leading with one statement.
            let micros = i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX);
            let now = self.shared.pool.injected_now();
            let params: Params<'_> = &[&candidate.as_str(), &micros, &now];
            let rows = self.query_once(Role::Leader, RENEW_LEADER, params).await?;
            if let Some(row) = rows.first() {
                return Ok(Lead::Leading(read_epoch(row)?));
            }
        }
        let lead = self.with_retries(|| self.lead_once(candidate, ttl)).await?;
        self.shared.leads.store(matches!(lead, Lead::Leading(_)), Ordering::Release);
        Ok(lead)
    }

    async fn resign(&self, epoch: Epoch) -> Result<(), StoreError> {
        let session = self.begin(Role::Leader).await?;
        resign(&session, epoch).await?;
        Ok(self.commit_session(session).await?)
    }
}

impl PostgresStore {
    async fn lead_once(&self, candidate: &WorkerId, ttl: Duration) -> PgResult<Done<Lead>> {
        let session = self.begin(Role::Leader).await?;
        let answer = lead(&session, candidate, ttl).await?;
        self.commit_session(session).await?;
        Ok(Done::quiet(answer))
    }
}
