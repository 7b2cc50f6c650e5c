//! Something happens to a run: load, decide, write.

use std::slice;
use std::sync::Arc;

use stepwell_core::decide::{Happening, Verdict, decide};
use stepwell_core::id::RunKey;

use super::load::load;
use super::write::write;
use crate::outbound::sqlite::writer::Transaction;
use crate::ports::{StoreError, StoredDefinition};

/// Something happens to a run or to one of its tasks, and what follows is written.
pub(crate) fn happen(
    transaction: &mut Transaction<'_, '_>,
    run: RunKey,
    happening: Happening,
) -> Result<Verdict, StoreError> {
    let plan = plan_of(transaction, run)?;
    let mut image = load(transaction, run, &plan, slice::from_ref(&happening))?;
    let verdict = decide(&mut image, happening);
    write(transaction, image, &plan)?;
    Ok(verdict)
}

/// As [`happen`], for what happens to one run at once: it is loaded and written once.
pub(crate) fn happen_all(
    transaction: &mut Transaction<'_, '_>,
    run: RunKey,
    happenings: Vec<Happening>,
) -> Result<Vec<Verdict>, StoreError> {
    let plan = plan_of(transaction, run)?;
    let mut image = load(transaction, run, &plan, &happenings)?;
    let verdicts = happenings.into_iter().map(|happening| decide(&mut image, happening)).collect();
    write(transaction, image, &plan)?;
    Ok(verdicts)
}

/// What a run is decided on.
pub(super) fn plan_of(
    transaction: &mut Transaction<'_, '_>,
    run: RunKey,
) -> Result<Arc<StoredDefinition>, StoreError> {
    let file = transaction.file;
    let definition = transaction.cache.runs.load(file, run)?.row.definition;
    transaction.definitions.plan_of(file, definition)
}
