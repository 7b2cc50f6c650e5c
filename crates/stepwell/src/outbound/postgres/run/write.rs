//! Writing what the rules decided: all runs of a call together, in as few round trips as can be.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use stepwell_core::decide::{self, is_suspect};
use stepwell_core::id::{Node, RunKey, WorkerId};
use stepwell_core::queue::Split;
use stepwell_core::run::{
    AttemptState, Changes, MemoOutcome, MemoRow, RunImage, RunRow, TaskRow, Tasks,
};

use super::super::queue::Arrivals;
use super::super::queue::enqueue_unlimited::{Placed, UnlimitedTenants};
use super::super::queue::hand_over::IdleWorker;
use super::super::queue::remove::MovedOn;
use super::super::rows::queue::Queued;
use super::super::session::{PgResult, first_error};
use super::RunSet;
use super::inputs::{InputBatch, InputPlan};
use super::write_rows::RowWriter;
use crate::ports::{ClaimRef, ClaimedTask, HandedOver, Hint, HintSet, Payload, StoredDefinition};

/// A decided run, ready to be written.
pub(crate) struct RunUpdate {
    pub(super) run: RunRow,
    pub(super) tasks: Tasks,
    pub(super) changes: Changes,
    pub(super) stored: Arc<StoredDefinition>,
    pub(super) tenant_no: u32,
}

impl RunUpdate {
    pub(crate) fn new(image: RunImage<'_>, stored: &Arc<StoredDefinition>, tenant_no: u32) -> Self {
        let (run, tasks, changes) = image.into_parts();
        Self { run, tasks, changes, stored: Arc::clone(stored), tenant_no }
    }

    /// The claims whose attempts ended, and how.
    pub(crate) fn ended_claims(&self) -> impl Iterator<Item = (ClaimRef, AttemptState)> {
        self.changes.attempts.iter().map(|attempt| {
            let (run, node, token) = (self.run.key, attempt.node, attempt.claim.token);
            (ClaimRef { run, node, token }, attempt.state)
        })
    }

    pub(super) fn touched(&self) -> impl Iterator<Item = (RunKey, &TaskRow)> {
        let tasks = self.changes.touched.iter().filter_map(|node| self.tasks.get(*node));
        tasks.map(|task| (self.run.key, task))
    }

    fn queued(&self) -> impl Iterator<Item = Queued> {
        let deadline = self.run.standing_deadline();
        self.changes.enqueued.iter().map(move |node| Queued {
            // Given when it is enqueued.
            number: 0,
            run: self.run.key,
            node: *node,
            tenant_no: self.tenant_no,
            queue: self.stored.definition.queue(*node),
            service: self.stored.service(),
            losses: self.tasks.get(*node).map_or(0, |task| task.losses),
            deadline,
        })
    }
}

/// Payloads that are written together with rows.
#[derive(Clone, Copy)]
pub(crate) enum Payloads<'p> {
    None,
    /// Inputs of runs that were just inserted.
    Inputs(&'p [(RunKey, &'p Payload)]),
    /// Outputs of tasks that completed, and inputs of the rounds that functions begin.
    Outputs(&'p [(RunKey, Node, &'p Payload)]),
    /// What signals brought, by run and number.
    Signals(&'p HashMap<(RunKey, u64), &'p Payload>),
}

impl<'p> Payloads<'p> {
    /// The input of the round that a memo tells of.
    pub(super) fn of_round(self, run: RunKey, memo: &MemoRow) -> Option<&'p Payload> {
        let (Self::Outputs(outputs), MemoOutcome::Round(_)) = (self, &memo.outcome) else {
            return None;
        };
        let of_round = outputs.iter().find(|(of, node, _)| (*of, *node) == (run, memo.node));
        of_round.map(|(.., input)| *input)
    }

    /// Where the tasks come from that become ready.
    const fn arrivals(self) -> Arrivals {
        match self {
            Self::Inputs(_) => Arrivals::OfStarts,
            Self::None | Self::Outputs(_) | Self::Signals(_) => Arrivals::UnderWay,
        }
    }
}

/// What is written.
pub(crate) struct Write<'p, 'o> {
    pub(crate) updates: Vec<RunUpdate>,
    /// The tenants, if none of them has a limit.
    pub(crate) tenants: Option<UnlimitedTenants>,
    pub(crate) payloads: Payloads<'p>,
    /// Whether the transaction commits in the same round trip as the last writes.
    pub(crate) closes: bool,
    /// An idle worker that offers to take what becomes ready.
    pub(crate) idle: Option<IdleWorker<'o>>,
}

/// What became of a write.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) handed_over: HandedOver,
    /// What others should be told.
    pub(crate) hints: HintSet,
}

/// What is enqueued, and what an idle worker takes.
struct Ready<'o> {
    tenants: UnlimitedTenants,
    left: Vec<Queued>,
    handed: Option<(IdleWorker<'o>, Vec<Queued>)>,
}

impl RunSet<'_> {
    /// Writes what was decided: rows first, then admissions that came free, then what became ready,
    /// so that a freed admission goes to those who waited longest. Hands what became ready to an
    /// idle worker that offers to take it.
    pub(crate) async fn write(&self, write: Write<'_, '_>) -> PgResult<Outcome> {
        let Write { updates, tenants, payloads, closes, idle } = write;
        let mut hints = HintSet::default();
        for update in &updates {
            let output = update.stored.definition.output_step();
            hints.add_all(HintSet::earned_by(&update.run, output, &update.changes));
        }
        let tasks: Vec<Queued> = updates.iter().flat_map(RunUpdate::queued).collect();
        let is_withdrawn = updates.iter().any(|update| !update.changes.dequeued.is_empty());
        let workers = self.ids.worker_nos(&workers_of(&updates)).await?;
        if let Some(tenants) = tenants.filter(|_| !is_withdrawn) {
            let Split { taken, left, .. } = match &idle {
                Some(idle) => idle.split(tasks, self.session.now()),
                None => Split { taken: Vec::new(), left: tasks, next_turn: 0 },
            };
            let handed = idle.map(|idle| (idle, taken)).filter(|(_, taken)| !taken.is_empty());
            let ready = Ready { tenants, left, handed };
            let mut outcome = self.write_plain(updates, payloads, workers, closes, ready).await?;
            outcome.hints.add_all(hints);
            return Ok(outcome);
        }
        let (session, workers) = (self.session, &workers);
        let rows = RowWriter { session, updates: &updates, payloads, workers };
        let moved_on = moved_on(&updates);
        if tasks.is_empty() && moved_on.tenants.is_empty() {
            let answers = tokio::join!(biased; rows.write(), self.close_if(closes));
            first_error(answers.into())?;
            return Ok(Outcome { handed_over: HandedOver::default(), hints });
        }
        rows.write().await?;
        let n_filled = self.queues.remove_places(moved_on).await?;
        let n_enqueued = self.queues.enqueue(tasks, payloads.arrivals()).await?;
        hints.add_if(Hint::Ready, n_filled + n_enqueued > 0);
        let answers = tokio::join!(biased; rows.end_claims(), self.close_if(closes));
        first_error(answers.into())?;
        Ok(Outcome { handed_over: HandedOver::default(), hints })
    }

    /// Writes what needs no care: none of the tenants has a limit, so no admissions come free. The
    /// positions of tenants are locked behind everything that takes long.
    async fn write_plain(
        &self,
        mut updates: Vec<RunUpdate>,
        payloads: Payloads<'_>,
        mut workers: HashMap<WorkerId, i64>,
        closes: bool,
        ready: Ready<'_>,
    ) -> PgResult<Outcome> {
        let Ready { tenants, left, handed } = ready;
        if let Some((idle, taken)) = &handed {
            workers.insert(idle.offer.worker.clone(), idle.serving.no);
            self.mark_claimed(&mut updates, taken, idle);
        }
        let by_key: UpdatesByKey<'_> =
            updates.iter().map(|update| (update.run.key, update)).collect();
        let taken = handed.as_ref().map(|(_, taken)| taken.as_slice()).unwrap_or_default();
        let plan = InputPlan::for_handed_over(&self.ids, taken, &by_key, payloads);
        let (session, workers) = (self.session, &workers);
        let rows = RowWriter { session, updates: &updates, payloads, workers };
        let claims = async {
            match &handed {
                Some((idle, taken)) => self.queues.insert_claims(idle, taken).await,
                None => Ok(()),
            }
        };
        let is_any_left = !left.is_empty();
        let first = async {
            let (rows, claims, placed) = tokio::join!(
                biased;
                rows.write(),
                claims,
                self.queues.find_places(left, payloads.arrivals(), tenants),
            );
            first_error([rows, claims])?;
            placed
        };
        let (placed, inputs) = if is_any_left {
            let placed = first.await?;
            let inputs = self.write_last(&rows, &placed, plan, closes).await?;
            (placed, inputs)
        } else {
            let nowhere = Placed::default();
            let last = self.write_last(&rows, &nowhere, plan, closes);
            let (placed, inputs) = tokio::join!(biased; first, last);
            (placed?, inputs?)
        };
        let mut hints = HintSet::default();
        hints.add_if(Hint::Ready, placed.leaves_any());
        let handed_over = match &handed {
            Some((idle, taken)) => self.handed_over(idle, taken, &by_key, &inputs),
            None => HandedOver::default(),
        };
        Ok(Outcome { handed_over, hints })
    }

    /// Writes what waits for the places of tasks, reads what handed-over tasks are executed with,
    /// and commits.
    async fn write_last(
        &self,
        rows: &RowWriter<'_>,
        placed: &Placed,
        inputs: InputPlan,
        closes: bool,
    ) -> PgResult<InputBatch> {
        let (placed, ended, inputs, closed) = tokio::join!(
            biased;
            self.queues.place(placed),
            rows.end_claims(),
            inputs.read(self.session),
            self.close_if(closes),
        );
        first_error([placed, ended])?;
        closed.and(inputs)
    }

    async fn close_if(&self, closes: bool) -> PgResult<()> {
        if closes { self.session.close().await } else { Ok(()) }
    }

    /// Marks taken tasks as claimed by the worker that takes them.
    fn mark_claimed(&self, updates: &mut [RunUpdate], taken: &[Queued], idle: &IdleWorker<'_>) {
        let mut nodes: HashMap<RunKey, Vec<Node>> = HashMap::new();
        for task in taken {
            nodes.entry(task.run).or_default().push(task.node);
        }
        for update in updates {
            for node in nodes.remove(&update.run.key).unwrap_or_default() {
                if let Some(task) = update.tasks.get_mut(node) {
                    decide::claim(task, &idle.offer.worker, idle.token, self.session.now());
                }
            }
        }
    }

    /// Taken tasks as their worker gets them.
    fn handed_over(
        &self,
        idle: &IdleWorker<'_>,
        taken: &[Queued],
        updates: &UpdatesByKey<'_>,
        inputs: &InputBatch,
    ) -> HandedOver {
        self.ids.cache.remember_inputs(inputs.of_runs());
        self.ids.cache.remember_runs(taken.iter().map(|task| (task.run, task.run_ref())));
        let tasks = taken.iter().enumerate().filter_map(|(ix, queued)| {
            let update = updates.get(&queued.run)?;
            let task = update.tasks.get(queued.node)?;
            Some(ClaimedTask {
                claim: ClaimRef { run: queued.run, node: queued.node, token: idle.token },
                tenant: update.run.tenant.clone(),
                run_id: update.run.id.clone(),
                definition: Arc::clone(&update.stored),
                attempt: task.attempt,
                failures: task.failures,
                resumed: task.resumed,
                is_suspect: is_suspect(task.losses, idle.offer.crash_limit),
                inputs: inputs.of_task(ix),
            })
        });
        HandedOver { now: self.session.now(), tasks: tasks.collect() }
    }
}

/// Decided runs by key.
pub(super) type UpdatesByKey<'w> = HashMap<RunKey, &'w RunUpdate>;

/// The workers whose attempts ended, and those that hold what is written.
fn workers_of(updates: &[RunUpdate]) -> BTreeSet<&WorkerId> {
    let attempts = updates.iter().flat_map(|update| &update.changes.attempts);
    let held = updates.iter().flat_map(RunUpdate::touched).filter_map(|(_, task)| task.claim());
    let claims = attempts.map(|attempt| &attempt.claim).chain(held);
    claims.map(|claim| &claim.worker).collect()
}

/// Tasks that leave where they waited or were counted.
fn moved_on(updates: &[RunUpdate]) -> MovedOn {
    let mut moved_on = MovedOn::default();
    for RunUpdate { run, changes, tenant_no, .. } in updates {
        if changes.dequeued.is_empty() && changes.claims_ended.is_empty() {
            continue;
        }
        moved_on.tenants.push(*tenant_no);
        moved_on.dequeued.extend(changes.dequeued.iter().map(|node| (run.key, *node)));
        moved_on.ended.extend(changes.claims_ended.iter().map(|(node, _)| (run.key, *node)));
    }
    moved_on
}
