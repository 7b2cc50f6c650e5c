//! The error a step returns.

use std::fmt;
use std::time::Duration;

use stepwell_core::failure::{Failure, FailureKind, RetryAdvice};

/// What a step returns when it fails.
///
/// Any error converts by `?` and is retried by the step's policy. [`StepError::permanent`] says
/// that trying again is pointless, [`StepError::retry_after`] when it makes sense.
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
pub struct StepError(Box<Failure>);

/// What a step returns: its output, or an error.
pub type Result<T, E = StepError> = std::result::Result<T, E>;

impl StepError {
    /// An error in words, retried by the step's policy.
    pub fn new(message: impl fmt::Display) -> Self {
        Self(Box::new(Failure::new(FailureKind::Error, "", &message.to_string())))
    }

    /// An error that trying again would not mend: the step fails at once.
    pub fn permanent(message: impl fmt::Display) -> Self {
        Self::new(message).advise(RetryAdvice::Never)
    }

    /// An error that should be retried after `delay`, as long as the policy has retries left.
    pub fn retry_after(delay: Duration, message: impl fmt::Display) -> Self {
        Self::new(message).advise(RetryAdvice::After(delay))
    }

    /// This error, never retried.
    #[must_use]
    pub fn into_permanent(self) -> Self {
        self.advise(RetryAdvice::Never)
    }

    /// The error's words.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    fn advise(mut self, advice: RetryAdvice) -> Self {
        self.0.retry = advice;
        self
    }

    pub(crate) fn into_failure(self) -> Failure {
        *self.0
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
        Self(Box::new(failure))
    }
}

impl fmt::Display for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StepError({:?})", self.0.message)
    }
}
