//! Timers that are due.

use stepwell_core::decide::Happening;

use crate::outbound::sqlite::rows;
use crate::outbound::sqlite::run::happen::happen;
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
    for (run, node) in due {
        let verdict = happen(transaction, run, Happening::timer_fired(node))?;
        if verdict.is_applied() {
            n_fired += 1;
        } else {
            // Nothing waits for it. If it stayed, the leader would find it due again and again.
            let run_no = transaction.cache.runs.load(file, run)?.no;
            rows::timer::delete(file, run_no, node)?;
        }
    }
    let next = rows::timer::next_due(file)?;
    Ok(FiredTimers { n_fired, next_due: next.map(|due| due.since(transaction.now)) })
}
