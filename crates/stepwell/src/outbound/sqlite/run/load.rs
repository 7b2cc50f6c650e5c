//! Loading the part of a run that a decision needs.

use std::collections::BTreeMap;

use stepwell_core::decide::{Affected, Happening, InboxNeeds, TaskHappening, affected};
use stepwell_core::id::RunKey;
use stepwell_core::run::{Inbox, RunImage, TaskState};

use crate::outbound::sqlite::rows;
use crate::outbound::sqlite::writer::Transaction;
use crate::ports::{StoreError, StoredDefinition};

/// The image of a run with what the decision on these happenings may look at.
pub(super) fn load<'d>(
    transaction: &mut Transaction<'_, '_>,
    run: RunKey,
    plan: &'d StoredDefinition,
    happenings: &[Happening],
) -> Result<RunImage<'d>, StoreError> {
    let mut affected = affected(&plan.definition, happenings);
    let Some(needs) = affected.inbox.take() else {
        return load_tasks(transaction, run, plan, affected);
    };
    if needs.keys.is_empty() && !any_looks(transaction, run, happenings)? {
        return load_tasks(transaction, run, plan, affected);
    }
    let inbox = load_inbox(transaction, run, &needs)?;
    affected.add_waits(&plan.definition, &inbox.waits, happenings);
    Ok(load_tasks(transaction, run, plan, affected)?.with_inbox(inbox))
}

/// Whether waits are looked at: not by a task whose timer fires because it is tried again, nor by a
/// sleep of its own.
fn any_looks(
    transaction: &mut Transaction<'_, '_>,
    run: RunKey,
    happenings: &[Happening],
) -> Result<bool, StoreError> {
    let (file, runs) = (transaction.file, &mut transaction.cache.runs);
    for happening in happenings {
        let Happening::Task(node, TaskHappening::TimerFired) = happening else { return Ok(true) };
        let task = runs.find_task(file, run, *node)?;
        if task.is_some_and(|task| task.row.state() != TaskState::Queued) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The image of a run with the tasks that are affected, as far as they are there.
pub(super) fn load_tasks<'d>(
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

/// The open waits of a run and those of its signals that are needed. They are written as soon as
/// they change, so that the file has them.
pub(super) fn load_inbox(
    transaction: &mut Transaction<'_, '_>,
    run: RunKey,
    needs: &InboxNeeds,
) -> Result<Inbox, StoreError> {
    let file = transaction.file;
    let row = &transaction.cache.runs.load(file, run)?.row;
    let mut signals = BTreeMap::new();
    if needs.unconsumed && row.n_unconsumed > 0 {
        let unconsumed = rows::signal::unconsumed(file, run)?;
        signals.extend(unconsumed.into_iter().map(|signal| (signal.number, signal)));
    }
    for key in needs.keys.iter().filter(|_| row.n_signals > 0) {
        let known = rows::signal::find(file, run, key)?;
        signals.extend(known.map(|signal| (signal.number, signal)));
    }
    let waits = rows::wait::of_run(file, run)?;
    Ok(Inbox { waits, signals: signals.into_values().collect() })
}
