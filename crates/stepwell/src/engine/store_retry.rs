//! Calls to the store that are repeated while it is unavailable, as during a restart of a database.

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
    /// For how long to try again; `None` to go on until the engine closes.
    patience: Option<Duration>,
    closing: CancellationToken,
}

const DELAY_MIN: Duration = Duration::from_millis(50);
/// Somebody waits for the answer.
const DELAY_MAX_PATIENT: Duration = Duration::from_secs(1);
const DELAY_MAX_ENDLESS: Duration = Duration::from_secs(5);

impl Parts {
    /// Calls the store, again and again while it is unavailable, for as long as the settings say:
    /// a database that restarts is no error to whoever asks.
    pub(crate) async fn patiently<A, F>(&self, call: impl FnMut() -> F) -> Result<A, StoreError>
    where
        F: Future<Output = Result<A, StoreError>>,
    {
        let retry = StoreRetry::patient(self);
        retry.call(retry.now(), call).await
    }
}

impl StoreRetry {
    /// Goes on for as long as the settings say.
    pub(super) fn patient(parts: &Parts) -> Self {
        Self { patience: Some(parts.config.patience), ..Self::endless(parts) }
    }

    /// Goes on until the engine closes.
    pub(super) fn endless(parts: &Parts) -> Self {
        Self {
            clock: Arc::clone(&parts.clock),
            ids: Arc::clone(&parts.ids),
            patience: None,
            closing: parts.closing.clone(),
        }
    }

    /// The moment, by the engine's clock.
    pub(super) fn now(&self) -> Duration {
        self.clock.elapsed()
    }

    /// Whether somebody who asked then is told by now that the store is unavailable.
    pub(super) fn is_over(&self, since: Duration) -> bool {
        let closes = self.closing.is_cancelled();
        closes || self.patience.is_some_and(|patience| self.now() >= since + patience)
    }

    /// Calls the store until it answers, or until whoever asked at that moment is to be told.
    pub(super) async fn call<A, F>(
        &self,
        since: Duration,
        mut call: impl FnMut() -> F,
    ) -> Result<A, StoreError>
    where
        F: Future<Output = Result<A, StoreError>>,
    {
        let mut n_retries = 0_u32;
        loop {
            let error = match call().await {
                Err(error @ StoreError::Unavailable { .. }) => error,
                answer => {
                    if n_retries > 0 {
                        tracing::info!(n_retries, "the store is available again");
                    }
                    return answer;
                }
            };
            if self.is_over(since) {
                return Err(error);
            }
            let is_news = n_retries == 0 || self.patience.is_none();
            if is_news {
                tracing::warn!(%error, n_retries, "store unavailable, trying again");
            } else {
                tracing::debug!(%error, n_retries, "store unavailable, trying again");
            }
            self.pause(n_retries, since).await;
            n_retries += 1;
        }
    }

    /// Whether it goes on until the engine closes.
    pub(super) fn is_endless(&self) -> bool {
        self.patience.is_none()
    }

    /// Calls a store that was found damaged until somebody has mended it, or the engine closes.
    pub(super) async fn outlast_damage<A, F>(
        &self,
        mut call: impl FnMut() -> F,
    ) -> Result<A, StoreError>
    where
        F: Future<Output = Result<A, StoreError>>,
    {
        let (since, mut n_retries) = (self.now(), 0_u32);
        loop {
            self.pause(n_retries, since).await;
            match call().await {
                Err(error @ (StoreError::Damaged { .. } | StoreError::Unavailable { .. }))
                    if !self.is_over(since) =>
                {
                    tracing::error!(%error, n_retries, "store damaged, trying again");
                }
                answer => return answer,
            }
            n_retries += 1;
        }
    }

    async fn pause(&self, n_retries: u32, since: Duration) {
        tokio::select! {
            biased;
            () = self.closing.cancelled() => {}
            () = self.clock.sleep(self.delay(n_retries, since)) => {}
        }
    }

    /// Doubles from 50 ms on, anywhere in its upper half so that a fleet does not come back all at
    /// once. The last try is when the patience ends.
    fn delay(&self, n_retries: u32, since: Duration) -> Duration {
        let (delay_max, left) = match self.patience {
            Some(patience) => (DELAY_MAX_PATIENT, (since + patience).saturating_sub(self.now())),
            None => (DELAY_MAX_ENDLESS, Duration::MAX),
        };
        let full = DELAY_MIN.saturating_mul(1 << n_retries.min(10)).min(delay_max);
        let half = full / 2;
        let chance = u32::try_from(self.ids.random() >> 32).unwrap_or_default();
        (half + half.mul_f64(f64::from(chance) / f64::from(u32::MAX))).min(left)
    }
}
