//! A leader's term: how it begins, goes on and fences the leader's writes.

use std::time::Duration;

use stepwell_core::id::{Epoch, WorkerId};

use crate::outbound::sqlite::rows;
use crate::outbound::sqlite::rows::leader::LeaderRow;
use crate::outbound::sqlite::writer::Transaction;
use crate::ports::{Lead, StoreError};

/// Lets a candidate lead unless another one does.
pub(crate) fn lead(
    transaction: &mut Transaction<'_, '_>,
    candidate: &WorkerId,
    ttl: Duration,
) -> Result<Lead, StoreError> {
    let (file, now) = (transaction.file, transaction.now);
    let epoch = match rows::leader::load(file)? {
        Some(leader) if leader.worker == *candidate && leader.until > now => leader.epoch,
        Some(leader) if stands(transaction, &leader) => return Ok(Lead::Following),
        _ => {
            let counters = transaction.cache.counters();
            counters.last_epoch += 1;
            Epoch(counters.last_epoch)
        }
    };
    rows::leader::set(file, candidate, epoch, now.after(ttl))?;
    Ok(Lead::Leading(epoch))
}

/// Whether a term goes on: it has not run out, and the leader's process is not gone.
fn stands(transaction: &Transaction<'_, '_>, leader: &LeaderRow) -> bool {
    let is_gone = leader.process_lock.as_ref().is_some_and(|lock| transaction.locks.is_free(lock));
    leader.until > transaction.now && !is_gone
}

/// Fences a leader's write.
pub(crate) fn check_epoch(
    transaction: &Transaction<'_, '_>,
    epoch: Epoch,
) -> Result<(), StoreError> {
    match rows::leader::load(transaction.file)? {
        Some(leader) if leader.epoch == epoch => Ok(()),
        _ => Err(StoreError::NotLeader),
    }
}
