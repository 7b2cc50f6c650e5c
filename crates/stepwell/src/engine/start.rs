//! The starter: concurrent starts go into the store as one transaction.

use std::sync::Arc;

use super::batch::{Batcher, Carries, Patience, run_batches};
use super::{Error, Parts};
use crate::ports::{StartAnswer, StartRequest};

/// How often a start is repeated while the store is unavailable, before the caller is told. The
/// repeats carry the same key, so at most one run comes of it.
const RETRIES_MAX: u32 = 5;

/// Takes starts and stores whatever is waiting as one transaction.
#[derive(Clone)]
pub(crate) struct Starter(Batcher<StartRequest, StartAnswer>);

impl Carries for StartRequest {
    fn bytes(&self) -> usize {
        self.input.bytes.len()
    }
}

impl Starter {
    pub(crate) fn start(parts: &Parts) -> Self {
        let items_max = parts.config.start_batch_max;
        let (batcher, requests) = Batcher::new(items_max);
        let store = Arc::clone(&parts.store);
        let patience = Patience::new(parts, Some(RETRIES_MAX));
        parts.spawner.spawn(Box::pin(run_batches(requests, items_max, patience, move |items| {
            let store = Arc::clone(&store);
            async move { store.start(items).await }
        })));
        Self(batcher)
    }

    /// Starts a run. When this returns without an error, the run is stored.
    pub(crate) async fn run(&self, request: StartRequest) -> Result<StartAnswer, Error> {
        let answer = self.0.submit(request).await.ok_or_else(Error::stopped)?;
        Ok(answer.await.map_err(|_| Error::stopped())??)
    }

    /// Starts several runs; they travel together as far as batches allow.
    pub(crate) async fn run_many(
        &self,
        requests: Vec<StartRequest>,
    ) -> Result<Vec<StartAnswer>, Error> {
        let mut waiting = Vec::with_capacity(requests.len());
        for request in requests {
            waiting.push(self.0.submit(request).await.ok_or_else(Error::stopped)?);
        }
        let mut answers = Vec::with_capacity(waiting.len());
        for answer in waiting {
            answers.push(answer.await.map_err(|_| Error::stopped())??);
        }
        Ok(answers)
    }
}

/// The key under which a start is stored, or why it was refused.
pub(crate) fn to_error(answer: StartAnswer) -> Result<Option<stepwell_core::id::RunKey>, Error> {
    match answer {
        StartAnswer::Started => Ok(None),
        StartAnswer::AlreadyStarted(key) => Ok(Some(key)),
        StartAnswer::Refused(error) => Err(error.into()),
    }
}
