//! The committer: outcomes of finished attempts go into the store in batches.

use std::sync::Arc;

use super::Parts;
use super::batch::{Batcher, Carries, Patience, run_batches};
use crate::ports::{CommitAnswer, CommitItem, Outcome, StoreError};

/// Takes outcomes and commits whatever is waiting as one transaction.
#[derive(Clone)]
pub(crate) struct Committer(Batcher<CommitItem, CommitAnswer>);

impl Carries for CommitItem {
    fn bytes(&self) -> usize {
        match &self.outcome {
            Outcome::Completed { output, .. } => output.bytes.len(),
            _ => 0,
        }
    }
}

impl Committer {
    /// Starts the committing loop. It ends when the last clone of the committer is gone, so that
    /// nothing handed in is ever dropped.
    pub(crate) fn start(parts: &Parts) -> Self {
        let items_max = parts.config.commit_batch_max;
        let (batcher, requests) = Batcher::new(items_max);
        let store = Arc::clone(&parts.store);
        let patience = Patience::new(parts, None);
        parts.spawner.spawn(Box::pin(run_batches(requests, items_max, patience, move |items| {
            let store = Arc::clone(&store);
            async move { store.commit(items).await }
        })));
        Self(batcher)
    }

    /// Hands in an outcome and waits until it is committed.
    pub(crate) async fn commit(&self, item: CommitItem) -> Result<CommitAnswer, StoreError> {
        let closed = || StoreError::Unavailable { operation: "commit", why: "closed".into() };
        let answer = self.0.submit(item).await.ok_or_else(closed)?;
        answer.await.map_err(|_| closed())?
    }
}
