use std::time::Duration;

use async_trait::async_trait;
use stepwell_core::id::{Epoch, WorkerId};

use super::error::corrupt;
use super::rows::{int, time, unsigned};
use super::transaction::Transaction;
use super::{PostgresStore, statements};
use crate::ports::{Lead, Leadership, StoreError};

#[async_trait]
impl Leadership for PostgresStore {
    async fn lead(&self, candidate: &WorkerId, ttl: Duration) -> Result<Lead, StoreError> {
        self.with_retries(|| self.lead_once(candidate, ttl)).await
    }

    async fn resign(&self, epoch: Epoch) -> Result<(), StoreError> {
        let transaction = self.begin().await?;
        transaction.run(statements::CLEAR_LEADER, &[&int(epoch.0)]).await?;
        self.commit_transaction(transaction).await
    }
}

impl PostgresStore {
    async fn lead_once(&self, candidate: &WorkerId, ttl: Duration) -> Result<Lead, StoreError> {
        let transaction = self.begin().await?;
        let now = transaction.now;
        let leader = transaction.one(statements::LOCK_LEADER, &[]).await?;
        let standing = match &leader {
            Some(row) if time(row, 2)? > now => {
                let worker: &str = row.try_get(0)?;
                if worker != candidate.as_str() {
                    self.commit_transaction(transaction).await?;
                    return Ok(Lead::Following);
                }
                Some(Epoch(unsigned(row, 1)?))
            }
            _ => None,
        };
        let epoch = if let Some(epoch) = standing {
            epoch
        } else {
            let row = transaction.one(statements::NEXT_EPOCH, &[]).await?;
            let row = row.ok_or_else(|| corrupt("the epoch counter is missing"))?;
            Epoch(unsigned(&row, 0)?)
        };
        let until = now.after(ttl).as_micros();
        let params: super::transaction::Params<'_> = &[&candidate.as_str(), &int(epoch.0), &until];
        transaction.run(statements::SET_LEADER, params).await?;
        self.commit_transaction(transaction).await?;
        Ok(Lead::Leading(epoch))
    }
}

impl Transaction {
    /// Fences a leader's write.
    pub(super) async fn check_epoch(&self, epoch: Epoch) -> Result<(), StoreError> {
        let current = self.one(statements::CHECK_LEADER, &[&int(epoch.0)]).await?;
        current.map(drop).ok_or(StoreError::NotLeader)
    }
}
