//! Real processes on real databases, faults of every kind, and a checker of what became of them.
//!
//! The binary `fleet-worker` is an ordinary program on `stepwell`. The library starts such
//! processes, kills and stops them, crashes the database under them, starts runs as a client, and
//! at last compares what the processes wrote down with what the store says. The binary `chaos`
//! does all of that at random. Nothing here is for users of Stepwell.

pub mod address;
pub mod asked;
pub mod chance;
pub mod checker;
pub mod cluster;
pub mod expected;
pub mod fault_injector;
pub mod fleet;
pub mod functions;
pub mod history;
pub mod jumping_clock;
pub mod load;
pub mod plan;
pub mod process;
pub mod real_time;
pub mod start_record;
pub mod workflow;

use stepwell::ports::StoreError;

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Failure(pub String);

/// What calls of this crate give.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// A failure while doing `what`.
    pub fn of(what: &str, why: impl std::fmt::Display) -> Self {
        Self(format!("{what}: {why}"))
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<stepwell::Error> for Failure {
    fn from(error: stepwell::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self(error.to_string())
    }
}
