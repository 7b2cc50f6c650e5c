//! Handing what becomes ready straight to the worker that offers to take it. Such a task is written
//! once, as running, and never stands in a queue.

use stepwell_core::decide::is_suspect;
use stepwell_core::id::Token;

use super::super::rows::queue::Queued;
use super::super::rows::task::is_failure_handler;
use super::super::rows::worker::{self, ServingWorker};
use super::super::rows::{Param, TaskKeys, int32, token};
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
    /// Takes what the worker can take, as far as it has room, and leaves the rest. Whoever goes
    /// from hand to hand never stands in a queue, so nothing has to be known of it, nor locked. No
    /// tenant loses or wins by that more than its next place: nobody waits, so none stands ahead
    /// of the frontier. Where there is no room for all, those of one tenant and queue are taken in
    /// the order in which they come; between several the queue decides.
    pub(crate) fn split(&self, tasks: Vec<Queued>) -> (Vec<Queued>, Vec<Queued>) {
        let can_take = |task: &Queued| {
            // The handler is told of the failure, which is read when it is claimed.
            !is_failure_handler(task.node)
                && !is_suspect(task.losses, self.offer.crash_limit)
                && self.serving.queues.iter().any(|queue| queue == task.queue.as_str())
                && self.serving.definitions.contains(&int32(task.definition.0))
        };
        let mut takeable = tasks.iter().filter(|task| can_take(task));
        let n_takeable = takeable.clone().count();
        let is_alike = takeable.next().is_none_or(|first| {
            takeable.all(|task| task.tenant_no == first.tenant_no && task.queue == first.queue)
        });
        let mut room = self.offer.tasks_max;
        if n_takeable > room && !is_alike {
            return (Vec::new(), tasks);
        }
        tasks.into_iter().partition(|task| {
            let is_taken = room > 0 && can_take(task);
            room -= usize::from(is_taken);
            is_taken
        })
    }
}

impl QueueSet<'_> {
    /// The worker that makes an offer, if it is alive and nothing waits in its queues.
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
