//! The starter: concurrent starts go into the store as one transaction.

use std::sync::Arc;

use stepwell_core::id::RunKey;
use tokio::sync::oneshot;

use super::batch::{Answer, Batcher, HasPayload, answer_all, run_batches};
use super::store_retry::StoreRetry;
use super::{Parts, Registry, WorkerSlots};
use crate::error::Error;
use crate::ports::{DynStore, StartAnswer, StartRequest, Started, StoreError};

/// Takes starts and stores all that wait as one transaction. While the store is unavailable they
/// are repeated with the same key, so at most one run is started.
#[derive(Clone)]
pub(crate) struct Starter(Batcher<StartRequest, oneshot::Sender<Answer<StartAnswer>>>);

impl HasPayload for StartRequest {
    fn payload_bytes(&self) -> usize {
        self.input.bytes.len()
    }
}

impl Starter {
    /// Starts the starting loop. Roots go to free slots of this engine's worker, if it has one.
    pub(crate) fn start(
        parts: &Parts,
        registry: &Arc<Registry>,
        slots: Option<&Arc<WorkerSlots>>,
    ) -> Self {
        let items_max = parts.config.start_batch_max;
        let (batcher, requests) = Batcher::new(parts, items_max);
        let (store, registry) = (Arc::clone(&parts.store), Arc::clone(registry));
        let slots = slots.map(Arc::clone);
        let retry = StoreRetry::patient(parts);
        let call = move |items: Vec<StartRequest>| {
            let (store, slots) = (Arc::clone(&store), slots.clone());
            let n_roots = items.iter().map(|request| registry.n_roots(request.seed.definition));
            let n_roots = n_roots.sum();
            async move { start(&store, slots.as_deref(), items, n_roots).await }
        };
        parts.spawner.spawn(Box::pin(run_batches(requests, items_max, retry, call, answer_all)));
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

/// Starts runs, and claims their roots as far as there are free slots.
async fn start(
    store: &DynStore,
    slots: Option<&WorkerSlots>,
    requests: Vec<StartRequest>,
    n_roots: usize,
) -> Result<Vec<StartAnswer>, StoreError> {
    let offered = match slots {
        Some(slots) => slots.offer(n_roots).await,
        None => None,
    };
    let Some((request, offer)) = offered else { return store.start(requests).await };
    let Started { answers, handed_over } = store.start_and_claim(requests, Some(request)).await?;
    offer.accept(handed_over);
    Ok(answers)
}

/// The key of the run if it was started before; else it was started now, or refused.
pub(crate) fn already_started(answer: StartAnswer) -> Result<Option<RunKey>, Error> {
    match answer {
        StartAnswer::Started => Ok(None),
        StartAnswer::AlreadyStarted(key) => Ok(Some(key)),
        StartAnswer::Refused(error) => Err(error.into()),
    }
}
