//! Rows to values and back, a file per table. A row that makes no sense is refused, never guessed
//! at.
//!
//! A file lists the columns of its table once: statements name them from that list, rows are read
//! by the names in it, and lists of values are written in its order. Nothing outside of this folder
//! knows at which place of a row a column stands.

pub(crate) mod attempt;
mod cells;
pub(crate) mod definition;
pub(crate) mod event;
pub(crate) mod leader;
pub(crate) mod memo;
mod param;
pub(crate) mod payload;
pub(crate) mod position;
pub(crate) mod progress;
pub(crate) mod queue;
pub(crate) mod run;
pub(crate) mod server;
pub(crate) mod signal;
pub(crate) mod task;
pub(crate) mod tenant;
pub(crate) mod timer;
pub(crate) mod wait;
pub(crate) mod worker;

pub(crate) use param::Param;
use serde::Serialize;
use stepwell_core::id::{Node, RunKey, Token};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::outbound::sql::Table;
use crate::ports::StoreError;

/// What reading a row gives.
pub(crate) type Read<T> = Result<T, StoreError>;

/// The tables that statements name columns of.
pub(crate) const TABLES: &[Table] = &[
    attempt::ATTEMPT,
    definition::DEFINITION,
    event::EVENT,
    leader::LEADER,
    memo::MEMO,
    payload::INPUT,
    payload::OUTPUT,
    position::TENANT_POSITION,
    queue::ADMITTED,
    queue::QUEUED,
    run::RUN,
    signal::SIGNAL,
    task::TASK,
    timer::TIMER,
    wait::WAIT,
];

/// Words of statements beyond the columns of tables and the states of the core, with what they
/// stand for.
pub(crate) fn words() -> Vec<(&'static str, String)> {
    let mut words = vec![
        ("{now}", "(extract(epoch from now()) * 1000000)::bigint".to_owned()),
        ("{clock}", "(extract(epoch from clock_timestamp()) * 1000000)::bigint".to_owned()),
        // Not in microseconds: it is told with every row, and that arithmetic costs more than the
        // row does.
        ("{locked_at}", "clock_timestamp()".to_owned()),
        ("{life}", worker::LIFE.to_owned()),
        ("{serving}", worker::SERVING.to_owned()),
        ("{tenant_settings}", tenant::SETTINGS.to_owned()),
    ];
    words.extend(worker::state_words());
    words.extend(run::fresh_words());
    words.extend(memo::stored_words());
    words.extend(wait::opened_words());
    words
}

/// A row that another row points at is missing, or one that makes no sense.
pub(crate) fn corrupt(what: impl Into<String>) -> StoreError {
    StoreError::Corrupt { what: what.into() }
}

/// Reads all rows with one reader.
pub(crate) fn read_all<T>(rows: &[Row], read: impl Fn(&Row) -> Read<T>) -> Read<Vec<T>> {
    rows.iter().map(read).collect()
}

pub(crate) fn key(run: RunKey) -> Uuid {
    Uuid::from_u128(run.0)
}

pub(crate) fn keys<'k>(runs: impl IntoIterator<Item = &'k RunKey>) -> Vec<Uuid> {
    runs.into_iter().map(|run| key(*run)).collect()
}

pub(crate) fn token(token: Token) -> Uuid {
    Uuid::from_u128(token.0)
}

/// Unsigned numbers of the engine fit a signed column by construction.
pub(crate) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn int32(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// How many rows a statement gives at most.
pub(crate) fn rows_max(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn json(value: &impl Serialize) -> Read<String> {
    serde_json::to_string(value).map_err(|error| corrupt(error.to_string()))
}

/// Tasks by run and node, as two lists.
pub(crate) struct TaskKeys {
    runs: Vec<Uuid>,
    nodes: Vec<i32>,
}

impl TaskKeys {
    pub(crate) fn of(tasks: impl IntoIterator<Item = (RunKey, Node)>) -> Self {
        let (runs, nodes) = tasks.into_iter().map(|(run, node)| (key(run), int32(node.0))).unzip();
        Self { runs, nodes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(crate) fn params(&self) -> [Param<'_>; 2] {
        [&self.runs, &self.nodes]
    }
}
