//! The starter: concurrent starts go into the store as one transaction.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::batch::{Answer, Batcher, Carries, Patience, answer_all, run_batches};
use super::{Error, Parts, Registry};
use crate::ports::{DynStore, StartAnswer, StartRequest, Started, StoreError};
use crate::worker::Hands;

/// How often a start is repeated while the store is unavailable, before the caller is told. The
/// repeats carry the same key, so at most one run comes of it.
const RETRIES_MAX: u32 = 5;

/// Takes starts and stores whatever is waiting as one transaction.
#[derive(Clone)]
pub(crate) struct Starter(Batcher<StartRequest, oneshot::Sender<Answer<StartAnswer>>>);

impl Carries for StartRequest {
    fn bytes(&self) -> usize {
        self.input.bytes.len()
    }
}

impl Starter {
    /// Starts the starting loop. Roots go to the hands of this engine's worker, if it has one.
    pub(crate) fn start(
        parts: &Parts,
        registry: &Arc<Registry>,
        hands: Option<&Arc<Hands>>,
    ) -> Self {
        let items_max = parts.config.start_batch_max;
        let (batcher, requests) = Batcher::new(items_max);
        let (store, registry) = (Arc::clone(&parts.store), Arc::clone(registry));
        let hands = hands.map(Arc::clone);
        let patience = Patience::new(parts, Some(RETRIES_MAX));
        let call = move |items: Vec<StartRequest>| {
            let (store, hands) = (Arc::clone(&store), hands.clone());
            let n_roots = items.iter().map(|request| registry.n_roots(request.seed.definition));
            let n_roots = n_roots.sum();
            async move { start(&store, hands.as_deref(), items, n_roots).await }
        };
        parts.spawner.spawn(Box::pin(run_batches(requests, items_max, patience, call, answer_all)));
        Self(batcher)
    }

    /// Starts a run. When this returns without an error, the run is stored.
    pub(crate) async fn run(&self, request: StartRequest) -> Result<StartAnswer, Error> {
        let answer = self.submit(request).await?;
        Ok(answer.await.map_err(|_| Error::stopped())??)
    }

    async fn submit(
        &self,
        request: StartRequest,
    ) -> Result<oneshot::Receiver<Answer<StartAnswer>>, Error> {
        let (answer_to, answer) = oneshot::channel();
        self.0.submit(request, answer_to).await.ok_or_else(Error::stopped)?;
        Ok(answer)
    }

    /// Starts several runs; they travel together as far as batches allow.
    pub(crate) async fn run_many(
        &self,
        requests: Vec<StartRequest>,
    ) -> Result<Vec<StartAnswer>, Error> {
        let mut waiting = Vec::with_capacity(requests.len());
        for request in requests {
            waiting.push(self.submit(request).await?);
        }
        let mut answers = Vec::with_capacity(waiting.len());
        for answer in waiting {
            answers.push(answer.await.map_err(|_| Error::stopped())??);
        }
        Ok(answers)
    }
}

/// Starts runs, and takes their roots as far as there are free slots.
async fn start(
    store: &DynStore,
    hands: Option<&Hands>,
    requests: Vec<StartRequest>,
    n_roots: usize,
) -> Result<Vec<StartAnswer>, StoreError> {
    let offered = match hands {
        Some(hands) => hands.offer(n_roots).await,
        None => None,
    };
    let Some((request, offer)) = offered else { return store.start(requests).await };
    let Started { answers, handed_over } = store.start_and_claim(requests, Some(request)).await?;
    offer.accept(handed_over);
    Ok(answers)
}

/// The key under which a start is stored, or why it was refused.
pub(crate) fn to_error(answer: StartAnswer) -> Result<Option<stepwell_core::id::RunKey>, Error> {
    match answer {
        StartAnswer::Started => Ok(None),
        StartAnswer::AlreadyStarted(key) => Ok(Some(key)),
        StartAnswer::Refused(error) => Err(error.into()),
    }
}
