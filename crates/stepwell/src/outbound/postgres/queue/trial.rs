//! Trials of workers: a suspect goes to a worker that holds nothing else.

use futures_util::future::join_all;
use stepwell_core::decide::suspects_from;
use stepwell_core::trial::{Crew, may_serve_others};

use super::super::rows::queue::{Candidate, read_candidate};
use super::super::rows::worker::{self, ServingWorker};
use super::super::rows::{int32, read_all};
use super::super::session::{Params, PgResult};
use super::super::sql::{self, Sql};
use super::QueueSet;
use crate::ports::ClaimRequest;

const FIRST_SUSPECT: Sql = sql::QUEUE.named("first_suspect");
const LOCK_TRIALS: Sql = sql::WORKER.named("lock_trials");
const LOCK_WORKER: Sql = sql::WORKER.named("lock_worker");
const READ_CLAIMS: Sql = sql::WORKER.named("read_claims");
const READ_CREWS: Sql = sql::WORKER.named("read_crews");
const SET_IN_TRIAL: Sql = sql::WORKER.named("set_in_trial");

impl QueueSet<'_> {
    /// Lets those who ask for suspects come one after the other, and a claim for other tasks of
    /// the same worker wait: it must see whether this one hands out a suspect, whose reply may get
    /// lost.
    pub(crate) async fn lock_trials(&self, request: &ClaimRequest) -> PgResult<()> {
        let (schema, worker) = (&self.session.pool().schema, request.worker.as_str());
        let (schema, worker): (Params<'_>, Params<'_>) = (&[schema], &[&worker]);
        let (trials, worker) = tokio::join!(
            biased;
            self.session.all(LOCK_TRIALS, schema),
            self.session.all(LOCK_WORKER, worker),
        );
        trials.and(worker).map(drop)
    }

    /// The first suspect of each of the worker's queues, in the order of its queues.
    pub(crate) async fn suspects(
        &self,
        serving: &ServingWorker,
        request: &ClaimRequest,
    ) -> PgResult<Vec<Vec<Candidate>>> {
        let first = async |queue: &String| -> PgResult<Vec<Candidate>> {
            let suspects_from = int32(suspects_from(request.crash_limit));
            let (services, now) = (serving.service_nos(), self.session.pool().injected_now());
            let params: Params<'_> = &[queue, &services, &suspects_from, &now];
            Ok(read_all(&self.session.all(FIRST_SUSPECT, params).await?, read_candidate)?)
        };
        join_all(serving.queues.iter().map(first)).await.into_iter().collect()
    }

    /// The live workers that have a service of this one, and those who have it in one of its
    /// queues.
    pub(crate) async fn crews(&self, serving: &ServingWorker) -> PgResult<Vec<Crew>> {
        Ok(read_all(&self.session.all(READ_CREWS, &[&serving.no]).await?, worker::read_crew)?)
    }

    /// How many workers each task has lost that a worker holds.
    pub(crate) async fn losses_held(&self, serving: &ServingWorker) -> PgResult<Vec<u32>> {
        let rows = self.session.all(READ_CLAIMS, &[&vec![serving.no]]).await?;
        let held = read_all(&rows, worker::read_claim)?;
        Ok(held.into_iter().map(|held| held.losses).collect())
    }

    /// Ends the trial of a worker that asks for other tasks, unless it holds a suspect. Says
    /// whether it has ended.
    pub(crate) async fn end_trial(
        &self,
        serving: &ServingWorker,
        request: &ClaimRequest,
    ) -> PgResult<bool> {
        let losses = self.losses_held(serving).await?;
        let has_ended = may_serve_others(losses, request.crash_limit);
        if has_ended {
            self.set_in_trial(serving, false).await?;
        }
        Ok(has_ended)
    }

    pub(crate) async fn set_in_trial(
        &self,
        serving: &ServingWorker,
        in_trial: bool,
    ) -> PgResult<()> {
        self.session.run(SET_IN_TRIAL, &[&serving.no, &in_trial]).await
    }
}
