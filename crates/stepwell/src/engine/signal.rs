//! The signaller: concurrent signals go into the store as one transaction.

use std::sync::Arc;

use stepwell_core::decide::SignalAnswer;
use stepwell_core::id::RunKey;
use tokio::sync::oneshot;

use super::Parts;
use super::batch::{Answer, Batcher, HasPayload, answer_all, run_batches};
use super::store_retry::StoreRetry;
use crate::error::Error;
use crate::ports::{SignalRequest, WaitingRuns};

/// What became of a signal; `None` if there is no such run.
type Sent = Option<SignalAnswer>;

/// Takes signals and stores all that wait as one transaction. While the store is unavailable they
/// are repeated with the same key, so each is stored at most once.
#[derive(Clone)]
pub(crate) struct Signaller(Batcher<SignalRequest, oneshot::Sender<Answer<Sent>>>);

impl HasPayload for SignalRequest {
    fn payload_bytes(&self) -> usize {
        self.payload.bytes.len()
    }
}

impl Signaller {
    /// Starts the sending loop.
    pub(crate) fn start(parts: &Parts) -> Self {
        let items_max = parts.config.start_batch_max;
        let (batcher, requests) = Batcher::new(parts, items_max);
        let store = Arc::clone(&parts.store);
        let retry = StoreRetry::patient(parts);
        let call = move |items: Vec<SignalRequest>| {
            let store = Arc::clone(&store);
            async move { store.signal(items).await }
        };
        parts.spawner.spawn(Box::pin(run_batches(requests, items_max, retry, call, answer_all)));
        Self(batcher)
    }

    /// Sends signals; they travel together as far as batches allow.
    pub(crate) async fn send(&self, requests: Vec<SignalRequest>) -> Result<Vec<Sent>, Error> {
        let mut waiting = Vec::with_capacity(requests.len());
        for request in requests {
            let (answer_to, answer) = oneshot::channel();
            self.0.submit(request, answer_to).await.ok_or_else(Error::stopped)?;
            waiting.push(answer);
        }
        let mut answers = Vec::with_capacity(waiting.len());
        for answer in waiting {
            answers.push(answer.await.map_err(|_| Error::stopped())??);
        }
        Ok(answers)
    }
}

/// Sends one signal of a function.
pub(crate) async fn send_signal(parts: &Parts, request: SignalRequest) -> Result<Sent, Error> {
    let answers = parts.patiently(|| parts.store.signal(vec![request.clone()])).await?;
    Ok(answers.into_iter().next().flatten())
}

/// The next runs that wait for a signal.
pub(crate) async fn waiting_runs(
    parts: &Parts,
    asked: &WaitingRuns,
    after: Option<RunKey>,
    rows_max: usize,
) -> Result<Vec<RunKey>, Error> {
    Ok(parts.patiently(|| parts.store.waiting_runs(asked, after, rows_max)).await?)
}
