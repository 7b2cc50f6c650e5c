//! Claiming ready tasks: the first ones of a worker's queues, in fair order.

use std::collections::BTreeMap;

use stepwell_core::decide::{StartedAttempt, start_attempt, suspects_from};
use stepwell_core::id::{ServiceId, Token};
use stepwell_core::queue::{Position, take_turns};
use tokio_postgres::Row;

use super::super::lookup::IdLookup;
use super::super::rows::queue::{
    Candidate, ClaimedCandidate, read_claimed, read_found, read_n_found,
};
use super::super::rows::worker::{self, ServingWorker};
use super::super::rows::{Param, int, int32, read_all, rows_max, token};
use super::super::session::{Params, PgResult};
use super::super::sql::{self, Sql};
use super::QueueSet;
use crate::ports::ClaimRequest;

const FIND_WORKER: Sql = sql::WORKER.named("find_worker");
const FIRST_READY: Sql = sql::QUEUE.named("first_ready");
const FIRST_READY_OF_MANY: Sql = sql::QUEUE.named("first_ready_of_many");
const CLAIM_TASKS: Sql = sql::QUEUE.named("claim_tasks");
const SET_NEXT_TURN: Sql = sql::WORKER.named("set_next_turn");

/// What a claim may choose from.
#[derive(Default)]
pub(crate) struct Candidates {
    /// The first tasks of each of the worker's queues, in the order of its queues.
    pub(crate) queues: Vec<Vec<Candidate>>,
    /// Whether a suspect waits that is not among them.
    pub(crate) suspect_waits: bool,
}

/// What a claim chose.
#[derive(Default)]
pub(crate) struct Chosen {
    pub(crate) tasks: Vec<Candidate>,
    /// What was taken, by queue.
    taken: BTreeMap<String, Taken>,
    /// How many tasks were taken, by queue and service.
    n_taken: BTreeMap<(String, ServiceId), u64>,
    /// The queue of the worker that comes first next time.
    next_turn: usize,
}

/// What was taken from a queue.
#[derive(Default)]
struct Taken {
    greatest: Position,
}

/// How much a claim for several services looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WideLook {
    /// Tasks of each service, at first.
    each: usize,
    /// Tasks of all of them, some of which others may hold.
    all: usize,
}

impl WideLook {
    /// If all services have as much to do, each has its part of what is asked for.
    fn new(tasks_max: usize, n_services: usize) -> Self {
        let all = tasks_max.saturating_mul(3).saturating_add(64);
        Self { each: all / n_services.max(1) + 8, all }
    }

    fn wider(self) -> Self {
        Self { each: self.each.saturating_mul(4), all: self.all.saturating_mul(8) }
    }
}

impl Chosen {
    /// Chooses ready tasks in fair order, taking turns between queues.
    pub(crate) fn of(
        serving: &ServingWorker,
        queues: Vec<Vec<Candidate>>,
        tasks_max: usize,
    ) -> Self {
        let turns = take_turns(queues, serving.next_turn, tasks_max);
        let mut chosen = Self { next_turn: turns.next_turn, ..Self::default() };
        for (turn, task) in turns.chosen {
            let queue = &serving.queues[turn];
            let taken = chosen.taken.entry(queue.clone()).or_default();
            taken.greatest = task.position.max(taken.greatest);
            *chosen.n_taken.entry((queue.clone(), task.service)).or_default() += 1;
            chosen.tasks.push(task);
        }
        chosen
    }
}

impl QueueSet<'_> {
    /// The worker as it is registered, and the token for what it claims. The database's time is
    /// read along, and what tells it from another database.
    pub(crate) async fn find_worker(
        &self,
        ids: &IdLookup<'_>,
        request: &ClaimRequest,
    ) -> PgResult<Option<(ServingWorker, Token)>> {
        let params: Params<'_> = &[&request.worker.as_str(), &ids.beliefs.tenant_no()];
        let Some(row) = self.session.one(FIND_WORKER, params).await? else { return Ok(None) };
        let found = worker::read_identity(&row)?;
        self.session.set_now(found.now);
        ids.check(found)?;
        Ok(Some(worker::read_serving(&row, request.salt)?))
    }

    /// The first tasks of each of the worker's queues that are no suspects.
    pub(crate) async fn candidates(
        &self,
        serving: &ServingWorker,
        request: &ClaimRequest,
    ) -> PgResult<Candidates> {
        let queues = serving.queues.iter().map(|queue| self.first_ready(serving, queue, request));
        // Polled in order, so that all are asked for in one go.
        let queues = futures_util::future::join_all(queues).await;
        let mut candidates = Candidates::default();
        for found in queues {
            let (tasks, suspect_waits) = found?;
            candidates.queues.push(tasks);
            candidates.suspect_waits |= suspect_waits;
        }
        Ok(candidates)
    }

    /// The first tasks of a queue that the worker can take and that are no suspects, and whether a
    /// suspect waits.
    async fn first_ready(
        &self,
        serving: &ServingWorker,
        queue: &str,
        request: &ClaimRequest,
    ) -> PgResult<(Vec<Candidate>, bool)> {
        let n = rows_max(request.tasks_max);
        let suspects_from = int32(suspects_from(request.crash_limit));
        let now = self.session.pool().injected_now();
        let services = serving.service_nos();
        if let [service] = services {
            let params: Params<'_> = &[&queue, service, &suspects_from, &n, &now];
            return found(&self.session.all(FIRST_READY, params).await?);
        }
        let mut look = WideLook::new(request.tasks_max, services.len());
        loop {
            let (each, all) = (rows_max(look.each), rows_max(look.all));
            let params: Params<'_> = &[&queue, &services, &suspects_from, &n, &now, &each, &all];
            let rows = self.session.all(FIRST_READY_OF_MANY, params).await?;
            let n_looked_at = rows.first().map(read_n_found).transpose()?.unwrap_or_default();
            let (found, suspect_waits) = found(&rows)?;
            if found.len() >= request.tasks_max || n_looked_at < look.all {
                return Ok((found, suspect_waits));
            }
            // Others hold what is first; there may be more behind.
            look = look.wider();
        }
    }

    /// Marks the chosen tasks as the worker's, and moves its frontiers on.
    pub(crate) async fn claim(
        &self,
        serving: &ServingWorker,
        chosen: &Chosen,
        fence: Token,
    ) -> PgResult<Vec<ClaimedCandidate>> {
        let task_at: Vec<&str> = chosen.tasks.iter().map(|task| task.task_at.as_str()).collect();
        let ready_at: Vec<&str> = chosen.tasks.iter().map(|task| task.ready_at.as_str()).collect();
        let queues: Vec<&str> = chosen.taken.keys().map(String::as_str).collect();
        let frontiers: Vec<i64> = chosen.taken.values().map(|t| int(t.greatest.0)).collect();
        let started = || chosen.tasks.iter().map(|task| self.start_attempt(task));
        let attempts: Vec<i32> = started().map(|started| int32(started.attempt)).collect();
        let started_at: Vec<i64> = started().map(|s| s.started_at.as_micros()).collect();
        let fence: Param<'_> = &token(fence);
        let (at, no): (Param<'_>, Param<'_>) = (&started_at, &serving.no);
        let params: Params<'_> =
            &[&task_at, &attempts, at, &ready_at, no, fence, &queues, &frontiers];
        Ok(read_all(&self.session.all(CLAIM_TASKS, params).await?, read_claimed)?)
    }

    /// What a claim of this transaction writes into a task.
    pub(crate) fn start_attempt(&self, task: &Candidate) -> StartedAttempt {
        start_attempt(task.n_attempts, task.queued_at, self.session.now())
    }

    /// Moves the turn among the worker's queues on.
    pub(crate) async fn set_next_turn(
        &self,
        serving: &ServingWorker,
        chosen: &Chosen,
    ) -> PgResult<()> {
        if serving.queues.len() < 2 {
            return Ok(());
        }
        let next = i32::try_from(chosen.next_turn).unwrap_or_default();
        self.session.run(SET_NEXT_TURN, &[&serving.no, &next]).await
    }

    /// Counts what a claim looked at and took, for the watermarks.
    pub(crate) fn count_taken(&self, chosen: &Chosen) {
        let mut progress = self.watermarks.progress();
        progress.looked();
        for ((queue, service), n) in &chosen.n_taken {
            progress.took(queue, *service, *n);
        }
    }
}

/// The tasks in rows of which the first may have none, and whether a suspect waits.
fn found(rows: &[Row]) -> PgResult<(Vec<Candidate>, bool)> {
    let found = read_all(rows, read_found)?;
    let suspect_waits = found.iter().any(|(_, waits)| *waits);
    Ok((found.into_iter().filter_map(|(task, _)| task).collect(), suspect_waits))
}
