//! Rows of `timer`.

use std::time::Duration;

use stepwell_core::id::{Node, RunKey};
use stepwell_core::time::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use super::cells::{Cells, Columns, columns, selected};
use super::{Param, Read, int32, key};
use crate::ports::StoreError;

columns! {
    /// The columns of `timer`, but for its number of arrival, which the database gives.
    TIMER: Col = "timer" {
        kept DueAt "due_at" "bigint",
        key Run "run" "uuid",
        key Node "node" "int",
    }
}

/// A timer: whose it is, and when it is due.
pub(crate) fn read(row: &Row) -> Read<((RunKey, Node), Timestamp)> {
    let cells = Cells::of(row);
    let task = (cells.run_key(Col::Run)?, cells.node(Col::Node)?);
    Ok((task, cells.time(Col::DueAt)?))
}

/// When a timer is due.
pub(crate) fn read_due(row: &Row) -> Read<Timestamp> {
    Cells::of(row).time(Col::DueAt)
}

selected! { Due { IsLeader, Micros, } }

/// How long until the next timer is due, if there is one, unless another leads.
pub(crate) fn read_until_due(row: &Row) -> Read<Option<Duration>> {
    let cells = Cells::of(row);
    if !cells.get::<bool>(Due::IsLeader)? {
        return Err(StoreError::NotLeader);
    }
    let micros: Option<i64> = cells.get(Due::Micros)?;
    Ok(micros.map(|micros| Duration::from_micros(u64::try_from(micros).unwrap_or(0))))
}

/// Timers as lists of values.
#[derive(Default)]
pub(crate) struct TimerArrays {
    due_at: Vec<i64>,
    run: Vec<Uuid>,
    node: Vec<i32>,
}

impl TimerArrays {
    pub(crate) fn of(timers: impl Iterator<Item = (RunKey, Node, Timestamp)>) -> Self {
        let mut arrays = Self::default();
        for (run, node, due_at) in timers {
            arrays.due_at.push(due_at.as_micros());
            arrays.run.push(key(run));
            arrays.node.push(int32(node.0));
        }
        arrays
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.run.is_empty()
    }

    pub(crate) fn params(&self) -> Vec<Param<'_>> {
        let param = |column: &Col| -> Param<'_> {
            match column {
                Col::DueAt => &self.due_at,
                Col::Run => &self.run,
                Col::Node => &self.node,
            }
        };
        Col::ALL.iter().map(param).collect()
    }
}
