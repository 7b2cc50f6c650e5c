//! The limit: the same durable rows written by hand, as fast as the database takes them.
//!
//! Tasks go through in batches, each in three transactions: insert tasks and their places in a
//! queue; claim, which takes the places in order and marks the tasks; complete, which marks them
//! again and inserts an event for each. There are no rules, no fairness and no leases. What a
//! store gives up for those shows in the share it reaches.

mod postgres;
mod sqlite;

use serde::Serialize;

use super::bench_store::StoreKind;
use super::cluster::Server;
use crate::commands::Failure;

/// Tasks in one transaction.
const BATCH: usize = 1_000;

/// How fast hand-written statements are.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Limit {
    pub(super) tasks_per_second: f64,
    /// The number of connections that was best.
    pub(super) connections: usize,
}

/// Measures the limit of a store with this many tasks; `None` in memory, where nothing is written.
pub(super) async fn measure(
    kind: StoreKind,
    server: Option<&Server>,
    n_tasks: usize,
) -> Result<Option<Limit>, Failure> {
    let n_batches = n_tasks.div_ceil(BATCH).max(1);
    match (kind, server) {
        (StoreKind::Postgres, Some(server)) => postgres::measure(server, n_batches).await.map(Some),
        (StoreKind::Sqlite, _) => sqlite::measure(n_batches).await.map(Some),
        _ => Ok(None),
    }
}
