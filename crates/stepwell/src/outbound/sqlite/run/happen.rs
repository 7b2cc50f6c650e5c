//! Something happens to a run: load, decide, write.

use stepwell_core::decide::{Happening, Verdict, affected, decide};
use stepwell_core::id::RunKey;

use super::load::load;
use super::write::write;
use crate::outbound::sqlite::writer::Transaction;
use crate::ports::StoreError;

/// Something happens to a run or to one of its tasks, and what follows is written.
pub(crate) fn happen(
    transaction: &mut Transaction<'_, '_>,
    run: RunKey,
    happening: Happening,
) -> Result<Verdict, StoreError> {
    let file = transaction.file;
    let definition = transaction.cache.runs.load(file, run)?.row.definition;
    let plan = transaction.definitions.plan_of(file, definition)?;
    let affected = affected(&plan.definition, [&happening]);
    let mut image = load(transaction, run, &plan, affected)?;
    let verdict = decide(&mut image, happening);
    write(transaction, image, &plan)?;
    Ok(verdict)
}
