//! PostgreSQL's errors, by who must act: this call again, after a repair, or somebody outside.

use std::collections::BTreeSet;
use std::fmt;

use stepwell_core::id::WorkerId;
use tokio_postgres::error::SqlState;

use super::super::connection::pool::describe;
use super::super::rows::position::TenantInQueue;
use super::super::rows::worker::ServingWorker;
use crate::ports::{ClaimRef, StoreError};

const OPERATION: &str = "postgres";

/// What a call says of conflicts that did not end.
const CONFLICT: &str = "postgres, met another transaction";

pub(crate) type PgResult<T> = Result<T, PgError>;

/// Why a transaction did not go through.
#[derive(Debug)]
pub(crate) enum PgError {
    /// It starts again, after what the conflict names was repaired.
    Conflict(Conflict),
    /// The caller is told.
    Store(StoreError),
}

/// Why a transaction starts again: it met another one, or went by a guess that was wrong. A variant
/// carries what must be repaired before.
#[derive(Debug)]
pub(crate) enum Conflict {
    /// The server ended it in favour of another one.
    Deadlock(String),
    /// Tenants that were taken to be unlimited have a limit.
    TenantHasLimit(BTreeSet<u32>),
    /// A tenant's settings changed between the look at them and the lock.
    SettingsChanged,
    /// Tenants are new to queues: there is no row to lock their positions by.
    NoPositionRow(BTreeSet<TenantInQueue>),
    /// A start found that tenants have used up their positions in queues.
    OutOfPositions(BTreeSet<TenantInQueue>),
    /// Claims failed that carried another count of failures than the rows of their tasks, which
    /// have these.
    WrongFailures(Vec<(ClaimRef, u32)>),
    /// A worker is not registered as this process remembers it.
    WorkerChanged(Box<(WorkerId, ServingWorker)>),
    /// Runs are not what this process remembers of them.
    RunsChanged,
    /// Definitions or policies were changed, or another database answers than the one that this
    /// process remembers, or one restored. Definitions have this revision by now.
    OtherDatabase(i64),
    /// The id of a run that was to be inserted is taken.
    RunIdTaken,
    /// A run that kept others from being inserted is gone.
    RunGone,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Deadlock(why) => why,
            Self::TenantHasLimit(_) => "a tenant has a limit",
            Self::SettingsChanged => "a tenant's settings changed",
            Self::NoPositionRow(_) => "a tenant is new to a queue",
            Self::OutOfPositions(_) => "a queue has used up its positions",
            Self::WrongFailures(_) => "failures were counted otherwise",
            Self::WorkerChanged(_) => "a worker was registered",
            Self::RunsChanged => "runs are not what they were",
            Self::OtherDatabase(_) => "what is remembered is not what the database has",
            Self::RunIdTaken => "an id is taken",
            Self::RunGone => "a run went away",
        })
    }
}

impl From<Conflict> for PgError {
    fn from(conflict: Conflict) -> Self {
        Self::Conflict(conflict)
    }
}

impl From<StoreError> for PgError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<tokio_postgres::Error> for PgError {
    fn from(error: tokio_postgres::Error) -> Self {
        let is_conflict = |state: &SqlState| {
            [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE].contains(state)
        };
        if error.code().is_some_and(is_conflict) {
            return Self::Conflict(Conflict::Deadlock(describe(&error)));
        }
        Self::Store(StoreError::from_server(&error))
    }
}

impl From<PgError> for StoreError {
    fn from(error: PgError) -> Self {
        match error {
            PgError::Store(error) => error,
            PgError::Conflict(conflict) => {
                Self::Unavailable { operation: CONFLICT, why: conflict.to_string() }
            }
        }
    }
}

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> Self {
        PgError::from(error).into()
    }
}

impl StoreError {
    pub(crate) fn from_server(error: &tokio_postgres::Error) -> Self {
        let why = describe(error);
        let Some(db) = error.as_db_error() else {
            return Self::from_driver(error, why);
        };
        match cause(db.code(), db.message()) {
            Cause::Outage => Self::Unavailable { operation: OPERATION, why },
            Cause::Program => {
                tracing::error!(%why, "the server refuses a statement, which is tried again");
                Self::Unavailable { operation: OPERATION, why }
            }
            Cause::Data => Self::Corrupt { what: format!("{OPERATION}: {why}") },
            Cause::Damage => Self::Damaged { what: format!("{OPERATION}: {why}") },
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

/// What a server's error comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Something outside, which passes.
    Outage,
    /// A statement that does not fit the schema, or the server itself: somebody has to mend it, and
    /// no task fails for it.
    Program,
    /// The rows that were to be written: they contradict what is stored, or are too large.
    Data,
    /// Pages or an index of the database.
    Damage,
}

/// What an error of this state, with these words, comes from.
pub(crate) fn cause(state: &SqlState, message: &str) -> Cause {
    // The server words what programmers should read in English only.
    let is_too_large = message.starts_with("invalid memory alloc request size");
    match (state.code(), &state.code()[..2]) {
        // Rights that were taken away can be given again.
        (code, _) if code == SqlState::INSUFFICIENT_PRIVILEGE.code() => Cause::Outage,
        (_, "22" | "23" | "54") => Cause::Data,
        (_, "XX") if is_too_large => Cause::Data,
        ("XX001" | "XX002", _) => Cause::Damage,
        (_, "26" | "42" | "XX") => Cause::Program,
        _ => Cause::Outage,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_data_of_an_item_can_cause_is_taken_for_it() {
        let told = |code: &str| cause(&SqlState::from_code(code), "words");
        for code in ["22021", "22P05", "23514", "54000", "54001"] {
            assert_eq!(told(code), Cause::Data, "{code}");
        }
        for code in ["26000", "42601", "42703", "42804", "42P01", "42P05", "XX000"] {
            assert_eq!(told(code), Cause::Program, "{code}");
        }
        for code in ["08006", "25006", "40001", "42501", "53100", "53300", "57014", "57P01"] {
            assert_eq!(told(code), Cause::Outage, "{code}");
        }
        assert_eq!([told("XX001"), told("XX002")], [Cause::Damage; 2]);
    }

    #[test]
    fn what_is_too_large_for_the_server_is_about_data() {
        let words = "invalid memory alloc request size 1073741824";
        assert_eq!(cause(&SqlState::INTERNAL_ERROR, words), Cause::Data);
    }
}
