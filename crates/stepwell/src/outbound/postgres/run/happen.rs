//! What happens to runs, from the lock to the write.

use stepwell_core::decide::{self, Happening, Verdict};
use stepwell_core::id::RunKey;
use stepwell_core::run::RunImage;

use super::super::queue::enqueue_unlimited::UnlimitedTenants;
use super::super::queue::hand_over::IdleWorker;
use super::super::queue::service::open_serving;
use super::super::rows::run::StoredRun;
use super::super::session::{Conflict, PgResult};
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
        let plan = self.plan_for(&runs, &happenings).await?;
        let loaded = self.load(&plan).await?;
        let DecidedBatch { verdicts, updates, tenants } =
            self.decide(runs, loaded, happenings).await?;
        let (payloads, closes, idle) = (Payloads::None, false, None);
        let outcome = self.write(Write { updates, tenants, payloads, closes, idle }).await?;
        Ok((verdicts, outcome.hints))
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
            open_serving(self.session),
            self.queues.find_idle_worker(offer),
            self.lock(&keys),
            loaded,
        );
        let ((), idle, runs, loaded) = (opened?, idle?, runs?, loaded?);
        let loaded = if let Some(loaded) = loaded {
            loaded
        } else {
            let plan = self.plan_for(&runs, &happenings).await?;
            self.load(&plan).await?
        };
        if cached.is_some_and(|plan| !plan.is_right_about(&runs)) {
            return Err(Conflict::RunsChanged.into());
        }
        Ok((self.decide(runs, loaded, happenings).await?, idle))
    }

    /// Lets the core decide what happened to runs that are locked.
    async fn decide(
        &self,
        runs: Vec<StoredRun>,
        mut loaded: LoadedTasks,
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
            for happened in happenings.remove(&run_key).unwrap_or_default() {
                let claim = claim_of(run_key, &happened);
                let verdict = decide_one(&mut image, happened);
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

/// Decides a happening, unless its claim no longer holds the task.
fn decide_one(image: &mut RunImage<'_>, happened: Happened) -> Verdict {
    let Happened { token, happening } = happened;
    let is_held = match (&happening, token) {
        (Happening::Task(node, _), Some(token)) => {
            image.task(*node).is_some_and(|task| task.is_held_by(token))
        }
        _ => true,
    };
    if is_held { decide::decide(image, happening) } else { Verdict::NotCurrent }
}

/// The claim that a happening is fenced by.
fn claim_of(run: RunKey, happened: &Happened) -> Option<ClaimRef> {
    match &happened.happening {
        Happening::Task(node, _) => Some(ClaimRef { run, node: *node, token: happened.token? }),
        Happening::Run(_) => None,
    }
}
