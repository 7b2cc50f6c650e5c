//! Why a command did not do what it was asked, and how its process exits then.

use std::io;
use std::process::ExitCode;

use crate::error::Error;
use crate::ports::StoreError;

/// Why a command did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The user asked for something that cannot be.
    #[error("{message}")]
    Usage {
        /// What is wrong.
        message: String,
        /// What to type instead.
        hint: &'static str,
    },
    /// The engine or the store refused or failed.
    #[error(transparent)]
    Engine(#[from] Error),
    /// It ran, and it did not end as it should.
    #[error("{0}")]
    Unexpected(String),
    /// The output could not be written, or the process could not be set up.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Failure {
    /// Where to read more.
    pub(super) fn hint(&self) -> Option<String> {
        match self {
            Self::Usage { hint, .. } => Some((*hint).to_owned()),
            Self::Engine(error) => Some(format!("stepwell explain {}", error.code())),
            Self::Unexpected(_) | Self::Io(_) => None,
        }
    }

    /// 2 for what was typed wrong, as of the options themselves, and 1 for everything else.
    pub(super) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage { .. } => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Engine(error.into())
    }
}
