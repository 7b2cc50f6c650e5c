//! Batching: all requests that wait go into one call of the store, and the next batch gathers
//! while that call is under way. Batches grow with load; when idle there is no delay.
//!
//! A transaction costs much however little it carries. So while one call is under way, the next one
//! begins only when it carries as many requests, or has gathered for as long as a call takes.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::{Mutex, mpsc, oneshot, watch};

use super::Parts;
use super::store_retry::StoreRetry;
use crate::ports::{Clock, StoreError};

/// What a request is answered with.
pub(crate) type Answer<R> = Result<R, StoreError>;

/// A request that waits.
pub(crate) struct Pending<T, A> {
    request: T,
    /// Where its answer goes.
    answer_to: A,
    /// When it was handed in, by the engine's clock.
    since: Duration,
}

/// Where requests wait. The next loop that is free takes all of them.
pub(crate) type Requests<T, A> = Arc<RequestQueue<T, A>>;

/// Requests that wait, and what is known of those under way.
pub(crate) struct RequestQueue<T, A> {
    /// Held by the loop that gathers the next batch.
    waiting: Mutex<mpsc::Receiver<Pending<T, A>>>,
    /// How many requests are under way.
    under_way: watch::Sender<usize>,
    /// How long the last call took.
    call_micros: AtomicU64,
    clock: Arc<dyn Clock>,
}

/// Takes requests for a store call that works on batches.
pub(crate) struct Batcher<T, A> {
    sender: mpsc::Sender<Pending<T, A>>,
    clock: Arc<dyn Clock>,
}

impl<T, A> Clone for Batcher<T, A> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), clock: Arc::clone(&self.clock) }
    }
}

impl<T, A> Batcher<T, A> {
    /// A batcher and the queue its loops read from.
    pub(crate) fn new(parts: &Parts, capacity: usize) -> (Self, Requests<T, A>) {
        let (sender, receiver) = mpsc::channel(capacity);
        let queue = RequestQueue {
            waiting: Mutex::new(receiver),
            under_way: watch::channel(0).0,
            call_micros: AtomicU64::new(0),
            clock: Arc::clone(&parts.clock),
        };
        (Self { sender, clock: Arc::clone(&parts.clock) }, Arc::new(queue))
    }

    /// Hands in a request; waits only while the queue is full. The answer comes later. `None` if
    /// the engine has closed.
    pub(crate) async fn submit(&self, request: T, answer_to: A) -> Option<()> {
        let since = self.clock.elapsed();
        self.sender.send(Pending { request, answer_to, since }).await.ok()
    }
}

/// Most bytes of payload in one batch, unless a single request is larger: databases bound the size
/// of a message, and memory is finite.
const BATCH_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A request with a payload.
pub(crate) trait HasPayload {
    /// How large the payload is.
    fn payload_bytes(&self) -> usize;
}

/// Cuts requests into batches that are small enough to send, in order.
fn cut<T: HasPayload, A>(waiting: Vec<Pending<T, A>>) -> Vec<Vec<Pending<T, A>>> {
    let mut batches: Vec<Vec<Pending<T, A>>> = Vec::new();
    let mut n_bytes = usize::MAX;
    for pending in waiting {
        n_bytes = n_bytes.saturating_add(pending.request.payload_bytes());
        match batches.last_mut() {
            Some(batch) if n_bytes <= BATCH_BYTES_MAX => batch.push(pending),
            _ => {
                n_bytes = pending.request.payload_bytes();
                batches.push(vec![pending]);
            }
        }
    }
    batches
}

/// Takes requests and has them answered, all that wait as one call. Ends when nobody can hand in
/// any more. What the store is too damaged for is tried again apart, if it is tried without end.
pub(crate) async fn run_batches<T: Clone + HasPayload, A, R, F>(
    requests: Requests<T, A>,
    items_max: usize,
    retry: StoreRetry,
    call: impl Fn(Vec<T>) -> F,
    answer: impl Fn(Vec<(A, Answer<R>)>),
) where
    F: Future<Output = Result<Vec<R>, StoreError>>,
{
    let mut waiting = Vec::new();
    let mut apart = FuturesUnordered::new();
    loop {
        let n = tokio::select! {
            biased;
            Some(()) = apart.next() => continue,
            n = requests.gather(&mut waiting, items_max) => n,
        };
        if n == 0 {
            break;
        }
        let _under_way = requests.begin(n);
        let mut open = cut(std::mem::take(&mut waiting));
        // Batches are popped from the end, so the first one has to stand there.
        open.reverse();
        while let Some(mut batch) = open.pop() {
            let Some(since) = batch.iter().map(|pending| pending.since).min() else { continue };
            let requests = || batch.iter().map(|pending| pending.request.clone()).collect();
            match retry.call(since, || call(requests())).await {
                Ok(results) => {
                    let receivers = batch.into_iter().map(|pending| pending.answer_to);
                    answer(receivers.zip(results.into_iter().map(Ok)).collect());
                }
                // One bad item must not fail the others: halve until it is alone.
                Err(error) if error.is_about_rows() && batch.len() > 1 => {
                    let second = batch.split_off(batch.len() / 2);
                    open.extend([second, batch]);
                }
                Err(StoreError::Damaged { .. }) if retry.is_endless() => {
                    apart.extend(
                        batch.into_iter().map(|one| call_apart(&retry, &call, &answer, one)),
                    );
                }
                Err(error) => {
                    // Whoever came later is not told earlier for having gone along.
                    let waits = matches!(error, StoreError::Unavailable { .. });
                    let is_over = |pending: &Pending<T, A>| !waits || retry.is_over(pending.since);
                    let (over, left): (Vec<_>, Vec<_>) = batch.into_iter().partition(is_over);
                    let refuse = |pending: Pending<T, A>| (pending.answer_to, Err(error.clone()));
                    answer(over.into_iter().map(refuse).collect());
                    open.push(left);
                }
            }
        }
    }
    while apart.next().await.is_some() {}
}

impl<T, A> RequestQueue<T, A> {
    /// Waits for requests, and gathers more while others are under way. Gives how many there are;
    /// none when nobody can hand in any more. Dropped half-way it leaves what it has for the next.
    async fn gather(&self, batch: &mut Vec<Pending<T, A>>, items_max: usize) -> usize {
        let mut waiting = self.waiting.lock().await;
        if batch.is_empty() {
            waiting.recv_many(batch, items_max).await;
        }
        let mut under_way = self.under_way.subscribe();
        let time_is_up = async {
            let span = Duration::from_micros(self.call_micros.load(Ordering::Relaxed));
            self.clock.sleep(span).await;
        };
        let mut time_is_up = std::pin::pin!(time_is_up);
        while !is_enough(batch.len(), *under_way.borrow_and_update(), items_max) {
            let n_more = items_max - batch.len();
            tokio::select! {
                biased;
                n = waiting.recv_many(batch, n_more) => if n == 0 { break },
                _ = under_way.changed() => {}
                () = &mut time_is_up => break,
            }
        }
        batch.len()
    }

    /// So many requests are under way until what this gives is dropped.
    fn begin(&self, n_requests: usize) -> UnderWay<'_, T, A> {
        self.under_way.send_modify(|n| *n += n_requests);
        UnderWay { queue: self, n_requests, since: self.clock.elapsed() }
    }
}

/// Whether a batch may go out: nothing else is under way, or it carries as much.
fn is_enough(n_gathered: usize, n_under_way: usize, items_max: usize) -> bool {
    n_gathered == 0 || n_gathered >= n_under_way.min(items_max)
}

/// Requests that are under way.
struct UnderWay<'q, T, A> {
    queue: &'q RequestQueue<T, A>,
    n_requests: usize,
    since: Duration,
}

impl<T, A> Drop for UnderWay<'_, T, A> {
    fn drop(&mut self) {
        let span = self.queue.clock.elapsed().saturating_sub(self.since);
        let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        self.queue.call_micros.store(micros, Ordering::Relaxed);
        self.queue.under_way.send_modify(|n| *n -= self.n_requests);
    }
}

/// Tries a request that the store is too damaged for until somebody has mended that. Others do not
/// wait for it.
async fn call_apart<T: Clone, A, R, F>(
    retry: &StoreRetry,
    call: &impl Fn(Vec<T>) -> F,
    answer: &impl Fn(Vec<(A, Answer<R>)>),
    pending: Pending<T, A>,
) where
    F: Future<Output = Result<Vec<R>, StoreError>>,
{
    let results = retry.outlast_damage(|| call(vec![pending.request.clone()])).await;
    let result = results.and_then(|results| results.into_iter().next().ok_or_else(unanswered));
    answer(vec![(pending.answer_to, result)]);
}

fn unanswered() -> StoreError {
    StoreError::Corrupt { what: "the store gave no answer".into() }
}

/// Whether the store refused the data itself, so that trying again would end the same way.
pub(crate) fn is_about_data(error: &StoreError) -> bool {
    matches!(error, StoreError::Corrupt { .. } | StoreError::Refused { .. })
}

/// Answers the callers that wait.
pub(super) fn answer_all<R>(answers: Vec<(oneshot::Sender<Answer<R>>, Answer<R>)>) {
    for (answer_to, answer) in answers {
        // The caller may have gone; the effect stands.
        let _ = answer_to.send(answer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl HasPayload for usize {
        fn payload_bytes(&self) -> usize {
            *self
        }
    }

    fn sizes(requests: &[usize]) -> Vec<Vec<usize>> {
        let pending =
            |bytes: &usize| Pending { request: *bytes, answer_to: (), since: Duration::ZERO };
        let batches = cut(requests.iter().map(pending).collect());
        let bytes = |batch: Vec<Pending<usize, ()>>| batch.iter().map(|one| one.request).collect();
        batches.into_iter().map(bytes).collect()
    }

    #[test]
    fn a_batch_waits_for_company_only_behind_a_larger_one() {
        assert!(is_enough(1, 0, 100), "nothing is under way");
        assert!(is_enough(5, 5, 100) && !is_enough(4, 5, 100));
        assert!(is_enough(100, 250, 100), "more does not fit");
        assert!(is_enough(0, 5, 100), "nobody can hand in any more");
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
