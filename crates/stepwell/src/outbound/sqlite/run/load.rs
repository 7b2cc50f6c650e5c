//! Loading the part of a run that a decision needs.

use stepwell_core::decide::Affected;
use stepwell_core::id::{Node, RunKey};
use stepwell_core::run::RunImage;

use crate::outbound::sqlite::writer::Transaction;
use crate::ports::{StoreError, StoredDefinition};

/// The image of a run with the tasks that a decision may look at, as far as they are there.
pub(super) fn load<'d>(
    transaction: &mut Transaction<'_, '_>,
    run: RunKey,
    stored: &'d StoredDefinition,
    affected: Affected,
) -> Result<RunImage<'d>, StoreError> {
    match affected {
        Affected::Nodes(nodes) => load_nodes(transaction, run, stored, nodes),
        Affected::AllOpenAnd(mut nodes) => {
            nodes.extend(transaction.cache.load_open(transaction.file, run)?);
            load_nodes(transaction, run, stored, nodes)
        }
    }
}

fn load_nodes<'d>(
    transaction: &mut Transaction<'_, '_>,
    run: RunKey,
    stored: &'d StoredDefinition,
    nodes: impl IntoIterator<Item = Node>,
) -> Result<RunImage<'d>, StoreError> {
    let (file, runs) = (transaction.file, &mut transaction.cache.runs);
    let mut tasks = Vec::new();
    for node in nodes {
        tasks.extend(runs.find_task(file, run, node)?.map(|task| task.row.clone()));
    }
    let row = runs.load(file, run)?.row.clone();
    Ok(RunImage::new(&stored.definition, transaction.now, row, tasks))
}
