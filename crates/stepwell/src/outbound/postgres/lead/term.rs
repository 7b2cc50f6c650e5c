//! Terms of leadership: a row with an epoch that fences every write of a leader, and a lock that
//! tells candidates at once when the leader's connection is gone.
//!
//! The row alone would do: a term that is not renewed ends. The lock makes take-over quick, for
//! the server gives it up with the connection. It is never enough by itself: a frozen process
//! keeps its connection, so a term that has run out is taken over without the lock.

use std::time::Duration;

use stepwell_core::id::{Epoch, WorkerId};
use stepwell_core::lead::{self, Leading, Term};

use super::super::rows::leader::{self, BackendPid, StoredTerm};
use super::super::rows::{corrupt, int};
use super::super::session::{Params, PgResult, Session};
use super::super::sql::{self, Sql};
use crate::ports::{Lead, StoreError};

const LOCK_LEADER: Sql = sql::LEADER.named("lock_leader");
const CHECK_LEADER: Sql = sql::LEADER.named("check_leader");
const NEXT_EPOCH: Sql = sql::LEADER.named("next_epoch");
const SET_LEADER: Sql = sql::LEADER.named("set_leader");
const CLEAR_LEADER: Sql = sql::LEADER.named("clear_leader");
const TAKE_LEADER_LOCK: Sql = sql::LEADER.named("take_leader_lock");
const LEAVE_LEADER_LOCK: Sql = sql::LEADER.named("leave_leader_lock");

/// Fences a leader's write.
pub(crate) async fn check_epoch(session: &Session, epoch: Epoch) -> PgResult<()> {
    let current = session.one(CHECK_LEADER, &[&int(epoch.0)]).await?;
    Ok(current.map(drop).ok_or(StoreError::NotLeader)?)
}

/// Takes or keeps leadership, if no other's term stands against it.
pub(crate) async fn lead(session: &Session, candidate: &WorkerId, ttl: Duration) -> PgResult<Lead> {
    let pid = take_lock(session).await?;
    let row = session.one(LOCK_LEADER, &[]).await?;
    let stored = row.as_ref().map(leader::read).transpose()?;
    let term = stored.as_ref().map(|stored| Term {
        worker: &stored.worker,
        epoch: Epoch(u64::try_from(stored.epoch).unwrap_or(0)),
        until: stored.until,
        ttl: stored.ttl,
        is_vacant: is_backend_gone(stored, pid),
    });
    let epoch = match lead::lead(term.as_ref(), candidate.as_str(), session.now()) {
        Leading::Follow => {
            // The lock is for the leader, who may be another engine on this very connection.
            if pid.is_some() && stored.is_some_and(|stored| stored.pid != pid) {
                leave_lock(session).await?;
            }
            return Ok(Lead::Following);
        }
        Leading::Keep(epoch) => epoch,
        Leading::TakeOver => {
            let row = session.one(NEXT_EPOCH, &[]).await?;
            leader::read_epoch(&row.ok_or_else(|| corrupt("the epoch counter is missing"))?)?
        }
    };
    let until = session.now().after(ttl).as_micros();
    let ttl_micros = i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX);
    let params: Params<'_> = &[&candidate.as_str(), &int(epoch.0), &until, &ttl_micros, &pid];
    session.run(SET_LEADER, params).await?;
    Ok(Lead::Leading(epoch))
}

/// Gives leadership up, if this epoch is the current one.
pub(crate) async fn resign(session: &Session, epoch: Epoch) -> PgResult<()> {
    if session.one(CLEAR_LEADER, &[&int(epoch.0)]).await?.is_some() {
        leave_lock(session).await?;
    }
    Ok(())
}

/// Whoever holds the lock from another connection proves that the leader's is gone.
fn is_backend_gone(term: &StoredTerm, pid: BackendPid) -> bool {
    term.pid.is_some() && pid.is_some() && term.pid != pid
}

/// Takes the leader's lock for this connection, or finds that it has it. Not waited for.
async fn take_lock(session: &Session) -> PgResult<BackendPid> {
    let pool = session.pool();
    if !pool.has_leader_lock {
        return Ok(None);
    }
    let row = session.one(TAKE_LEADER_LOCK, &[&pool.schema]).await?;
    Ok(row.as_ref().map(leader::read_pid).transpose()?.flatten())
}

async fn leave_lock(session: &Session) -> PgResult<()> {
    let pool = session.pool();
    if !pool.has_leader_lock {
        return Ok(());
    }
    session.all(LEAVE_LEADER_LOCK, &[&pool.schema]).await.map(drop)
}
