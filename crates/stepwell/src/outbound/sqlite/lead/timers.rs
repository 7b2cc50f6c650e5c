//! Timers that are due.

use stepwell_core::decide::Happening;
use stepwell_core::id::{Node, RunKey};
use stepwell_core::run::RunTimer;

use crate::outbound::sqlite::rows;
use crate::outbound::sqlite::run::happen::happen_all;
use crate::outbound::sqlite::writer::Transaction;
use crate::ports::{FiredTimers, StoreError};

/// Fires timers that are due, earliest first.
pub(crate) fn fire(
    transaction: &mut Transaction<'_, '_>,
    timers_max: usize,
) -> Result<FiredTimers, StoreError> {
    let file = transaction.file;
    let due = rows::timer::due(file, transaction.now, timers_max)?;
    let mut n_fired = 0;
    for timers in due.chunk_by(fire_together) {
        n_fired += fire_of_run(transaction, timers)?;
    }
    let next = rows::timer::next_due(file)?;
    Ok(FiredTimers { n_fired, next_due: next.map(|due| due.since(transaction.now)) })
}

/// Whether two timers that follow each other fire on one image: those of tasks of one run, as it
/// may have many waits. A timer of the run itself may cancel what the other just made ready.
fn fire_together(one: &(RunKey, Node), next: &(RunKey, Node)) -> bool {
    let is_of_task = |node: Node| RunTimer::at(node).is_none();
    one.0 == next.0 && is_of_task(one.1) && is_of_task(next.1)
}

/// Fires timers of one run, and says how many something waited for.
fn fire_of_run(
    transaction: &mut Transaction<'_, '_>,
    timers: &[(RunKey, Node)],
) -> Result<usize, StoreError> {
    let Some((run, _)) = timers.first().copied() else { return Ok(0) };
    let happenings = timers.iter().map(|(_, node)| Happening::timer_fired(*node)).collect();
    let verdicts = happen_all(transaction, run, happenings)?;
    let mut n_fired = 0;
    for ((_, node), verdict) in timers.iter().zip(verdicts) {
        if verdict.is_applied() {
            n_fired += 1;
        } else {
            // Nothing waits for it. If it stayed, the leader would find it due again and again.
            let (file, now) = (transaction.file, transaction.now);
            let run_no = transaction.cache.runs.load(file, run)?.no;
            rows::timer::delete_due(file, run_no, *node, now)?;
        }
    }
    Ok(n_fired)
}
