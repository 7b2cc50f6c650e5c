use std::collections::BTreeSet;

use async_trait::async_trait;
use stepwell_core::id::{Epoch, Queue, WorkerId};
use stepwell_core::lease::Life;

use super::lead::reap::{
    DELETE_PROGRESS, DELETE_SERVE, LostClaim, LostWorkers, READ_CLAIMS, TAKEN_MAX, end_workers,
    lose_workers, read_lost, take_lost,
};
use super::lead::term::check_epoch;
use super::queue::service::lock_serving_exclusive;
use super::rows::{definition, int32, read_all, worker};
use super::session::{Done, Learned, Params, PgResult, Session};
use super::sql::{self, Sql};
use super::{PostgresStore, Role};
use crate::ports::{
    ClaimRef, HeartbeatAnswer, Hint, HintSet, ReapRequest, Reaped, StoreError, WorkerRegistration,
    Workers,
};

const COUNT_MARKED: Sql = sql::DEFINITION.named("count_marked");
const UPSERT_WORKER: Sql = sql::WORKER.named("upsert_worker");
const INSERT_SERVE: Sql = sql::WORKER.named("insert_serve");
const RENEW_LEASE: Sql = sql::WORKER.named("renew_lease");
const LOCK_WORKER: Sql = sql::WORKER.named("lock_worker");
const MARK_WORKER_LEAVING: Sql = sql::WORKER.named("mark_worker_leaving");
const READ_LIVES: Sql = sql::WORKER.named("read_lives");

#[async_trait]
impl Workers for PostgresStore {
    async fn register_worker(&self, registration: WorkerRegistration) -> Result<(), StoreError> {
        self.with_retries(|| self.register_once(&registration)).await?;
        self.settle_some().await;
        Ok(())
    }

    async fn heartbeat(
        &self,
        worker: &WorkerId,
        claims: &[ClaimRef],
    ) -> Result<HeartbeatAnswer, StoreError> {
        let session = self.begin(Role::Heartbeat).await?;
        let answer = heartbeat(&session, worker, claims).await?;
        self.commit_session(session).await?;
        Ok(answer)
    }

    async fn deregister_worker(&self, worker: &WorkerId) -> Result<(), StoreError> {
        self.with_retries(|| self.deregister_once(worker)).await?;
        self.settle_some().await;
        Ok(())
    }

    async fn settle_services(&self) -> Result<bool, StoreError> {
        self.with_retries(|| self.settle_services_once()).await
    }

    async fn lives(&self) -> Result<Vec<Life>, StoreError> {
        let rows = self.query_once(Role::Leader, READ_LIVES, &[]).await?;
        read_all(&rows, worker::read_life)
    }

    async fn reap(&self, epoch: Epoch, request: ReapRequest) -> Result<Reaped, StoreError> {
        let lost = self.with_retries(|| self.lose_workers_once(epoch, &request)).await?;
        let mut reaped = Reaped::default();
        for taken in lost.held.chunks(TAKEN_MAX) {
            let take = || self.take_lost_once(epoch, taken, request.crash_limit);
            reaped.n_tasks += self.with_retries(take).await?;
        }
        if !lost.numbers.is_empty() {
            let end = || self.end_lost_once(epoch, &lost.numbers);
            reaped.n_workers = self.with_retries(end).await?;
            self.settle_some().await;
        }
        Ok(reaped)
    }
}

impl PostgresStore {
    async fn register_once(&self, registration: &WorkerRegistration) -> PgResult<Done<()>> {
        let session = self.begin(Role::Work).await?;
        lock_serving_exclusive(&session).await?;
        let queues: Vec<&str> = registration.queues.iter().map(Queue::as_str).collect();
        let lease = i64::try_from(registration.lease.as_micros()).unwrap_or(i64::MAX);
        let now = session.now().as_micros();
        let params: Params<'_> = &[&registration.worker.as_str(), &queues, &lease, &now];
        let row = session.one(UPSERT_WORKER, params).await?;
        let no = row.as_ref().map(worker::read_no).transpose()?.unwrap_or_default();
        session.run(DELETE_SERVE, &[&vec![no]]).await?;
        let services = self.services_of(&session, registration).await?;
        session.run(INSERT_SERVE, &[&no, &queues, &services]).await?;
        self.commit_session(session).await?;
        Ok(Done::telling((), Hint::Ready, Learned::default()))
    }

    /// The numbers of the services of a worker, if they are those that it means.
    async fn services_of(
        &self,
        session: &Session,
        registration: &WorkerRegistration,
    ) -> PgResult<Vec<i32>> {
        let services = registration.services.iter();
        let (numbers, marks): (Vec<i32>, Vec<i64>) =
            services.map(|service| (int32(service.id.0), service.mark.0)).unzip();
        let row = session.one(COUNT_MARKED, &[&numbers, &marks]).await?;
        let n_found = row.as_ref().map(definition::read_count).transpose()?.unwrap_or_default();
        if n_found < u64::try_from(numbers.len()).unwrap_or(u64::MAX) {
            return Err(StoreError::unknown_service().into());
        }
        Ok(numbers)
    }

    /// Moves some of the tasks that have to, now that workers came or went. What is done is done:
    /// if this fails, the leader comes to it.
    pub(super) async fn settle_some(&self) {
        if let Err(error) = self.settle_services().await {
            tracing::warn!(%error, "move tasks to where they are served: left to the leader");
        }
    }

    async fn settle_services_once(&self) -> PgResult<Done<bool>> {
        let session = self.begin(Role::Work).await?;
        self.shared.ids(&session).lock_serving_shared().await?;
        let queues = self.shared.queues(&session);
        let settled = queues.settle_services(&self.shared.ids(&session)).await?;
        let learned = queues.learned();
        self.commit_session(session).await?;
        let mut hints = HintSet::default();
        hints.add_if(Hint::Ready, settled.made_ready);
        Ok(Done { answer: settled.is_left, hints, learned })
    }

    async fn deregister_once(&self, worker: &WorkerId) -> PgResult<Done<()>> {
        let session = self.begin(Role::Work).await?;
        lock_serving_exclusive(&session).await?;
        session.all(LOCK_WORKER, &[&worker.as_str()]).await?;
        let mut hints = HintSet::default();
        if let Some(row) = session.one(MARK_WORKER_LEAVING, &[&worker.as_str()]).await? {
            let no = worker::read_no(&row)?;
            session.run(DELETE_SERVE, &[&vec![no]]).await?;
            session.run(DELETE_PROGRESS, &[&vec![no]]).await?;
            if session.all(READ_CLAIMS, &[&vec![no]]).await?.is_empty() {
                end_workers(&session, &[no]).await?;
            }
            hints.add(Hint::Ready);
        }
        self.commit_session(session).await?;
        Ok(Done { answer: (), hints, learned: Learned::default() })
    }

    async fn lose_workers_once(
        &self,
        epoch: Epoch,
        request: &ReapRequest,
    ) -> PgResult<Done<LostWorkers>> {
        let session = self.begin_duty().await?;
        let mut lost = lose_workers(&session, epoch, request).await?;
        self.commit_session(session).await?;
        if !lost.numbers.is_empty() {
            // Nobody waits for this: they claim nothing any more.
            let session = self.begin_duty().await?;
            read_lost(&session, &mut lost, request.crash_limit).await?;
            self.commit_session(session).await?;
        }
        Ok(Done::quiet(lost))
    }

    async fn take_lost_once(
        &self,
        epoch: Epoch,
        taken: &[LostClaim],
        crash_limit: u32,
    ) -> PgResult<Done<usize>> {
        let session = self.begin_duty().await?;
        self.shared.ids(&session).lock_serving_shared().await?;
        let runs = self.shared.runs(&session);
        let (answer, hints) = take_lost(&runs, epoch, taken, crash_limit).await?;
        let learned = runs.queues.learned();
        self.commit_session(session).await?;
        Ok(Done { answer, hints, learned })
    }

    async fn end_lost_once(&self, epoch: Epoch, lost: &[i64]) -> PgResult<Done<usize>> {
        let session = self.begin_duty().await?;
        check_epoch(&session, epoch).await?;
        let n_ended = end_workers(&session, lost).await?;
        self.commit_session(session).await?;
        Ok(Done::telling(n_ended, Hint::Ready, Learned::default()))
    }
}

async fn heartbeat(
    session: &Session,
    worker: &WorkerId,
    claims: &[ClaimRef],
) -> PgResult<HeartbeatAnswer> {
    let now = session.now().as_micros();
    let row = session.one(RENEW_LEASE, &[&worker.as_str(), &now]).await?;
    let Some(row) = row else { return Ok(HeartbeatAnswer::Dead) };
    let no = worker::read_no(&row)?;
    let held = session.all(READ_CLAIMS, &[&vec![no]]).await?;
    let held = read_all(&held, |row| Ok(worker::read_claim(row)?.claim))?;
    let held: BTreeSet<ClaimRef> = held.into_iter().collect();
    Ok(HeartbeatAnswer::compare(&held, claims))
}
