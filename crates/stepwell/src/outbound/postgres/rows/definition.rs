//! Rows of `definition`.

use stepwell_core::id::{DefinitionId, Mark};
use tokio_postgres::Row;

use super::Read;
use super::cells::{Cells, columns, only, only_unsigned, selected};
use crate::ports::StoredDefinition;

columns! {
    /// The columns of `definition` that are read.
    DEFINITION: Col = "definition" {
        key Id "id" "int",
        kept Version "version" "int",
        changed Body "body" "text",
        kept Mark "mark" "bigint",
    }
}

pub(crate) fn read(row: &Row) -> Read<StoredDefinition> {
    let cells = Cells::of(row);
    Ok(StoredDefinition {
        id: cells.definition_id(Col::Id)?,
        version: cells.count(Col::Version)?,
        definition: cells.json(Col::Body, "definition")?,
        mark: Mark(cells.get(Col::Mark)?),
    })
}

selected! { Inserted { Id, Mark, } }

/// The number and the mark of a definition that was inserted.
pub(crate) fn read_inserted(row: &Row) -> Read<(DefinitionId, Mark)> {
    let cells = Cells::of(row);
    Ok((cells.definition_id(Inserted::Id)?, Mark(cells.get(Inserted::Mark)?)))
}

/// A number that changes whenever definitions or policies do.
pub(crate) fn read_revision(row: &Row) -> Read<i64> {
    only(row)
}

/// How many definitions were found.
pub(crate) fn read_count(row: &Row) -> Read<u64> {
    only_unsigned(row)
}
