//! SQLite's errors, by who must act.

use rusqlite::ErrorCode;

use crate::ports::StoreError;

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let why = error.to_string();
        match error.sqlite_error_code() {
            Some(
                ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::DiskFull
                | ErrorCode::SystemIoFailure
                | ErrorCode::OutOfMemory
                | ErrorCode::CannotOpen
                | ErrorCode::ReadOnly
                | ErrorCode::PermissionDenied
                | ErrorCode::FileLockingProtocolFailed
                | ErrorCode::OperationInterrupted,
            ) => Self::Unavailable { operation: "sqlite", why },
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => damaged(&why),
            _ => Self::Corrupt { what: format!("sqlite: {why}") },
        }
    }
}

/// Pages of the file are not what they should be.
pub(super) fn damaged(why: &str) -> StoreError {
    StoreError::Damaged { what: format!("the file is damaged: {why}") }
}

/// A row that another row points at is missing, or one that makes no sense.
pub(crate) fn corrupt(what: impl Into<String>) -> StoreError {
    StoreError::Corrupt { what: what.into() }
}
