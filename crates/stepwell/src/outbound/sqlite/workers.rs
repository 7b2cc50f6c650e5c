use std::collections::HashSet;

use async_trait::async_trait;
use rusqlite::{Row, params};
use stepwell_core::decide::{Happening, losses_after};
use stepwell_core::id::{Epoch, WorkerId};

use super::rows::{count, node, read_token, run_key};
use super::transaction::Transaction;
use super::{SqliteStore, statements};
use crate::ports::{
    ClaimRef, HeartbeatAnswer, Hint, ReapRequest, Reaped, StoreError, WorkerRegistration, Workers,
};

#[async_trait]
impl Workers for SqliteStore {
    async fn register_worker(&self, registration: WorkerRegistration) -> Result<(), StoreError> {
        self.write(move |transaction| register(transaction, &registration)).await
    }

    async fn heartbeat(
        &self,
        worker: &WorkerId,
        claims: &[ClaimRef],
    ) -> Result<HeartbeatAnswer, StoreError> {
        let (worker, claims) = (worker.clone(), claims.to_vec());
        self.write(move |transaction| heartbeat(transaction, &worker, &claims)).await
    }

    async fn deregister_worker(&self, worker: &WorkerId) -> Result<(), StoreError> {
        let worker = worker.clone();
        self.write(move |transaction| {
            let retired =
                transaction.first(statements::RETIRE_WORKER, [worker.as_str()], number)?;
            let Some(no) = retired else { return Ok(()) };
            serve_nothing(transaction, no)?;
            if claims_of(transaction, no)?.is_empty() {
                transaction.run(statements::BURY_WORKER, [no])?;
            }
            transaction.sort_by_service()?;
            transaction.earn(Hint::Ready);
            Ok(())
        })
        .await
    }

    async fn reap(&self, epoch: Epoch, request: ReapRequest) -> Result<Reaped, StoreError> {
        self.write(move |transaction| {
            transaction.check_epoch(epoch)?;
            reap(transaction, request)
        })
        .await
    }
}

fn number(row: &Row<'_>) -> Result<i64, StoreError> {
    Ok(row.get(0)?)
}

fn register(
    transaction: &mut Transaction<'_, '_>,
    registration: &WorkerRegistration,
) -> Result<(), StoreError> {
    let lease = i64::try_from(registration.lease.as_micros()).unwrap_or(i64::MAX);
    let seat = transaction.seats.own().map_err(|error| StoreError::Unavailable {
        operation: "take a seat beside the database",
        why: error.to_string(),
    })?;
    let row = params![registration.worker.as_str(), lease, transaction.now.as_micros(), seat];
    let no = transaction.first(statements::UPSERT_WORKER, row, number)?.unwrap_or_default();
    serve_nothing(transaction, no)?;
    for (turn, queue) in (0_i64..).zip(&registration.queues) {
        transaction.run(statements::INSERT_QUEUE, params![no, turn, queue.as_str()])?;
        for definition in &registration.definitions {
            let row = params![no, queue.as_str(), definition.0];
            transaction.run(statements::INSERT_SERVE, row)?;
        }
    }
    transaction.sort_by_service()?;
    transaction.earn(Hint::Ready);
    Ok(())
}

fn serve_nothing(transaction: &mut Transaction<'_, '_>, worker: i64) -> Result<(), StoreError> {
    transaction.book.forget_service();
    transaction.run(statements::CLEAR_SERVE, [worker])?;
    transaction.run(statements::CLEAR_QUEUES, [worker])?;
    Ok(())
}

fn heartbeat(
    transaction: &mut Transaction<'_, '_>,
    worker: &WorkerId,
    claims: &[ClaimRef],
) -> Result<HeartbeatAnswer, StoreError> {
    let beat = params![worker.as_str(), transaction.now.as_micros()];
    let Some(no) = transaction.first(statements::BEAT, beat, number)? else {
        return Ok(HeartbeatAnswer::Dead);
    };
    let held: HashSet<ClaimRef> =
        claims_of(transaction, no)?.into_iter().map(|(claim, _)| claim).collect();
    let known: HashSet<&ClaimRef> = claims.iter().collect();
    let lost = claims.iter().filter(|claim| !held.contains(claim)).copied().collect();
    let mut unknown: Vec<ClaimRef> =
        held.iter().filter(|claim| !known.contains(claim)).copied().collect();
    unknown.sort_unstable();
    Ok(HeartbeatAnswer::Alive { lost, unknown })
}

fn reap(transaction: &mut Transaction<'_, '_>, request: ReapRequest) -> Result<Reaped, StoreError> {
    let mut reaped = Reaped::default();
    let dead = dead_workers(transaction, request)?;
    // All are dead before the first task moves: nothing comes back to what only they served.
    for worker in &dead {
        transaction.run(statements::BURY_WORKER, [*worker])?;
        serve_nothing(transaction, *worker)?;
    }
    for worker in dead {
        reaped.n_workers += 1;
        reaped.n_tasks += lose(transaction, worker, request.crash_limit)?;
    }
    if reaped.n_workers > 0 {
        transaction.sort_by_service()?;
        transaction.earn(Hint::Ready);
        transaction.earn(Hint::Claims);
    }
    Ok(reaped)
}

/// Workers that went, whose process is gone, or whose silence has lasted too long.
fn dead_workers(
    transaction: &Transaction<'_, '_>,
    request: ReapRequest,
) -> Result<Vec<i64>, StoreError> {
    let now = transaction.now.as_micros();
    let lives = transaction.all(statements::READ_LIVES, [now], |row| {
        let seat: String = row.get(3)?;
        Ok((number(row)?, row.get(1)?, row.get(2)?, seat))
    })?;
    let is_dead = |(_, is_gone, is_silent, seat): &(i64, bool, bool, String)| {
        *is_gone || (*is_silent && request.judges_silence) || transaction.seats.is_empty(seat)
    };
    let dead = lives.into_iter().filter(is_dead).map(|(no, ..)| no);
    Ok(dead.take(request.workers_max).collect())
}

/// The claims of a worker with the losses of each task so far.
fn claims_of(
    transaction: &mut Transaction<'_, '_>,
    worker: i64,
) -> Result<Vec<(ClaimRef, u32)>, StoreError> {
    transaction.write_rows()?;
    transaction.all(statements::READ_CLAIMS, [worker], |row| {
        let (run, node, token) = (run_key(row, 0)?, node(row, 1)?, read_token(row, 2)?);
        Ok((ClaimRef { run, node, token }, count(row, 3)?))
    })
}

/// Takes all tasks of one dead worker from it, charged together. Says how many there were.
fn lose(
    transaction: &mut Transaction<'_, '_>,
    worker: i64,
    crash_limit: u32,
) -> Result<usize, StoreError> {
    let claims = claims_of(transaction, worker)?;
    let losses: Vec<u32> = claims.iter().map(|(_, losses)| *losses).collect();
    for ((claim, _), losses) in claims.iter().zip(losses_after(&losses, crash_limit)) {
        // A loss that failed the run may have cancelled the run's other tasks with it.
        if transaction.holds(*claim)? {
            let happening = Happening::Lost { losses, crash_limit };
            transaction.happen(claim.run, claim.node, happening)?;
        }
    }
    Ok(claims.len())
}
