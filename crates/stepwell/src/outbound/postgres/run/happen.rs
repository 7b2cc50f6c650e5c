//! What happens to runs, from the lock to the write.

use stepwell_core::decide::{self, Happening, TaskHappening, Verdict};
use stepwell_core::id::{Node, RunKey};
use stepwell_core::run::RunImage;
use stepwell_core::time::Timestamp;

use super::super::queue::enqueue_unlimited::UnlimitedTenants;
use super::super::queue::hand_over::IdleWorker;
use super::super::rows::run::StoredRun;
use super::super::session::{Conflict, PgResult};
use super::inbox::{InboxPlan, Inboxes};
use super::load::LoadedTasks;
use super::write::{Payloads, RunUpdate, Write};
use super::{Happened, Happenings, RunSet, Verdicts};
use crate::ports::{ClaimRef, ClaimRequest, HintSet};

/// What follows from happenings, ready to be written.
pub(crate) struct DecidedBatch {
    pub(crate) verdicts: Verdicts,
    pub(crate) updates: Vec<RunUpdate>,
    /// The tenants, if none of them has a limit.
    pub(crate) tenants: Option<UnlimitedTenants>,
}

impl RunSet<'_> {
    /// Decides happenings and writes what follows.
    pub(crate) async fn happen(&self, happenings: Happenings) -> PgResult<(Verdicts, HintSet)> {
        let keys: Vec<RunKey> = happenings.keys().copied().collect();
        let runs = self.lock(&keys).await?;
        self.happen_to(runs, happenings).await
    }

    /// Decides happenings of runs that are locked, and writes what follows.
    async fn happen_to(
        &self,
        runs: Vec<StoredRun>,
        happenings: Happenings,
    ) -> PgResult<(Verdicts, HintSet)> {
        let (plan, inboxes) = self.plan_for(&runs, &happenings, None).await?;
        let loaded = self.load(&plan).await?;
        let DecidedBatch { verdicts, updates, tenants } =
            self.decide(runs, loaded, inboxes, happenings).await?;
        let (payloads, closes, idle) = (Payloads::None, false, None);
        let outcome = self.write(Write { updates, tenants, payloads, closes, idle }).await?;
        Ok((verdicts, outcome.hints))
    }

    /// As [`happen`](Self::happen), and opens the transaction along.
    pub(crate) async fn open_and_happen(
        &self,
        happenings: Happenings,
    ) -> PgResult<(Verdicts, HintSet)> {
        let keys: Vec<RunKey> = happenings.keys().copied().collect();
        let (begun, runs) = tokio::join!(biased; self.ids.begin_serving(), self.lock(&keys));
        begun?;
        self.happen_to(runs?, happenings).await
    }

    /// Opens the transaction, locks the runs, loads what is needed and decides. If this process
    /// remembers the runs, all of that is asked for in one go, with the worker that makes an offer.
    pub(crate) async fn open_and_decide<'o>(
        &self,
        happenings: Happenings,
        offer: Option<&'o ClaimRequest>,
    ) -> PgResult<(DecidedBatch, Option<IdleWorker<'o>>)> {
        let keys: Vec<RunKey> = happenings.keys().copied().collect();
        let cached = self.plan_from_cache(&happenings);
        let loaded = async {
            match &cached {
                Some(plan) => self.load(plan).await.map(Some),
                None => Ok(None),
            }
        };
        let (opened, idle, runs, loaded) = tokio::join!(
            biased;
            self.ids.open_serving(),
            self.queues.find_idle_worker(offer),
            self.lock(&keys),
            loaded,
        );
        let ((), idle, runs, loaded) = (opened?, idle?, runs?, loaded?);
        let (loaded, inboxes) = if let Some(loaded) = loaded {
            (loaded, Inboxes::new())
        } else {
            let (plan, inboxes) = self.plan_for(&runs, &happenings, None).await?;
            (self.load(&plan).await?, inboxes)
        };
        if cached.is_some_and(|plan| !plan.is_right_about(&runs)) {
            return Err(Conflict::RunsChanged.into());
        }
        Ok((self.decide(runs, loaded, inboxes, happenings).await?, idle))
    }

    /// Locks the runs that signals are for, loads what is needed and decides. The transaction is
    /// opened along with that, unless it is open.
    pub(crate) async fn decide_signals(
        &self,
        happenings: Happenings,
        is_open: bool,
    ) -> PgResult<DecidedBatch> {
        let keys: Vec<RunKey> = happenings.keys().copied().collect();
        let asked = InboxPlan::of_signals(&happenings);
        let begin = async { if is_open { Ok(()) } else { self.ids.begin_serving().await } };
        let (begun, runs, inboxes) = tokio::join!(
            biased;
            begin,
            self.lock(&keys),
            self.read_inboxes(&asked),
        );
        begun?;
        let (runs, inboxes) = (runs?, inboxes?);
        let (plan, inboxes) = self.plan_for(&runs, &happenings, Some(inboxes)).await?;
        let loaded = self.load(&plan).await?;
        self.decide(runs, loaded, inboxes, happenings).await
    }

    /// Lets the core decide what happened to runs that are locked.
    async fn decide(
        &self,
        runs: Vec<StoredRun>,
        mut loaded: LoadedTasks,
        mut inboxes: Inboxes,
        mut happenings: Happenings,
    ) -> PgResult<DecidedBatch> {
        let definitions = self.ids.plans_of(runs.iter().map(|run| &run.row)).await?;
        let mut verdicts = Verdicts::default();
        let mut updates = Vec::with_capacity(runs.len());
        let mut wrong = Vec::new();
        let now = self.session.now();
        for run in runs {
            let (run_key, definition) = (run.row.key, run.row.definition);
            let Some(stored) = definitions.get(&definition) else { continue };
            let tasks = loaded.tasks.remove(&run_key).unwrap_or_default();
            let mut image = RunImage::new(&stored.definition, now, run.row, tasks);
            if let Some(inbox) = inboxes.remove(&run_key) {
                image = image.with_inbox(inbox);
            }
            for happened in happenings.remove(&run_key).unwrap_or_default() {
                let claim = claim_of(run_key, &happened);
                let verdict = decide_one(&mut image, now, happened);
                if let (Verdict::WrongGuess, Some(claim)) = (verdict, claim) {
                    let failures = image.task(claim.node).map_or(0, |task| task.failures);
                    wrong.push((claim, failures));
                }
                verdicts.add(run_key, verdict);
            }
            updates.push(RunUpdate::new(image, stored, run.tenant_no));
        }
        if !wrong.is_empty() {
            return Err(Conflict::WrongFailures(wrong).into());
        }
        Ok(DecidedBatch { verdicts, updates, tenants: loaded.tenants })
    }
}

/// Decides a happening, unless its claim no longer holds the task, or its timer was set anew
/// between the look at timers and the lock on the run.
fn decide_one(image: &mut RunImage<'_>, now: Timestamp, happened: Happened) -> Verdict {
    let Happened { token, happening } = happened;
    let task = |node: &Node| image.task(*node);
    let is_current = match (&happening, token) {
        (Happening::Task(node, _), Some(token)) => {
            task(node).is_some_and(|task| task.is_held_by(token))
        }
        (Happening::Task(node, TaskHappening::TimerFired), None) => {
            task(node).and_then(|task| task.phase.due()).is_some_and(|due| due <= now)
        }
        _ => true,
    };
    if is_current { decide::decide(image, happening) } else { Verdict::NotCurrent }
}

/// The claim that a happening is fenced by.
fn claim_of(run: RunKey, happened: &Happened) -> Option<ClaimRef> {
    match &happened.happening {
        Happening::Task(node, _) => Some(ClaimRef { run, node: *node, token: happened.token? }),
        Happening::Run(_) => None,
    }
}
