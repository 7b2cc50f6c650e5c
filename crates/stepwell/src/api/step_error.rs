//! The error a step returns.

use std::fmt;
use std::time::Duration;

use stepwell_core::failure::{Failure, FailureKind, RetryAdvice};
use stepwell_core::run::WaitFor;

use super::signalled::Wait;
use crate::engine::NoOutput;

/// What a step returns when it fails.
///
/// Any error converts by `?` and is retried by the step's policy. [`StepError::permanent`] says
/// that trying again is pointless, [`StepError::retry_after`] when it makes sense. A [`Wait`]
/// converts, too: the step is executed again when the signal has come.
///
/// It is deliberately no [`std::error::Error`] itself; that is what lets every error convert.
///
/// ```
/// # use stepwell::{StepError, Result};
/// fn parse(text: &str) -> Result<u32> {
///     if text.is_empty() {
///         return Err(StepError::permanent("there is no number to parse"));
///     }
///     Ok(text.parse()?)
/// }
/// assert!(parse("7").is_ok());
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct StepError(Box<Reason>);

/// Why a step gives no output.
#[derive(Clone, PartialEq, Eq)]
enum Reason {
    Failed(Failure),
    Waits(WaitFor),
}

/// What a step returns: its output, or an error.
pub type Result<T, E = StepError> = std::result::Result<T, E>;

impl StepError {
    /// An error in words, retried by the step's policy.
    pub fn new(message: impl fmt::Display) -> Self {
        Self::failed(Failure::new(FailureKind::Error, "", &message.to_string()))
    }

    /// An error that trying again would not mend: the step fails at once.
    pub fn permanent(message: impl fmt::Display) -> Self {
        Self::new(message).advise(RetryAdvice::Never)
    }

    /// An error that should be retried after `delay`, as long as the policy has retries left.
    pub fn retry_after(delay: Duration, message: impl fmt::Display) -> Self {
        Self::new(message).advise(RetryAdvice::After(delay))
    }

    /// This error, never retried. A [`Wait`] stays what it is.
    #[must_use]
    pub fn into_permanent(self) -> Self {
        self.advise(RetryAdvice::Never)
    }

    /// The error's words.
    #[must_use]
    pub fn message(&self) -> &str {
        match &*self.0 {
            Reason::Failed(failure) => &failure.message,
            Reason::Waits(_) => "the step waits for a signal: hand this up by `?`",
        }
    }

    /// Whether the step waits for a signal instead of failing: such an error must be handed up.
    #[must_use]
    pub fn is_wait(&self) -> bool {
        matches!(*self.0, Reason::Waits(_))
    }

    fn failed(failure: Failure) -> Self {
        Self(Box::new(Reason::Failed(failure)))
    }

    fn advise(mut self, advice: RetryAdvice) -> Self {
        if let Reason::Failed(failure) = &mut *self.0 {
            failure.retry = advice;
        }
        self
    }

    pub(crate) fn into_no_output(self) -> NoOutput {
        match *self.0 {
            Reason::Failed(failure) => NoOutput::Failed(failure),
            Reason::Waits(wait_for) => NoOutput::Waits(wait_for),
        }
    }

    /// A stored value that does not fit will not fit the next time either.
    pub(crate) fn payload(error: &crate::error::Error) -> Failure {
        Failure::new(FailureKind::Payload, "", &error.to_string()).with_retry(RetryAdvice::Never)
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for StepError {
    fn from(error: E) -> Self {
        let type_name = std::any::type_name::<E>();
        let mut failure = Failure::new(FailureKind::Error, type_name, &error.to_string());
        let mut source = error.source();
        while let Some(cause) = source {
            failure = failure.caused_by(&cause.to_string());
            source = cause.source();
        }
        Self::failed(failure)
    }
}

impl From<Wait> for StepError {
    fn from(Wait(wait_for): Wait) -> Self {
        Self(Box::new(Reason::Waits(wait_for)))
    }
}

impl fmt::Display for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl fmt::Debug for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StepError({:?})", self.message())
    }
}
