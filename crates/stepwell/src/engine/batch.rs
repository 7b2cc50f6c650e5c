//! Batching: whatever waits goes into one call, and the next batch gathers while it is under
//! way. Batches grow with load; when idle there is no delay.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::{Contact, Parts};
use crate::ports::{Clock, Ids, StoreError};

/// What a request is answered with.
pub(crate) type Answer<R> = Result<R, StoreError>;

/// A request and where its answer goes.
pub(crate) type Pending<T, A> = (T, A);

/// Where requests wait. Whoever is free takes all of them.
pub(crate) type Requests<T, A> = Arc<Mutex<mpsc::Receiver<Pending<T, A>>>>;

/// Takes requests for a store call that works on batches.
pub(crate) struct Batcher<T, A> {
    sender: mpsc::Sender<Pending<T, A>>,
}

impl<T, A> Clone for Batcher<T, A> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone() }
    }
}

impl<T, A> Batcher<T, A> {
    /// A batcher and the queue its loops read from.
    pub(crate) fn new(capacity: usize) -> (Self, Requests<T, A>) {
        let (sender, receiver) = mpsc::channel(capacity);
        (Self { sender }, Arc::new(Mutex::new(receiver)))
    }

    /// Hands in a request; waits only while the queue is full. The answer comes later. `None` if
    /// the engine has closed.
    pub(crate) async fn submit(&self, request: T, answer_to: A) -> Option<()> {
        self.sender.send((request, answer_to)).await.ok()
    }
}

/// How a batch is repeated while the store is unavailable. Requests carry their own ids and
/// tokens, so repeating one whose outcome is unknown is safe.
pub(crate) struct Patience {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) contact: Arc<Contact>,
    /// How often to try again; `None` to go on until the engine closes.
    pub(crate) retries_max: Option<u32>,
    pub(crate) closing: CancellationToken,
}

const RETRY_DELAY_MIN: Duration = Duration::from_millis(50);
const RETRY_DELAY_MAX: Duration = Duration::from_secs(5);

impl Patience {
    pub(crate) fn new(parts: &Parts, retries_max: Option<u32>) -> Self {
        Self {
            clock: Arc::clone(&parts.clock),
            ids: Arc::clone(&parts.ids),
            contact: Arc::clone(&parts.contact),
            retries_max,
            closing: parts.closing.clone(),
        }
    }

    /// Calls the store until it answers.
    pub(crate) async fn call<A, F>(&self, mut call: impl FnMut() -> F) -> Result<A, StoreError>
    where
        F: Future<Output = Result<A, StoreError>>,
    {
        let mut n_retries = 0_u32;
        loop {
            let error = match call().await {
                Ok(answer) => {
                    self.contact.answered();
                    return Ok(answer);
                }
                Err(error @ StoreError::Unavailable { .. }) => error,
                Err(error) => return Err(error),
            };
            self.contact.broke();
            let is_over = self.retries_max.is_some_and(|max| n_retries >= max);
            if is_over || self.closing.is_cancelled() {
                return Err(error);
            }
            tracing::warn!(%error, n_retries, "store unavailable, trying again");
            self.clock.sleep(self.delay(n_retries)).await;
            n_retries += 1;
        }
    }

    /// Doubles from 50 ms to 5 s, anywhere in its upper half so that a fleet does not come back
    /// all at once.
    fn delay(&self, n_retries: u32) -> Duration {
        let full = RETRY_DELAY_MIN.saturating_mul(1 << n_retries.min(10)).min(RETRY_DELAY_MAX);
        let half = full / 2;
        let chance = u32::try_from(self.ids.random() >> 32).unwrap_or_default();
        half + half.mul_f64(f64::from(chance) / f64::from(u32::MAX))
    }
}

/// Most bytes of payload in one batch, unless a single request is larger: databases bound the size
/// of a message, and memory is finite.
const BATCH_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A request that knows how much it carries.
pub(crate) trait Carries {
    /// The bytes of its payload.
    fn bytes(&self) -> usize;
}

/// Cuts what waits into batches of bearable size, in order.
fn cut<T: Carries, A>(waiting: Vec<Pending<T, A>>) -> Vec<Vec<Pending<T, A>>> {
    let mut batches: Vec<Vec<Pending<T, A>>> = Vec::new();
    let mut n_bytes = usize::MAX;
    for pending in waiting {
        n_bytes = n_bytes.saturating_add(pending.0.bytes());
        match batches.last_mut() {
            Some(batch) if n_bytes <= BATCH_BYTES_MAX => batch.push(pending),
            _ => {
                n_bytes = pending.0.bytes();
                batches.push(vec![pending]);
            }
        }
    }
    batches
}

/// Reads requests until all senders are gone and answers them batch by batch.
pub(crate) async fn run_batches<T: Clone + Carries, A, R, F>(
    requests: Requests<T, A>,
    items_max: usize,
    patience: Patience,
    call: impl Fn(Vec<T>) -> F,
    answer: impl Fn(Vec<(A, Answer<R>)>),
) where
    F: Future<Output = Result<Vec<R>, StoreError>>,
{
    let mut waiting = Vec::new();
    while requests.lock().await.recv_many(&mut waiting, items_max).await > 0 {
        let batches = cut(std::mem::take(&mut waiting)).into_iter();
        let mut open: Vec<(Vec<T>, Vec<A>)> =
            batches.map(|batch| batch.into_iter().unzip()).collect();
        // The last one is taken first.
        open.reverse();
        while let Some((items, askers)) = open.pop() {
            match patience.call(|| call(items.clone())).await {
                Ok(results) => {
                    answer(askers.into_iter().zip(results.into_iter().map(Ok)).collect());
                }
                // One bad item must not fail the others: halve until it is alone.
                Err(error) if is_about_data(&error) && items.len() > 1 => {
                    let (mut first, mut first_askers) = (items, askers);
                    let half = first.len() / 2;
                    let second = (first.split_off(half), first_askers.split_off(half));
                    open.extend([second, (first, first_askers)]);
                }
                Err(error) => {
                    answer(askers.into_iter().map(|asker| (asker, Err(error.clone()))).collect());
                }
            }
        }
    }
}

/// Whether trying again would end the same way.
pub(super) fn is_about_data(error: &StoreError) -> bool {
    matches!(error, StoreError::Corrupt { .. } | StoreError::Refused { .. })
}

/// Answers those who wait.
pub(super) fn answer_all<R>(answers: Vec<(oneshot::Sender<Answer<R>>, Answer<R>)>) {
    for (answer_to, answer) in answers {
        // Whoever asked may have gone; the effect stands.
        let _ = answer_to.send(answer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Carries for usize {
        fn bytes(&self) -> usize {
            *self
        }
    }

    fn sizes(requests: &[usize]) -> Vec<Vec<usize>> {
        let batches = cut(requests.iter().map(|bytes| (*bytes, ())).collect());
        let bytes = |batch: Vec<Pending<usize, ()>>| batch.into_iter().map(|(n, ())| n).collect();
        batches.into_iter().map(bytes).collect()
    }

    #[test]
    fn small_requests_travel_together() {
        assert_eq!(sizes(&[1, 2, 3]), [[1, 2, 3]]);
        assert!(sizes(&[]).is_empty());
    }

    #[test]
    fn a_batch_is_cut_before_it_grows_too_large() {
        let half = BATCH_BYTES_MAX / 2;
        assert_eq!(sizes(&[half, half, 1, half]), vec![vec![half, half], vec![1, half]]);
    }

    #[test]
    fn a_request_that_is_too_large_by_itself_travels_alone() {
        let large = BATCH_BYTES_MAX + 1;
        assert_eq!(sizes(&[1, large, 1]), [[1], [large], [1]]);
    }
}
