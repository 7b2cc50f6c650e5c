//! The committer: outcomes of finished attempts go into the store in batches.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::Parts;
use super::batch::{Batcher, Carries, Patience, run_batches};
use crate::ports::{CommitAnswer, CommitItem, Committed, DynStore, Outcome, StoreError};
use crate::worker::Hands;

/// Commits under way at once: while one waits for the disk, the next one works.
const COMMITS_MAX: usize = 2;

/// Takes outcomes and commits whatever is waiting as one transaction.
#[derive(Clone)]
pub(crate) struct Committer(Batcher<Ended, CommitAnswer>);

/// An outcome, and how many tasks may become ready by it.
#[derive(Clone)]
struct Ended {
    item: CommitItem,
    n_next: usize,
}

impl Carries for Ended {
    fn bytes(&self) -> usize {
        match &self.item.outcome {
            Outcome::Completed { output, .. } => output.bytes.len(),
            _ => 0,
        }
    }
}

impl Committer {
    /// Starts the committing loop. It ends when the last clone of the committer is gone, so that
    /// nothing handed in is ever dropped.
    pub(crate) fn start(parts: &Parts, hands: &Arc<Hands>) -> Self {
        let items_max = parts.config.commit_batch_max;
        let (batcher, requests) = Batcher::new(items_max);
        for _ in 0..COMMITS_MAX {
            let (store, hands) = (Arc::clone(&parts.store), Arc::clone(hands));
            let (requests, patience) = (Arc::clone(&requests), Patience::new(parts, None));
            parts.spawner.spawn(Box::pin(run_batches(
                requests,
                items_max,
                patience,
                move |ended| {
                    let (store, hands) = (Arc::clone(&store), Arc::clone(&hands));
                    async move { commit(&store, &hands, ended).await }
                },
            )));
        }
        Self(batcher)
    }

    /// Hands in an outcome and waits until it is committed.
    pub(crate) async fn commit(&self, item: CommitItem) -> Result<CommitAnswer, StoreError> {
        self.hand_in(item).await?.answer().await
    }

    /// Hands in an outcome; waits only while too many others wait to be committed.
    pub(crate) async fn hand_in(&self, item: CommitItem) -> Result<HandedIn, StoreError> {
        self.hand_in_before(item, 0).await
    }

    /// As [`hand_in`](Self::hand_in), for an outcome by which so many tasks may become ready.
    pub(crate) async fn hand_in_before(
        &self,
        item: CommitItem,
        n_next: usize,
    ) -> Result<HandedIn, StoreError> {
        self.0.submit(Ended { item, n_next }).await.map(HandedIn).ok_or_else(closed)
    }
}

/// Commits outcomes, and takes what becomes ready by them as far as there are free slots.
async fn commit(
    store: &DynStore,
    hands: &Hands,
    ended: Vec<Ended>,
) -> Result<Vec<CommitAnswer>, StoreError> {
    let n_next = ended.iter().map(|ended| ended.n_next).sum();
    let items = ended.into_iter().map(|ended| ended.item).collect();
    let Some((request, offer)) = hands.offer(n_next).await else {
        return store.commit(items).await;
    };
    let Committed { answers, handed_over } = store.commit_and_claim(items, Some(request)).await?;
    // Before anybody hears of the answers: a worker that drains must see what it holds.
    offer.accept(handed_over);
    Ok(answers)
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
