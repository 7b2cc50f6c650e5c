use std::collections::BTreeSet;

use async_trait::async_trait;
use stepwell_core::id::{Epoch, WorkerId};
use stepwell_core::lease::Life;

use super::file::ProcessLocks;
use super::lead::{reap, term};
use super::queue::{claim, service};
use super::rows::worker::StoredLife;
use super::writer::Transaction;
use super::{SqliteStore, rows};
use crate::ports::{
    ClaimRef, HeartbeatAnswer, Hint, ReapRequest, Reaped, StoreError, WorkerRegistration, Workers,
};

#[async_trait]
impl Workers for SqliteStore {
    async fn register_worker(&self, registration: WorkerRegistration) -> Result<(), StoreError> {
        self.write(move |transaction| register(transaction, &registration)).await?;
        self.settle_some().await;
        Ok(())
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
        self.write(move |transaction| deregister(transaction, &worker)).await?;
        self.settle_some().await;
        Ok(())
    }

    async fn settle_services(&self) -> Result<bool, StoreError> {
        self.write(service::settle).await
    }

    async fn lives(&self) -> Result<Vec<Life>, StoreError> {
        self.read(|transaction| {
            let lives = rows::worker::lives(transaction.file)?.into_iter();
            Ok(lives.map(|stored| life(stored, transaction.locks)).collect())
        })
        .await
    }

    async fn reap(&self, epoch: Epoch, request: ReapRequest) -> Result<Reaped, StoreError> {
        let reap = move |transaction: &mut Transaction<'_, '_>| {
            term::check_epoch(transaction, epoch)?;
            reap::reap(transaction, &request)
        };
        let reaped = self.write(reap).await?;
        if reaped.n_workers > 0 {
            self.settle_some().await;
        }
        Ok(reaped)
    }
}

impl SqliteStore {
    /// Moves some of the tasks that have to, now that workers came or went. What is done is done:
    /// if this fails, the leader comes to it.
    pub(super) async fn settle_some(&self) {
        if let Err(error) = self.settle_services().await {
            tracing::warn!(%error, "move tasks to where they are served: left to the leader");
        }
    }
}

fn life(stored: StoredLife, locks: &ProcessLocks) -> Life {
    let StoredLife { last_beat, lease, has_left, process_lock } = stored;
    Life { last_beat, lease, has_left, is_gone: locks.is_free(&process_lock) }
}

fn register(
    transaction: &mut Transaction<'_, '_>,
    registration: &WorkerRegistration,
) -> Result<(), StoreError> {
    let lock = transaction.locks.own().map_err(|error| StoreError::Unavailable {
        operation: "take a lock beside the database",
        why: error.to_string(),
    })?;
    let (worker, lease) = (&registration.worker, registration.lease);
    let no = rows::worker::register(transaction.file, worker, lease, transaction.now, lock)?;
    service::set_services(transaction, no, registration)?;
    transaction.earned.add(Hint::Ready);
    Ok(())
}

fn deregister(transaction: &mut Transaction<'_, '_>, worker: &WorkerId) -> Result<(), StoreError> {
    let Some(no) = rows::worker::mark_leaving(transaction.file, worker)? else { return Ok(()) };
    service::clear_services(transaction, no)?;
    rows::progress::forget(transaction.file, no)?;
    if claim::claims_of(transaction, no)?.is_empty() {
        rows::worker::end(transaction.file, no)?;
    }
    transaction.earned.add(Hint::Ready);
    Ok(())
}

fn heartbeat(
    transaction: &mut Transaction<'_, '_>,
    worker: &WorkerId,
    claims: &[ClaimRef],
) -> Result<HeartbeatAnswer, StoreError> {
    let Some(no) = rows::worker::beat(transaction.file, worker, transaction.now)? else {
        return Ok(HeartbeatAnswer::Dead);
    };
    let held = claim::claims_of(transaction, no)?;
    let held: BTreeSet<ClaimRef> = held.into_iter().map(|(claim, _)| claim).collect();
    Ok(HeartbeatAnswer::compare(&held, claims))
}
