//! The error a step returns.

use std::any::Any;
use std::fmt;
use std::time::Duration;

use stepwell_core::failure::{Failure, FailureKind, RetryAdvice};
use stepwell_core::run::WaitFor;

use super::signalled::Wait;
use crate::engine::NoOutput;
use crate::error::Error;
use crate::ports::Payload;

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
    /// Blocking code only: the function stops here and goes on later.
    Suspended,
    /// The function goes on with another input.
    Continues(Payload),
}

/// What kind of error a step got, to match on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StepErrorKind {
    /// An error of the code itself.
    Error,
    /// A step of the function failed for good: [`StepError::key`] says which.
    StepFailed,
    /// A run that was waited for failed.
    WorkflowFailed,
    /// The step was told to stop, or a run that was waited for was cancelled.
    Cancelled,
    /// Nothing failed: the function ends here for now and goes on later. Hand it up by `?`.
    Suspended,
}

/// What the type of an error is called that says: told to stop.
const CANCELLED: &str = "stepwell::Cancelled";
/// What the type of an error is called that says: a run failed.
const WORKFLOW_FAILED: &str = "stepwell::WorkflowFailed";

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
            Reason::Suspended => "the function is suspended: hand this up by `?`",
            Reason::Continues(_) => "the function goes on with another input: hand this up by `?`",
        }
    }

    /// Whether the step waits for a signal instead of failing: such an error must be handed up.
    #[must_use]
    pub fn is_wait(&self) -> bool {
        matches!(*self.0, Reason::Waits(_))
    }

    /// What kind of error it is.
    #[must_use]
    pub fn kind(&self) -> StepErrorKind {
        match &*self.0 {
            Reason::Failed(failure) if failure.type_name == CANCELLED => StepErrorKind::Cancelled,
            Reason::Failed(failure) if failure.type_name == WORKFLOW_FAILED => {
                StepErrorKind::WorkflowFailed
            }
            Reason::Failed(Failure { key: Some(_), .. }) => StepErrorKind::StepFailed,
            Reason::Failed(_) => StepErrorKind::Error,
            _ => StepErrorKind::Suspended,
        }
    }

    /// What failed; `None` if nothing did.
    #[must_use]
    pub fn failure(&self) -> Option<&Failure> {
        match &*self.0 {
            Reason::Failed(failure) => Some(failure),
            _ => None,
        }
    }

    /// The step of the function that failed, by the key that it is recorded under.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.failure().and_then(|failure| failure.key.as_deref())
    }

    pub(crate) fn cancelled() -> Self {
        let message = "the step was told to stop";
        Self::failed(Failure::new(FailureKind::Error, CANCELLED, message))
    }

    pub(crate) fn suspended() -> Self {
        Self(Box::new(Reason::Suspended))
    }

    pub(crate) fn continues(input: Payload) -> Self {
        Self(Box::new(Reason::Continues(input)))
    }

    pub(crate) fn is_suspension(&self) -> bool {
        *self.0 == Reason::Suspended
    }

    /// A recorded failure.
    pub(crate) fn of_failure(failure: Failure) -> Self {
        Self::failed(failure)
    }

    /// An error of the engine: an unreachable store may come back, the rest would not go better.
    pub(crate) fn of_error(error: Error) -> Self {
        match error {
            Error::Unavailable { .. } => Self::new(error),
            error => Self::permanent(error),
        }
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
            Reason::Suspended => NoOutput::Suspended,
            Reason::Continues(input) => NoOutput::Continues(input),
        }
    }

    /// A stored value that does not fit will not fit the next time either.
    pub(crate) fn payload(error: &Error) -> Failure {
        Failure::new(FailureKind::Payload, "", &error.to_string()).with_retry(RetryAdvice::Never)
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for StepError {
    fn from(error: E) -> Self {
        let type_name = match (&error as &dyn Any).downcast_ref::<Error>() {
            Some(Error::RunFailed { .. }) => WORKFLOW_FAILED,
            Some(Error::RunCancelled { .. }) => CANCELLED,
            _ => std::any::type_name::<E>(),
        };
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
