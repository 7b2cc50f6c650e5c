//! PostgreSQL's errors, by who must act.

use tokio_postgres::error::SqlState;

use crate::ports::StoreError;

/// Marks errors after which the same call may be tried again at once.
const CONFLICT: &str = "postgres, met another transaction";
const OPERATION: &str = "postgres";

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::from_server(&error)
    }
}

impl StoreError {
    pub(super) fn from_server(error: &tokio_postgres::Error) -> Self {
        let why = describe(error);
        let Some(state) = error.code() else {
            return Self::from_driver(error, why);
        };
        if *state == SqlState::INSUFFICIENT_PRIVILEGE {
            // Rights that were taken away can be given again; no task fails for it.
            return Self::Unavailable { operation: OPERATION, why };
        }
        if [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE].contains(state) {
            return Self::Unavailable { operation: CONFLICT, why };
        }
        match &state.code()[..2] {
            // Data that contradicts itself or is too large, a schema that is not ours, or a
            // statement that is wrong.
            "22" | "23" | "42" | "54" | "XX" => {
                Self::Corrupt { what: format!("{OPERATION}: {why}") }
            }
            _ => Self::Unavailable { operation: OPERATION, why },
        }
    }

    /// An error that no server sent. The driver tells apart by words only what it could not
    /// write, which no retry can help, from what it could not send.
    fn from_driver(error: &tokio_postgres::Error, why: String) -> Self {
        let words = error.to_string();
        if words.starts_with("error encoding") || words.starts_with("error serializing") {
            return Self::Corrupt { what: format!("{OPERATION}: {why}") };
        }
        Self::Unavailable { operation: OPERATION, why }
    }
}

/// The server's own words, which the driver's summary leaves out.
pub(super) fn describe(error: &tokio_postgres::Error) -> String {
    if let Some(db) = error.as_db_error() {
        return format!("{} ({})", db.message(), db.code().code());
    }
    let source = std::error::Error::source(error);
    source.map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

/// Somebody changed what this transaction had read; it starts again.
pub(super) fn conflict(why: &str) -> StoreError {
    StoreError::Unavailable { operation: CONFLICT, why: why.to_owned() }
}

pub(super) fn is_conflict(error: &StoreError) -> bool {
    matches!(error, StoreError::Unavailable { operation, .. } if *operation == CONFLICT)
}

/// A row that another row points at is missing, or one that makes no sense.
pub(super) fn corrupt(what: impl Into<String>) -> StoreError {
    StoreError::Corrupt { what: what.into() }
}
