//! Rows of `definition`.

use stepwell_core::id::DefinitionId;
use tokio_postgres::Row;

use super::Read;
use super::cells::{Cells, columns, only};
use crate::ports::StoredDefinition;

columns! {
    /// The columns of `definition` that are read.
    DEFINITION: Col = "definition" {
        key Id "id" "int",
        kept Version "version" "int",
        changed Body "body" "text",
    }
}

pub(crate) fn read(row: &Row) -> Read<StoredDefinition> {
    let cells = Cells::of(row);
    Ok(StoredDefinition {
        id: read_id(row)?,
        version: cells.count(Col::Version)?,
        definition: cells.json(Col::Body, "definition")?,
    })
}

/// The number of a definition.
pub(crate) fn read_id(row: &Row) -> Read<DefinitionId> {
    Cells::of(row).definition_id(Col::Id)
}

/// A number that changes whenever policies do.
pub(crate) fn read_revisions(row: &Row) -> Read<i64> {
    only(row)
}
