//! Cancelling a run: `run.cancel()` as a builder to await.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;

use stepwell_core::code::Code;
use stepwell_core::decide::{CancelAnswer, CancelRequest};
use stepwell_core::id::RunKey;
use stepwell_core::limits::{NAME_BYTES_MAX, REASON_BYTES_MAX};

use super::engine::Inner;
use crate::error::Error;

/// Cancels a run when awaited, and tells what became of the request. A request that is repeated
/// because its reply was lost may find the run already ending by it.
#[must_use = "a run is cancelled by awaiting this"]
pub struct Cancel {
    inner: Arc<Inner>,
    run: RunKey,
    unknown: Error,
    request: CancelRequest,
}

impl Cancel {
    /// A request by this engine's worker.
    pub(super) fn new(inner: Arc<Inner>, run: RunKey, unknown: Error) -> Self {
        let request = CancelRequest::by(inner.parts.worker.as_str());
        Self { inner, run, unknown, request }
    }

    /// Why, to be read in the run's log. At most 1 KiB.
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.request.reason = Some(reason.into());
        self
    }

    /// Who asks, to be read in the run's log; the engine's worker id if not given.
    pub fn by(mut self, by: impl Into<String>) -> Self {
        self.request.by = by.into();
        self
    }

    /// Ends the run at once. Its failure handler is not executed; one that is at work already is
    /// told to stop, and the run ends as it was decided.
    pub fn force(mut self) -> Self {
        self.request.force = true;
        self
    }

    async fn send(self) -> Result<CancelAnswer, Error> {
        self.inner.check_open()?;
        check(&self.request)?;
        let parts = &self.inner.parts;
        let cancel = || parts.store.cancel(self.run, self.request.clone());
        let answer = parts.patiently(cancel).await?;
        answer.ok_or(self.unknown)
    }
}

fn check(request: &CancelRequest) -> Result<(), Error> {
    let refuse = |what: &str, why: &str| {
        Err(Error::refused(Code::BadArgument, format!("{what} of the cancellation {why}")))
    };
    let reason = request.reason.as_deref().unwrap_or_default();
    if reason.len() > REASON_BYTES_MAX {
        return refuse("the reason", "is over 1,024 bytes; say it in fewer words");
    }
    if reason.contains('\0') || request.by.contains('\0') {
        return refuse("the reason or the asker", "has a NUL character; leave it out");
    }
    if request.by.is_empty() || request.by.len() > NAME_BYTES_MAX {
        return refuse("the asker", "is empty or over 200 bytes; give a name");
    }
    Ok(())
}

impl IntoFuture for Cancel {
    type Output = Result<CancelAnswer, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
