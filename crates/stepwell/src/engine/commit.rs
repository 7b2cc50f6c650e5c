//! The committer: outcomes of finished attempts go into the store in batches.

use std::sync::Arc;

use tokio::sync::oneshot;

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
        self.hand_in(item).await?.answer().await
    }

    /// Hands in an outcome; waits only while too many others wait to be committed.
    pub(crate) async fn hand_in(&self, item: CommitItem) -> Result<HandedIn, StoreError> {
        self.0.submit(item).await.map(HandedIn).ok_or_else(closed)
    }
}

/// An outcome that will be committed.
pub(crate) struct HandedIn(oneshot::Receiver<Result<CommitAnswer, StoreError>>);

impl HandedIn {
    /// Waits until it is committed.
    pub(crate) async fn answer(self) -> Result<CommitAnswer, StoreError> {
        self.0.await.map_err(|_| closed())?
    }
}

fn closed() -> StoreError {
    StoreError::Unavailable { operation: "commit", why: "closed".into() }
}
