use std::time::Duration;

use async_trait::async_trait;
use rusqlite::{Row, params};
use stepwell_core::id::{Epoch, WorkerId};
use stepwell_core::time::Timestamp;

use super::rows::{int, name, time, unsigned};
use super::transaction::Transaction;
use super::{SqliteStore, statements};
use crate::ports::{Lead, Leadership, StoreError};

#[async_trait]
impl Leadership for SqliteStore {
    async fn lead(&self, candidate: &WorkerId, ttl: Duration) -> Result<Lead, StoreError> {
        let candidate = candidate.clone();
        self.write(move |transaction| lead(transaction, &candidate, ttl)).await
    }

    async fn resign(&self, epoch: Epoch) -> Result<(), StoreError> {
        self.write(move |transaction| {
            transaction.run(statements::CLEAR_LEADER, [int(epoch.0)]).map(drop)
        })
        .await
    }
}

struct Leader {
    worker: WorkerId,
    epoch: Epoch,
    until: Timestamp,
    seat: Option<String>,
}

impl Leader {
    /// Whether the term goes on: it has not run out, and the leader's process is not gone.
    fn stands(&self, transaction: &Transaction<'_, '_>) -> bool {
        let is_gone = self.seat.as_ref().is_some_and(|seat| transaction.seats.is_empty(seat));
        self.until > transaction.now && !is_gone
    }
}

fn leader(transaction: &Transaction<'_, '_>) -> Result<Option<Leader>, StoreError> {
    transaction.first(statements::READ_LEADER, [], |row: &Row<'_>| {
        let (worker, until) = (name(row, 0)?, time(row, 2)?);
        Ok(Leader { worker, epoch: Epoch(unsigned(row, 1)?), until, seat: row.get(3)? })
    })
}

fn lead(
    transaction: &mut Transaction<'_, '_>,
    candidate: &WorkerId,
    ttl: Duration,
) -> Result<Lead, StoreError> {
    let now = transaction.now;
    let epoch = match leader(transaction)? {
        Some(leader) if leader.worker == *candidate && leader.until > now => leader.epoch,
        Some(leader) if leader.stands(transaction) => return Ok(Lead::Following),
        _ => {
            let counters = transaction.book.counters();
            counters.last_epoch += 1;
            Epoch(counters.last_epoch)
        }
    };
    let until = now.after(ttl).as_micros();
    let row = params![candidate.as_str(), int(epoch.0), until];
    transaction.run(statements::SET_LEADER, row)?;
    Ok(Lead::Leading(epoch))
}

impl Transaction<'_, '_> {
    /// Fences a leader's write.
    pub(super) fn check_epoch(&self, epoch: Epoch) -> Result<(), StoreError> {
        match leader(self)? {
            Some(leader) if leader.epoch == epoch => Ok(()),
            _ => Err(StoreError::NotLeader),
        }
    }
}
