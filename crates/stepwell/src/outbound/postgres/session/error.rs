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
    /// Policies were replaced by another process, as this number tells, and a wait opens by what
    /// this process remembers of them.
    PoliciesChanged(i64),
    /// The id of a run that was to be inserted is taken.
    RunIdTaken,
    /// A run that kept others from being inserted is gone.
    RunGone,
    /// Tenants have other numbers than this process remembers: another database answers than the
    /// one they were read from, or one restored.
    TenantsRenumbered,
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
            Self::PoliciesChanged(_) => "policies were replaced",
            Self::RunIdTaken => "an id is taken",
            Self::RunGone => "a run went away",
            Self::TenantsRenumbered => "tenants have other numbers by now",
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
        let Some(state) = error.code() else {
            return Self::from_driver(error, why);
        };
        if *state == SqlState::INSUFFICIENT_PRIVILEGE {
            // Rights that were taken away can be given again; no task fails for it.
            return Self::Unavailable { operation: OPERATION, why };
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
