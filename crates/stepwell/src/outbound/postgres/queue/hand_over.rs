//! Handing what becomes ready straight to the worker that offers to take it. Such a task is written
//! once, as running, and never stands in a queue.

use stepwell_core::decide::may_start;
use stepwell_core::id::Token;
use stepwell_core::queue::{self, Order, OrderKey, ReadyTask, SlotOffer, Split, TenantNo};
use stepwell_core::time::Timestamp;

use super::super::rows::queue::Queued;
use super::super::rows::task::is_failure_handler;
use super::super::rows::worker::{self, ServingWorker};
use super::super::rows::{Param, TaskKeys, token};
use super::super::session::PgResult;
use super::super::sql::{self, Sql};
use super::QueueSet;
use crate::ports::ClaimRequest;

const FIND_IDLE_WORKER: Sql = sql::WORKER.named("find_idle_worker");
const INSERT_CLAIMS: Sql = sql::WORKER.named("insert_claims");

/// An idle worker that offers to take what becomes ready.
pub(crate) struct IdleWorker<'o> {
    pub(crate) offer: &'o ClaimRequest,
    pub(crate) serving: ServingWorker,
    pub(crate) token: Token,
}

impl IdleWorker<'_> {
    /// Tells what the worker takes. What it takes never stands in a queue, so its place need not be
    /// known, nor locked.
    pub(crate) fn split(&self, tasks: Vec<Queued>, now: Timestamp) -> Split<Queued> {
        let offer = SlotOffer {
            tasks_max: self.offer.tasks_max,
            crash_limit: self.offer.crash_limit,
            n_queues: self.serving.queues.len(),
            next_turn: self.serving.next_turn,
        };
        queue::split(&offer, tasks, Order::Unknown, |task| self.view(task, now))
    }

    /// A task as the rule sees it, if the worker can execute it and it may still start.
    fn view(&self, task: &Queued, now: Timestamp) -> Option<ReadyTask> {
        if !may_start(task.deadline, now) {
            return None;
        }
        // The handler is told of the failure, which is read when it is claimed.
        if is_failure_handler(task.node) || !self.serving.serves(task.service) {
            return None;
        }
        let queue = self.serving.queues.iter().position(|queue| queue == task.queue.as_str())?;
        let (tenant, losses) = (TenantNo(task.tenant_no), task.losses);
        Some(ReadyTask { queue, tenant, losses, place: (OrderKey(0), 0) })
    }
}

impl QueueSet<'_> {
    /// The worker that makes an offer, if it is alive, holds no trial and nothing waits in its
    /// queues.
    pub(crate) async fn find_idle_worker<'o>(
        &self,
        offer: Option<&'o ClaimRequest>,
    ) -> PgResult<Option<IdleWorker<'o>>> {
        let Some(offer) = offer else { return Ok(None) };
        let row = self.session.one(FIND_IDLE_WORKER, &[&offer.worker.as_str()]).await?;
        self.watermarks.progress().looked();
        let Some(row) = row else { return Ok(None) };
        let (serving, token) = worker::read_serving(&row, offer.salt)?;
        Ok(Some(IdleWorker { offer, serving, token }))
    }

    /// Inserts the batch of claims that an idle worker gets.
    pub(crate) async fn insert_claims(
        &self,
        idle: &IdleWorker<'_>,
        taken: &[Queued],
    ) -> PgResult<()> {
        let tasks = TaskKeys::of(taken.iter().map(|task| (task.run, task.node)));
        if tasks.is_empty() {
            return Ok(());
        }
        let [runs, nodes] = tasks.params();
        let (token, no): (Param<'_>, Param<'_>) = (&token(idle.token), &idle.serving.no);
        self.session.run(INSERT_CLAIMS, &[token, no, runs, nodes]).await
    }
}
