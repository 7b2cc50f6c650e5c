//! Errors of stores, by who must act.

use stepwell_core::code::Code;
use stepwell_core::id::DefinitionId;
use stepwell_core::queue::FairError;
use stepwell_core::workflow::{Definition, VersionConflict};

/// Why a store did not do what it was asked.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The database could not be reached or has no room. Retry with backoff; whether the
    /// transaction took effect is unknown, so the retry carries the same ids and tokens.
    #[error("{operation}: {why}")]
    Unavailable {
        /// What was being done.
        operation: &'static str,
        /// The database's words.
        why: String,
    },
    /// The caller asked for something that cannot be. Nothing was changed.
    #[error("{message}")]
    Refused {
        /// The stable code.
        code: Code,
        /// What is wrong, and the remedy.
        message: String,
    },
    /// The epoch is over: somebody else leads. Stop leading.
    #[error("another worker leads by now")]
    NotLeader,
    /// The database itself is damaged. Stop, and restore it.
    #[error("{what}; restore a backup")]
    Damaged {
        /// What is damaged, in the database's words.
        what: String,
    },
    /// Stored data contradicts itself. Stop and tell a human.
    #[error("stored data contradicts itself: {what}")]
    Corrupt {
        /// What contradicts what.
        what: String,
    },
}

impl StoreError {
    /// Whether it may be due to some of the rows concerned, so that the others go through without
    /// those.
    pub(crate) fn is_about_rows(&self) -> bool {
        matches!(self, Self::Corrupt { .. } | Self::Refused { .. } | Self::Damaged { .. })
    }

    /// The store has no definition of this number, or another than the caller means.
    pub(crate) fn unknown_definition(id: DefinitionId) -> Self {
        let message = format!("definition {} is not stored", id.0);
        Self::Refused { code: Code::UnknownWorkflow, message }
    }

    /// The store has not all the services that a worker means.
    pub(crate) fn unknown_service() -> Self {
        let message = "a workflow of the worker is not stored".into();
        Self::Refused { code: Code::UnknownWorkflow, message }
    }

    /// Whether definitions that the caller remembers are not stored, or are others by now.
    pub(crate) fn is_unknown_definition(&self) -> bool {
        matches!(self, Self::Refused { code: Code::UnknownWorkflow, .. })
    }

    /// The author's version of a definition is that of another structure, or older than its own.
    pub(crate) fn version_conflict(definition: &Definition, conflict: VersionConflict) -> Self {
        Self::Refused {
            code: Code::VersionConflict,
            message: format!(
                "workflow {:?}: {conflict} with another structure or a greater number; give a new \
                 structure a new version",
                definition.workflow,
            ),
        }
    }
}

impl From<FairError> for StoreError {
    fn from(error: FairError) -> Self {
        Self::Refused { code: Code::FairnessLimit, message: error.to_string() }
    }
}
