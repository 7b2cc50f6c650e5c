//! The memo writer: what running functions have done goes into the store in batches.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::Parts;
use super::batch::{Answer, Batcher, HasPayload, answer_all, run_batches};
use super::store_retry::StoreRetry;
use super::worker_slots::WorkerSlots;
use crate::ports::{ListenAnswer, ListenRequest, MemoAnswer, MemoRequest, StoreError};

/// Writes under way at once: while one waits for the disk, the next one works.
const WRITES_MAX: usize = 2;

/// Takes memos of running functions and stores all that wait as one transaction.
#[derive(Clone)]
pub(crate) struct MemoWriter {
    batcher: Batcher<MemoRequest, oneshot::Sender<Answer<MemoAnswer>>>,
    slots: Arc<WorkerSlots>,
}

impl HasPayload for MemoRequest {
    fn payload_bytes(&self) -> usize {
        let payloads = self.memos.iter().filter_map(|memo| memo.payload.as_ref());
        payloads.map(|payload| payload.bytes.len()).sum()
    }
}

impl MemoWriter {
    /// Starts the writing loops.
    pub(crate) fn start(parts: &Parts, slots: &Arc<WorkerSlots>) -> Self {
        let items_max = parts.config.commit_batch_max;
        let (batcher, requests) = Batcher::new(parts, items_max);
        for _ in 0..WRITES_MAX {
            let (requests, store) = (Arc::clone(&requests), Arc::clone(&parts.store));
            let retry = StoreRetry::endless(parts);
            let call = move |items: Vec<MemoRequest>| {
                let store = Arc::clone(&store);
                async move { store.store_memos(items).await }
            };
            let writes = run_batches(requests, items_max, retry, call, answer_all);
            parts.spawner.spawn(Box::pin(writes));
        }
        Self { batcher, slots: Arc::clone(slots) }
    }

    /// Stores memos of one function.
    pub(crate) async fn store(&self, request: MemoRequest) -> Answer<MemoAnswer> {
        let (answer_to, answer) = oneshot::channel();
        let (claim, forgives) = (request.claim, request.forgives);
        self.batcher.submit(request, answer_to).await.ok_or_else(closed)?;
        let answer = answer.await.map_err(|_| closed())?;
        if forgives && matches!(answer, Ok(MemoAnswer::Stored(_))) {
            self.slots.held.clear_suspect(&claim);
        }
        answer
    }
}

/// Tells the store what a running function waits for, and asks for news. Repeated until the store
/// answers: what it gave was recorded, so that asking again does not lose it.
pub(crate) async fn listen(parts: &Parts, request: ListenRequest) -> Answer<ListenAnswer> {
    let retry = StoreRetry::endless(parts);
    let answers = retry.call(retry.now(), || parts.store.listen(vec![request.clone()])).await?;
    answers.into_iter().next().ok_or_else(|| StoreError::Corrupt { what: "no answer".into() })
}

fn closed() -> StoreError {
    StoreError::Unavailable { operation: "store memos", why: "closed".into() }
}
