use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use stepwell_core::decide::{Happening, losses_after};
use stepwell_core::id::{Epoch, WorkerId};
use tokio_postgres::Row;

use super::batch::{Happened, Happenings};
use super::rows::{self, count, int, int32, node, read_token, run_key};
use super::transaction::{Params, Transaction};
use super::{PostgresStore, Role, statements};
use crate::ports::{
    ClaimRef, HeartbeatAnswer, Hint, ReapRequest, Reaped, StoreError, WorkerRegistration, Workers,
};

#[async_trait]
impl Workers for PostgresStore {
    async fn register_worker(&self, registration: WorkerRegistration) -> Result<(), StoreError> {
        self.with_retries(|| self.register_once(&registration)).await
    }

    async fn heartbeat(
        &self,
        worker: &WorkerId,
        claims: &[ClaimRef],
    ) -> Result<HeartbeatAnswer, StoreError> {
        let transaction = self.begin_as(Role::Heartbeat).await?;
        let answer = heartbeat(&transaction, worker, claims).await?;
        if let Some(row) = transaction.one(statements::DEFINITION_REVISIONS, &[]).await? {
            self.shared.saw_revisions(row.try_get(0)?);
        }
        self.commit_transaction(transaction).await?;
        Ok(answer)
    }

    async fn deregister_worker(&self, worker: &WorkerId) -> Result<(), StoreError> {
        self.with_retries(|| self.deregister_once(worker)).await
    }

    async fn reap(&self, epoch: Epoch, request: ReapRequest) -> Result<Reaped, StoreError> {
        self.with_retries(|| self.reap_once(epoch, request)).await
    }
}

impl PostgresStore {
    async fn register_once(&self, registration: &WorkerRegistration) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        transaction.change_service().await?;
        let queues: Vec<&str> =
            registration.queues.iter().map(stepwell_core::id::Queue::as_str).collect();
        let lease = i64::try_from(registration.lease.as_micros()).unwrap_or(i64::MAX);
        let now = transaction.now.as_micros();
        let params: Params<'_> = &[&registration.worker.as_str(), &queues, &lease, &now];
        let row = transaction.one(statements::UPSERT_WORKER, params).await?;
        let no: i64 = row.map(|row| row.try_get(0)).transpose()?.unwrap_or_default();
        transaction.run(statements::CLEAR_SERVE, &[&vec![no]]).await?;
        let definitions: Vec<i32> = registration.definitions.iter().map(|id| int32(id.0)).collect();
        transaction.run(statements::INSERT_SERVE, &[&no, &queues, &definitions]).await?;
        transaction.sort_by_service().await?;
        transaction.earn(Hint::Ready);
        self.commit_transaction(transaction).await
    }

    async fn deregister_once(&self, worker: &WorkerId) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        transaction.change_service().await?;
        transaction.all(statements::LOCK_WORKER, &[&worker.as_str()]).await?;
        let row = transaction.one(statements::RETIRE_WORKER, &[&worker.as_str()]).await?;
        if let Some(row) = row {
            let no: i64 = row.try_get(0)?;
            transaction.run(statements::CLEAR_SERVE, &[&vec![no]]).await?;
            if transaction.all(statements::READ_CLAIMS, &[&vec![no]]).await?.is_empty() {
                transaction.run(statements::BURY_WORKERS, &[&vec![no]]).await?;
            }
            transaction.sort_by_service().await?;
            transaction.earn(Hint::Ready);
        }
        self.commit_transaction(transaction).await
    }

    async fn reap_once(&self, epoch: Epoch, request: ReapRequest) -> Result<Reaped, StoreError> {
        let params: Params<'_> =
            &[&int(epoch.0), &request.judges_silence, &self.shared.injected_now()];
        let row = self.glance(Role::Leader, statements::ANY_DEAD_WORKER, params).await?;
        let row = row.filter(|row| row.get(0)).ok_or(StoreError::NotLeader)?;
        if !row.try_get::<_, bool>(1)? {
            return Ok(Reaped::default());
        }
        let mut transaction = self.begin_as(Role::Leader).await?;
        transaction.check_epoch(epoch).await?;
        let n = i64::try_from(request.workers_max).unwrap_or(i64::MAX);
        // Before the beginning of time nobody was silent.
        let now = if request.judges_silence { transaction.now.as_micros() } else { i64::MIN };
        transaction.change_service().await?;
        let dead = transaction.all(statements::LOCK_DEAD_WORKERS, &[&now, &n]).await?;
        let dead: Vec<i64> = rows::read_all(&dead, |row| Ok(row.try_get(0)?))?;
        let mut reaped = Reaped { n_workers: dead.len(), n_tasks: 0 };
        if !dead.is_empty() {
            transaction.run(statements::BURY_WORKERS, &[&dead]).await?;
            transaction.run(statements::CLEAR_SERVE, &[&dead]).await?;
            reaped.n_tasks = lose(&mut transaction, &dead, request.crash_limit).await?;
            transaction.sort_by_service().await?;
            transaction.earn(Hint::Ready);
            transaction.earn(Hint::Claims);
        }
        self.commit_transaction(transaction).await?;
        Ok(reaped)
    }
}

async fn heartbeat(
    transaction: &Transaction,
    worker: &WorkerId,
    claims: &[ClaimRef],
) -> Result<HeartbeatAnswer, StoreError> {
    let now = transaction.now.as_micros();
    let row = transaction.one(statements::BEAT, &[&worker.as_str(), &now]).await?;
    let Some(row) = row else { return Ok(HeartbeatAnswer::Dead) };
    let no: i64 = row.try_get(0)?;
    let held = transaction.all(statements::READ_CLAIMS, &[&vec![no]]).await?;
    let held: BTreeSet<ClaimRef> =
        rows::read_all(&held, |row| claim(row, 1))?.into_iter().collect();
    let lost = claims.iter().filter(|claim| !held.contains(claim)).copied().collect();
    let unknown = held.into_iter().filter(|claim| !claims.contains(claim)).collect();
    Ok(HeartbeatAnswer::Alive { lost, unknown })
}

fn claim(row: &Row, first: usize) -> Result<ClaimRef, StoreError> {
    let (run, node) = (run_key(row, first)?, node(row, first + 1)?);
    Ok(ClaimRef { run, node, token: read_token(row, first + 2)? })
}

/// Takes all tasks of dead workers from them, charged together by worker. Says how many.
async fn lose(
    transaction: &mut Transaction,
    dead: &[i64],
    crash_limit: u32,
) -> Result<usize, StoreError> {
    let mut by_worker: BTreeMap<i64, Vec<(ClaimRef, u32)>> = BTreeMap::new();
    for row in transaction.all(statements::READ_CLAIMS, &[&dead]).await? {
        let lost = (claim(&row, 1)?, count(&row, 4)?);
        by_worker.entry(row.try_get(0)?).or_default().push(lost);
    }
    let n_tasks = by_worker.values().map(Vec::len).sum();
    let mut happenings = Happenings::new();
    for claims in by_worker.into_values() {
        let losses: Vec<u32> = claims.iter().map(|(_, losses)| *losses).collect();
        for ((claim, _), losses) in claims.into_iter().zip(losses_after(&losses, crash_limit)) {
            let happening = Happening::Lost { losses, crash_limit };
            let happened = Happened { node: claim.node, token: Some(claim.token), happening };
            happenings.entry(claim.run).or_default().push(happened);
        }
    }
    transaction.happen(happenings).await?;
    Ok(n_tasks)
}
