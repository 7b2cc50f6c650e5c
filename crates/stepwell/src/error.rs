//! The errors that users of an engine and openers of stores meet, by who must act.

use std::time::Duration;

use stepwell_core::code::Code;
use stepwell_core::id::RunId;
use stepwell_core::run::RunFailure;
use stepwell_core::workflow::DefinitionError;

use crate::ports::StoreError;

/// What can go wrong when an engine is used. Every variant has a [code](Error::code) with a page
/// that `stepwell explain` prints.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller asked for something that cannot be. Nothing was changed.
    #[error("{code}: {message}")]
    Refused {
        /// The stable code.
        code: Code,
        /// What is wrong, and the remedy.
        message: String,
    },
    /// A workflow is not well formed. Nothing was registered.
    #[error("{}: workflow {workflow:?}: {source}", definition_code(.source))]
    Definition {
        /// The workflow.
        workflow: String,
        /// What is wrong with it.
        source: DefinitionError,
    },
    /// The run failed.
    #[error(
        "{}: run {:?} failed{}: {}",
        Code::RunFailed, .run.as_str(), in_step(.failure), .failure.failure.message
    )]
    RunFailed {
        /// The run.
        run: RunId,
        /// The failure that decided its end.
        failure: Box<RunFailure>,
    },
    /// The run was cancelled.
    #[error("{}: run {:?} was cancelled", Code::RunCancelled, .run.as_str())]
    RunCancelled {
        /// The run.
        run: RunId,
    },
    /// The wait took longer than allowed. The run goes on.
    #[error("{}: run {:?} has not ended after {waited:?}", Code::WaitTimedOut, .run.as_str())]
    WaitTimedOut {
        /// The run.
        run: RunId,
        /// How long was waited.
        waited: Duration,
    },
    /// The store could not be reached. Retry; starts with the same run id find themselves.
    #[error("{}: {message}", Code::StoreUnavailable)]
    Unavailable {
        /// The store's words.
        message: String,
    },
    /// Stored data contradicts itself. Stop and tell a human.
    #[error("{}: {message}", Code::StoreCorrupt)]
    Corrupt {
        /// What contradicts what.
        message: String,
    },
}

impl Error {
    /// A refusal.
    pub(crate) fn refused(code: Code, message: impl Into<String>) -> Self {
        Self::Refused { code, message: message.into() }
    }

    /// The engine was stopped before the call, or its runtime has ended.
    pub(crate) fn stopped() -> Self {
        let message = "the engine was stopped, or the tokio runtime it was built on has ended; \
                       build a new one";
        Self::refused(Code::Stopped, message)
    }

    /// The stable code of this error.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::Refused { code, .. } => *code,
            Self::Definition { source, .. } => definition_code(source),
            Self::RunFailed { .. } => Code::RunFailed,
            Self::RunCancelled { .. } => Code::RunCancelled,
            Self::WaitTimedOut { .. } => Code::WaitTimedOut,
            Self::Unavailable { .. } => Code::StoreUnavailable,
            Self::Corrupt { .. } => Code::StoreCorrupt,
        }
    }
}

/// Where a run failed; a deadline passes in no step.
fn in_step(failure: &RunFailure) -> String {
    match failure.step.as_str() {
        "" => String::new(),
        step => format!(" in step {step:?}"),
    }
}

fn definition_code(error: &DefinitionError) -> Code {
    match error {
        DefinitionError::WorkflowName { .. }
        | DefinitionError::StepName { .. }
        | DefinitionError::ReservedName { .. } => Code::BadName,
        DefinitionError::DuplicateName { .. } => Code::DuplicateName,
        DefinitionError::NoSteps | DefinitionError::TooLarge { .. } => Code::BadSize,
        DefinitionError::Cycle { .. } => Code::Cycle,
        DefinitionError::Policy { .. } | DefinitionError::WorkflowPolicy { .. } => Code::BadPolicy,
        _ => Code::UnknownParent,
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Refused { code, message } => Self::Refused { code, message },
            StoreError::Damaged { .. } => Self::refused(Code::DamagedStore, error.to_string()),
            StoreError::NotLeader => Self::refused(Code::NotLeader, error.to_string()),
            StoreError::Corrupt { .. } => Self::Corrupt { message: error.to_string() },
            StoreError::Unavailable { .. } => Self::Unavailable { message: error.to_string() },
        }
    }
}
