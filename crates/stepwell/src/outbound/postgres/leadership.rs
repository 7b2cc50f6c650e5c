//! Leadership: a row with an epoch that fences every write of a leader, and a lock that tells
//! candidates at once when the leader's connection is gone.
//!
//! The row alone would do: a term that is not renewed ends. The lock makes take-over quick, for
//! the server gives it up with the connection. It is never enough by itself: a frozen process
//! keeps its connection, so a term that has run out is taken over without the lock.

use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use stepwell_core::id::{Epoch, WorkerId};

use super::error::corrupt;
use super::rows::{int, time, unsigned};
use super::transaction::{Params, Transaction};
use super::{PostgresStore, Role, statements};
use crate::ports::{Lead, Leadership, StoreError};

#[async_trait]
impl Leadership for PostgresStore {
    async fn lead(&self, candidate: &WorkerId, ttl: Duration) -> Result<Lead, StoreError> {
        if self.shared.leads.load(Ordering::Acquire) {
            // Whoever leads goes on leading with one statement.
            let micros = i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX);
            let params: Params<'_> = &[&candidate.as_str(), &micros, &self.shared.injected_now()];
            let row = self.glance(Role::Leader, statements::RENEW_LEADER, params).await?;
            if let Some(row) = row {
                return Ok(Lead::Leading(Epoch(unsigned(&row, 0)?)));
            }
        }
        let lead = self.with_retries(|| self.lead_once(candidate, ttl)).await?;
        self.shared.leads.store(matches!(lead, Lead::Leading(_)), Ordering::Release);
        Ok(lead)
    }

    async fn resign(&self, epoch: Epoch) -> Result<(), StoreError> {
        let transaction = self.begin_as(Role::Leader).await?;
        let led = transaction.one(statements::CLEAR_LEADER, &[&int(epoch.0)]).await?;
        if led.is_some() {
            self.let_go(&transaction).await?;
        }
        self.commit_transaction(transaction).await
    }
}

/// The server process that serves the leader's connection, if that holds the lock.
type Seat = Option<i32>;

/// Who leads, as the row says.
struct Term {
    worker: String,
    epoch: Epoch,
    is_running: bool,
    seat: Seat,
}

impl Term {
    /// Whether the term goes on although `candidate` would like to lead: it is another's, and
    /// its connection is not known to be gone.
    fn stands_against(&self, candidate: &WorkerId, seat: Seat) -> bool {
        // Whoever holds the lock from another seat proves that the leader's seat is empty.
        let is_seat_empty = self.seat.is_some() && seat.is_some() && self.seat != seat;
        self.is_running && self.worker != candidate.as_str() && !is_seat_empty
    }
}

impl PostgresStore {
    async fn lead_once(&self, candidate: &WorkerId, ttl: Duration) -> Result<Lead, StoreError> {
        let transaction = self.begin_as(Role::Leader).await?;
        let seat = self.take_seat(&transaction).await?;
        let term = read_term(&transaction).await?;
        if let Some(term) = &term
            && term.stands_against(candidate, seat)
        {
            // The lock is for the leader, who may be another engine on this very connection.
            if seat.is_some() && term.seat != seat {
                self.let_go(&transaction).await?;
            }
            self.commit_transaction(transaction).await?;
            return Ok(Lead::Following);
        }
        let own = term.filter(|term| term.is_running && term.worker == candidate.as_str());
        let epoch = if let Some(term) = own {
            term.epoch
        } else {
            let row = transaction.one(statements::NEXT_EPOCH, &[]).await?;
            let row = row.ok_or_else(|| corrupt("the epoch counter is missing"))?;
            Epoch(unsigned(&row, 0)?)
        };
        let until = transaction.now.after(ttl).as_micros();
        let params: Params<'_> = &[&candidate.as_str(), &int(epoch.0), &until, &seat];
        transaction.run(statements::SET_LEADER, params).await?;
        self.commit_transaction(transaction).await?;
        Ok(Lead::Leading(epoch))
    }

    /// Takes the leader's lock for this connection, or finds that it has it. Not waited for.
    async fn take_seat(&self, transaction: &Transaction) -> Result<Seat, StoreError> {
        let pool = &self.shared.pool;
        if !pool.has_leader_lock {
            return Ok(None);
        }
        let row = transaction.one(statements::TAKE_LEADER_LOCK, &[&pool.schema]).await?;
        Ok(row.map(|row| row.try_get(0)).transpose()?.flatten())
    }

    async fn let_go(&self, transaction: &Transaction) -> Result<(), StoreError> {
        let pool = &self.shared.pool;
        if !pool.has_leader_lock {
            return Ok(());
        }
        transaction.all(statements::LEAVE_LEADER_LOCK, &[&pool.schema]).await.map(drop)
    }
}

async fn read_term(transaction: &Transaction) -> Result<Option<Term>, StoreError> {
    let Some(row) = transaction.one(statements::LOCK_LEADER, &[]).await? else {
        return Ok(None);
    };
    let is_running = time(&row, 2)? > transaction.now;
    let epoch = if is_running { unsigned(&row, 1)? } else { 0 };
    let (worker, seat) = (row.try_get(0)?, row.try_get(3)?);
    Ok(Some(Term { worker, epoch: Epoch(epoch), is_running, seat }))
}

impl Transaction {
    /// Fences a leader's write.
    pub(super) async fn check_epoch(&self, epoch: Epoch) -> Result<(), StoreError> {
        let current = self.one(statements::CHECK_LEADER, &[&int(epoch.0)]).await?;
        current.map(drop).ok_or(StoreError::NotLeader)
    }
}
