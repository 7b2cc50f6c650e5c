//! Rows of `wait`.

use stepwell_core::id::{DefinitionId, RunKey};
use stepwell_core::run::{WaitKind, WaitRow};
use stepwell_core::time::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use super::cells::{Cells, Columns, columns};
use super::{Param, Read, int, int32, json, key};

columns! {
    /// The columns of `wait`. Lists of signals are sent as JSON: the server would take a list of
    /// lists for one list.
    WAIT: Col = "wait" {
        key Run "run" "uuid",
        key Node "node" "int",
        key Key "key" "text",
        kept Number "number" "bigint",
        kept Place "place" "int",
        kept Kind "kind" "smallint",
        kept TenantNo "tenant_no" "int",
        kept Definition "definition" "int",
        kept Signals "signals" "text",
        kept Matching "matching" "text",
        kept NSignalsBefore "n_signals_before" "bigint",
        kept OpenedAt "opened_at" "bigint",
        kept Deadline "deadline" "bigint",
    }
}

/// `{wait_opened}` is all that is inserted of a wait.
pub(super) fn opened_words() -> [(&'static str, String); 1] {
    let value = |column: &Col| match (column, WAIT.columns[column.index()].name) {
        (Col::Signals, name) => format!("array(select json_array_elements_text(c.{name}::json))"),
        (_, name) => format!("c.{name}"),
    };
    [("{wait_opened}", Col::ALL.iter().map(value).collect::<Vec<_>>().join(", "))]
}

/// An open wait with its run.
pub(crate) fn read(row: &Row) -> Read<(RunKey, WaitRow)> {
    let cells = Cells::of(row);
    let wait = WaitRow {
        node: cells.node(Col::Node)?,
        key: cells.get(Col::Key)?,
        number: cells.unsigned(Col::Number)?,
        place: cells.count(Col::Place)?,
        kind: cells.state(Col::Kind, WaitKind::ALL, |kind| kind as i16)?,
        signals: cells.get(Col::Signals)?,
        matching: cells.json(Col::Matching, "attributes")?,
        n_signals_before: cells.unsigned(Col::NSignalsBefore)?,
        opened_at: cells.time(Col::OpenedAt)?,
        deadline: cells.optional_time(Col::Deadline)?,
    };
    Ok((cells.run_key(Col::Run)?, wait))
}

/// A wait that opens, and whose it is.
#[derive(Clone, Copy)]
pub(crate) struct OpenedWait<'r> {
    pub(crate) run: RunKey,
    pub(crate) tenant_no: u32,
    pub(crate) definition: DefinitionId,
    pub(crate) row: &'r WaitRow,
}

/// Waits as lists of values.
#[derive(Default)]
pub(crate) struct WaitArrays<'r> {
    run: Vec<Uuid>,
    node: Vec<i32>,
    key: Vec<&'r str>,
    number: Vec<i64>,
    place: Vec<i32>,
    kind: Vec<i16>,
    tenant_no: Vec<i32>,
    definition: Vec<i32>,
    signals: Vec<String>,
    matching: Vec<String>,
    n_signals_before: Vec<i64>,
    opened_at: Vec<i64>,
    deadline: Vec<Option<i64>>,
}

impl<'r> WaitArrays<'r> {
    pub(crate) fn of(waits: impl Iterator<Item = OpenedWait<'r>>) -> Read<Self> {
        let mut arrays = Self::default();
        for OpenedWait { run, tenant_no, definition, row } in waits {
            arrays.run.push(key(run));
            arrays.node.push(int32(row.node.0));
            arrays.key.push(&row.key);
            arrays.number.push(int(row.number));
            arrays.place.push(int32(row.place));
            arrays.kind.push(row.kind as i16);
            arrays.tenant_no.push(int32(tenant_no));
            arrays.definition.push(int32(definition.0));
            arrays.signals.push(json(&row.signals)?);
            arrays.matching.push(json(&row.matching)?);
            arrays.n_signals_before.push(int(row.n_signals_before));
            arrays.opened_at.push(row.opened_at.as_micros());
            arrays.deadline.push(row.deadline.map(Timestamp::as_micros));
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
            Col::Node => &self.node,
            Col::Key => &self.key,
            Col::Number => &self.number,
            Col::Place => &self.place,
            Col::Kind => &self.kind,
            Col::TenantNo => &self.tenant_no,
            Col::Definition => &self.definition,
            Col::Signals => &self.signals,
            Col::Matching => &self.matching,
            Col::NSignalsBefore => &self.n_signals_before,
            Col::OpenedAt => &self.opened_at,
            Col::Deadline => &self.deadline,
        }
    }
}
