//! Definitions of workflows.

use rusqlite::{Row, params};
use stepwell_core::id::{DefinitionId, Mark};
use stepwell_core::workflow::Definition;

use super::cells::{Cells, ONLY, Rows, json};
use crate::outbound::sql::{Column, Table, named};
use crate::outbound::sqlite::file::{File, corrupt};
use crate::ports::StoredDefinition;

const SQL: &str = include_str!("../sql/definition.sql");
const INSERT_DEFINITION: &str = named(SQL, "insert_definition");
const INSERT_STEP: &str = named(SQL, "insert_step");
const READ_DEFINITION: &str = named(SQL, "read_definition");
const READ_DEFINITION_IDS: &str = named(SQL, "read_definition_ids");
const READ_DEFINITIONS: &str = named(SQL, "read_definitions");
const UPDATE_DEFINITION: &str = named(SQL, "update_definition");

pub(super) const DEFINITION: Table = Table {
    name: "definition",
    columns: &[
        Column::key("id", "integer"),
        Column::changed("version", "integer"),
        Column::changed("body", "text"),
        Column::kept("mark", "integer"),
    ],
};

/// What is told of a definition that was inserted.
const INSERTED: Table = Table {
    name: "inserted",
    columns: &[Column::key("id", "integer"), Column::kept("mark", "integer")],
};

const fn at(column: &str) -> usize {
    DEFINITION.index(column)
}

fn read(row: &Row<'_>) -> Rows<StoredDefinition> {
    let row = Cells::of(row);
    Ok(StoredDefinition {
        id: DefinitionId(row.count(const { at("id") })?),
        version: row.count(const { at("version") })?,
        definition: row.json("definition", const { at("body") })?,
        mark: Mark(row.get(const { at("mark") })?),
    })
}

/// Stores a new structure with the names of its steps, and gives its number and mark.
pub(crate) fn insert(
    file: File<'_, '_>,
    version: u32,
    definition: &Definition,
) -> Rows<(DefinitionId, Mark)> {
    let body = json(definition)?;
    let row = params![definition.workflow, version, definition.signature.0, body];
    let inserted = file.first(INSERT_DEFINITION, row, |row| {
        let row = Cells::of(row);
        let id = DefinitionId(row.count(const { INSERTED.index("id") })?);
        Ok((id, Mark(row.get(const { INSERTED.index("mark") })?)))
    })?;
    let (id, mark) = inserted.ok_or_else(|| corrupt("a definition got no number"))?;
    for (node, name) in definition.named_nodes() {
        file.run(INSERT_STEP, params![id.0, node.0, name])?;
    }
    Ok((id, mark))
}

/// Writes another version or other policies.
pub(crate) fn update(file: File<'_, '_>, stored: &StoredDefinition) -> Rows<()> {
    let body = json(&stored.definition)?;
    file.run(UPDATE_DEFINITION, params![stored.id.0, stored.version, body]).map(drop)
}

pub(crate) fn load(file: File<'_, '_>, id: DefinitionId) -> Rows<Option<StoredDefinition>> {
    file.first(READ_DEFINITION, [id.0], read)
}

/// The definitions of a workflow in the order in which they were stored.
pub(crate) fn of_workflow(file: File<'_, '_>, workflow: &str) -> Rows<Vec<StoredDefinition>> {
    file.all(READ_DEFINITIONS, [workflow], read)
}

/// The numbers of the definitions of a workflow.
pub(crate) fn ids_of_workflow(file: File<'_, '_>, workflow: &str) -> Rows<Vec<DefinitionId>> {
    file.all(READ_DEFINITION_IDS, [workflow], |row| Cells::of(row).count(ONLY).map(DefinitionId))
}
