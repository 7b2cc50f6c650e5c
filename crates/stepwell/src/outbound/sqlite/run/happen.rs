//! Something happens to a run: load, decide, write.

use std::collections::BTreeSet;

use stepwell_core::decide::{self, Affected, CancelAnswer, Happening, affected};
use stepwell_core::id::{Node, RunKey};

use super::load::load;
use super::write::write;
use crate::outbound::sqlite::writer::Transaction;
use crate::ports::StoreError;

/// Something happens to a task. The caller has checked that it is current.
pub(crate) fn happen(
    transaction: &mut Transaction<'_, '_>,
    run: RunKey,
    node: Node,
    happening: Happening,
) -> Result<(), StoreError> {
    let file = transaction.file;
    let definition = transaction.cache.runs.load(file, run)?.row.definition;
    let stored = transaction.definitions.load(file, definition)?;
    let affected = affected(&stored.definition, [(node, &happening)]);
    let mut image = load(transaction, run, &stored, affected)?;
    decide::decide(&mut image, node, happening);
    write(transaction, image, &stored)
}

/// Cancels a run, if there is such a run.
pub(crate) fn cancel(
    transaction: &mut Transaction<'_, '_>,
    run: RunKey,
) -> Result<Option<CancelAnswer>, StoreError> {
    let file = transaction.file;
    let Some(cached) = transaction.cache.runs.find(file, run)? else { return Ok(None) };
    let stored = transaction.definitions.load(file, cached.row.definition)?;
    let all_open = Affected::AllOpenAnd(BTreeSet::new());
    let mut image = load(transaction, run, &stored, all_open)?;
    let answer = decide::cancel(&mut image);
    write(transaction, image, &stored)?;
    Ok(Some(answer))
}
