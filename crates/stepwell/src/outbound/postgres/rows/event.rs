//! Rows of `event`.

use stepwell_core::id::{Node, RunKey};
use stepwell_core::run::EventRow;
use tokio_postgres::Row;
use uuid::Uuid;

use super::cells::{Cells, Columns, columns};
use super::{Param, Read, corrupt, int, int32, json, key};

columns! {
    /// The columns of `event`.
    EVENT: Col = "event" {
        key Run "run" "uuid",
        key Number "number" "bigint",
        kept At "at" "bigint",
        kept Node "node" "int",
        kept Attempt "attempt" "int",
        kept Kind "kind" "text",
    }
}

/// An irregular event with its run.
pub(crate) fn read(row: &Row) -> Read<(RunKey, EventRow)> {
    let cells = Cells::of(row);
    let node: Option<i32> = cells.get(Col::Node)?;
    let node = node.map(|node| u32::try_from(node).map(Node)).transpose();
    let event = EventRow {
        number: cells.unsigned(Col::Number)?,
        at: cells.time(Col::At)?,
        node: node.map_err(|_| corrupt("an event's node is no number"))?,
        attempt: cells.count(Col::Attempt)?,
        kind: cells.json(Col::Kind, "event")?,
    };
    Ok((cells.run_key(Col::Run)?, event))
}

/// Events as lists of values.
#[derive(Default)]
pub(crate) struct EventArrays {
    run: Vec<Uuid>,
    number: Vec<i64>,
    at: Vec<i64>,
    node: Vec<Option<i32>>,
    attempt: Vec<i32>,
    kind: Vec<String>,
}

impl EventArrays {
    pub(crate) fn of<'r>(events: impl Iterator<Item = (RunKey, &'r EventRow)>) -> Read<Self> {
        let mut arrays = Self::default();
        for (run, event) in events {
            arrays.run.push(key(run));
            arrays.number.push(int(event.number));
            arrays.at.push(event.at.as_micros());
            arrays.node.push(event.node.map(|node| int32(node.0)));
            arrays.attempt.push(int32(event.attempt));
            arrays.kind.push(json(&event.kind)?);
        }
        Ok(arrays)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.run.is_empty()
    }

    pub(crate) fn params(&self) -> Vec<Param<'_>> {
        Col::ALL.iter().map(|column| self.param(*column)).collect()
    }

    fn param(&self, column: Col) -> Param<'_> {
        match column {
            Col::Run => &self.run,
            Col::Number => &self.number,
            Col::At => &self.at,
            Col::Node => &self.node,
            Col::Attempt => &self.attempt,
            Col::Kind => &self.kind,
        }
    }
}
