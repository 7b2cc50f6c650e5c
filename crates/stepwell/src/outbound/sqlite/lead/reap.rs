//! Taking the tasks of dead workers from them.

use std::collections::BTreeSet;

use stepwell_core::decide::{Happening, TaskHappening};
use stepwell_core::lease::losses_after;

use crate::outbound::sqlite::queue::{claim, service};
use crate::outbound::sqlite::rows;
use crate::outbound::sqlite::run::happen::happen;
use crate::outbound::sqlite::writer::Transaction;
use crate::ports::{Hint, ReapRequest, Reaped, StoreError};

/// Marks workers dead that have not beaten since, and loses what they held.
pub(crate) fn reap(
    transaction: &mut Transaction<'_, '_>,
    request: &ReapRequest,
) -> Result<Reaped, StoreError> {
    let mut reaped = Reaped::default();
    let mut dead = BTreeSet::new();
    for beat in &request.dead {
        dead.extend(rows::worker::find_silent(transaction.file, beat)?);
    }
    // All are dead before the first task moves: nothing comes back to what only they served.
    for worker_no in &dead {
        rows::worker::end(transaction.file, *worker_no)?;
        service::clear_services(transaction, *worker_no)?;
    }
    for worker_no in dead {
        rows::progress::forget(transaction.file, worker_no)?;
        reaped.n_workers += 1;
        reaped.n_tasks += lose_claims(transaction, worker_no, request.crash_limit)?;
    }
    if reaped.n_workers > 0 {
        transaction.earned.add(Hint::Ready);
    }
    Ok(reaped)
}

/// Takes all tasks of one dead worker from it, charged together. Says how many there were.
fn lose_claims(
    transaction: &mut Transaction<'_, '_>,
    worker_no: i64,
    crash_limit: u32,
) -> Result<usize, StoreError> {
    let claims = claim::claims_of(transaction, worker_no)?;
    let losses: Vec<u32> = claims.iter().map(|(_, losses)| *losses).collect();
    for ((claim, _), losses) in claims.iter().zip(losses_after(&losses, crash_limit)) {
        // A loss that failed the run may have cancelled the run's other tasks with it; then it is
        // not current any more.
        let happening = TaskHappening::Lost { losses, crash_limit };
        happen(transaction, claim.run, Happening::Task(claim.node, happening))?;
    }
    Ok(claims.len())
}
