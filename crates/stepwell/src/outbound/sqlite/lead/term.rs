//! A leader's term: how it begins, goes on and fences the leader's writes.

use std::time::Duration;

use stepwell_core::id::{Epoch, WorkerId};
use stepwell_core::lead::{self, Leading, Term};

use crate::outbound::sqlite::rows;
use crate::outbound::sqlite::writer::Transaction;
use crate::ports::{Lead, StoreError};

/// Lets a candidate lead unless another one does.
pub(crate) fn lead(
    transaction: &mut Transaction<'_, '_>,
    candidate: &WorkerId,
    ttl: Duration,
) -> Result<Lead, StoreError> {
    let (file, now) = (transaction.file, transaction.now);
    let leader = rows::leader::load(file)?;
    let term = leader.as_ref().map(|leader| Term {
        worker: leader.worker.as_str(),
        epoch: leader.epoch,
        until: leader.until,
        ttl: leader.ttl,
        is_vacant: leader.process_lock.as_ref().is_some_and(|lock| transaction.locks.is_free(lock)),
    });
    let epoch = match lead::lead(term.as_ref(), candidate.as_str(), now) {
        Leading::Follow => return Ok(Lead::Following),
        Leading::Keep(epoch) => epoch,
        Leading::TakeOver => {
            let counters = transaction.cache.counters();
            counters.last_epoch += 1;
            Epoch(counters.last_epoch)
        }
    };
    rows::leader::set(file, candidate, epoch, (now, ttl))?;
    Ok(Lead::Leading(epoch))
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
