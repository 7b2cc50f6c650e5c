//! Loading the part of a run that a decision needs.

use stepwell_core::decide::Affected;
use stepwell_core::id::RunKey;
use stepwell_core::run::RunImage;

use crate::outbound::sqlite::writer::Transaction;
use crate::ports::{StoreError, StoredDefinition};

/// The image of a run with the tasks that a decision may look at, as far as they are there.
pub(super) fn load<'d>(
    transaction: &mut Transaction<'_, '_>,
    run: RunKey,
    plan: &'d StoredDefinition,
    affected: Affected,
) -> Result<RunImage<'d>, StoreError> {
    let (file, cache) = (transaction.file, &mut *transaction.cache);
    let mut nodes = affected.tasks;
    if affected.all_open {
        nodes.extend(cache.load_open(file, run)?);
    }
    let mut tasks = Vec::with_capacity(nodes.len());
    for node in nodes {
        tasks.extend(cache.runs.find_task(file, run, node)?.map(|task| task.row.clone()));
    }
    let row = cache.runs.load(file, run)?.row.clone();
    Ok(RunImage::new(&plan.definition, transaction.now, row, tasks))
}
