use std::time::Duration;

use async_trait::async_trait;
use stepwell_core::id::{Epoch, WorkerId};

use super::lead::term;
use super::{SqliteStore, rows};
use crate::ports::{Lead, Leadership, StoreError};

#[async_trait]
impl Leadership for SqliteStore {
    async fn lead(&self, candidate: &WorkerId, ttl: Duration) -> Result<Lead, StoreError> {
        let candidate = candidate.clone();
        self.write(move |transaction| term::lead(transaction, &candidate, ttl)).await
    }

    async fn resign(&self, epoch: Epoch) -> Result<(), StoreError> {
        self.write(move |transaction| rows::leader::delete(transaction.file, epoch)).await
    }
}
