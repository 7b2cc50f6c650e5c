//! Something happens to a run: load, decide, write.

use std::collections::BTreeMap;
use std::slice;
use std::sync::Arc;

use stepwell_core::decide::{Happening, Verdict, decide};
use stepwell_core::id::RunKey;

use super::load::load;
use super::write::write;
use crate::outbound::sqlite::writer::Transaction;
use crate::ports::{Payload, StoreError, StoredDefinition};

/// Something happens to a run or to one of its tasks, and what follows is written.
pub(crate) fn happen(
    transaction: &mut Transaction<'_, '_>,
    run: RunKey,
    happening: Happening,
) -> Result<Verdict, StoreError> {
    let plan = plan_of(transaction, run)?;
    let mut image = load(transaction, run, &plan, slice::from_ref(&happening))?;
    let verdict = decide(&mut image, happening);
    write(transaction, image, &plan, &SignalPayloads::new())?;
    Ok(verdict)
}

/// As [`happen`], for what happens to one run at once: it is loaded and written once.
pub(crate) fn happen_all(
    transaction: &mut Transaction<'_, '_>,
    run: RunKey,
    happenings: Vec<Happening>,
) -> Result<Vec<Verdict>, StoreError> {
    happen_with(transaction, run, happenings, &SignalPayloads::new())
}

/// What signals bring, by their keys.
pub(super) type SignalPayloads<'p> = BTreeMap<&'p str, &'p Payload>;

/// As [`happen_all`], with what signals among the happenings bring.
pub(super) fn happen_with(
    transaction: &mut Transaction<'_, '_>,
    run: RunKey,
    happenings: Vec<Happening>,
    payloads: &SignalPayloads<'_>,
) -> Result<Vec<Verdict>, StoreError> {
    let plan = plan_of(transaction, run)?;
    let mut image = load(transaction, run, &plan, &happenings)?;
    let verdicts = happenings.into_iter().map(|happening| decide(&mut image, happening)).collect();
    write(transaction, image, &plan, payloads)?;
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
