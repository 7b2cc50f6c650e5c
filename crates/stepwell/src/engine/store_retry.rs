//! Calls to the store that are repeated while it is unavailable.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Parts;
use crate::ports::{Clock, Ids, StoreError};

/// Repeats a call while the store is unavailable. Requests carry their own ids and tokens, so
/// repeating one whose effect is unknown is safe.
pub(super) struct StoreRetry {
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    /// How often to try again; `None` to go on until the engine closes.
    retries_max: Option<u32>,
    closing: CancellationToken,
}

const RETRY_DELAY_MIN: Duration = Duration::from_millis(50);
const RETRY_DELAY_MAX: Duration = Duration::from_secs(5);

impl StoreRetry {
    pub(super) fn new(parts: &Parts, retries_max: Option<u32>) -> Self {
        Self {
            clock: Arc::clone(&parts.clock),
            ids: Arc::clone(&parts.ids),
            retries_max,
            closing: parts.closing.clone(),
        }
    }

    /// Calls the store until it answers.
    pub(super) async fn call<A, F>(&self, mut call: impl FnMut() -> F) -> Result<A, StoreError>
    where
        F: Future<Output = Result<A, StoreError>>,
    {
        let mut n_retries = 0_u32;
        loop {
            let error = match call().await {
                Ok(answer) => return Ok(answer),
                Err(error @ StoreError::Unavailable { .. }) => error,
                Err(error) => return Err(error),
            };
            let is_over = self.retries_max.is_some_and(|max| n_retries >= max);
            if is_over || self.closing.is_cancelled() {
                return Err(error);
            }
            tracing::warn!(%error, n_retries, "store unavailable, trying again");
            tokio::select! {
                biased;
                () = self.closing.cancelled() => {}
                () = self.clock.sleep(self.delay(n_retries)) => {}
            }
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
