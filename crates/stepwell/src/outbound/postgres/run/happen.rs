//! What happens to runs, from the lock to the write.

use std::collections::BTreeSet;

use stepwell_core::decide::{self, CancelAnswer};
use stepwell_core::id::{Node, RunKey, Token};
use stepwell_core::run::RunImage;

use super::super::queue::enqueue_unlimited::UnlimitedTenants;
use super::super::queue::hand_over::IdleWorker;
use super::super::queue::service::open_serving;
use super::super::rows::run::StoredRun;
use super::super::session::{Conflict, HintSet, PgResult};
use super::load::LoadedTasks;
use super::write::{Payloads, RunUpdate, Write};
use super::{Happened, Happenings, RunSet};
use crate::ports::ClaimRequest;

/// Which happenings took effect, by task and token.
pub(crate) type Accepted = BTreeSet<(RunKey, Node, Option<Token>)>;

/// What follows from happenings, ready to be written.
pub(crate) struct DecidedBatch {
    pub(crate) accepted: Accepted,
    pub(crate) updates: Vec<RunUpdate>,
    /// The tenants, if none of them has a limit.
    pub(crate) tenants: Option<UnlimitedTenants>,
}

impl RunSet<'_> {
    /// Decides happenings and writes what follows. Says which of them were current: held by the
    /// given token, or with a timer that still stands.
    pub(crate) async fn happen(&self, happenings: Happenings) -> PgResult<(Accepted, HintSet)> {
        let keys: Vec<RunKey> = happenings.keys().copied().collect();
        let runs = self.lock(&keys).await?;
        let plan = self.plan_for(&runs, &happenings).await?;
        let loaded = self.load(&plan).await?;
        let DecidedBatch { accepted, updates, tenants } =
            self.decide(runs, loaded, happenings).await?;
        let (payloads, closes, idle) = (Payloads::None, false, None);
        let outcome = self.write(Write { updates, tenants, payloads, closes, idle }).await?;
        Ok((accepted, outcome.hints))
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
        let definitions = self.ids.plans(runs.iter().map(|run| run.row.definition)).await?;
        let mut accepted = Accepted::new();
        let mut updates = Vec::with_capacity(runs.len());
        let now = self.session.now();
        for run in runs {
            let (run_key, definition) = (run.row.key, run.row.definition);
            let Some(stored) = definitions.get(&definition) else { continue };
            let tasks = loaded.tasks.remove(&run_key).unwrap_or_default();
            let mut image = RunImage::new(&stored.definition, now, run.row, tasks);
            for Happened { node, token, happening } in
                happenings.remove(&run_key).unwrap_or_default()
            {
                let held = |token| image.task(node).is_some_and(|task| task.is_held_by(token));
                if token.is_none_or(held) && decide::decide(&mut image, node, happening) {
                    accepted.insert((run_key, node, token));
                }
            }
            updates.push(RunUpdate::new(image, stored, run.tenant_no));
        }
        Ok(DecidedBatch { accepted, updates, tenants: loaded.tenants })
    }

    /// Cancels a run. `None` if there is none.
    pub(crate) async fn cancel(
        &self,
        run_key: RunKey,
    ) -> PgResult<(Option<CancelAnswer>, HintSet)> {
        let Some(run) = self.lock(&[run_key]).await?.into_iter().next() else {
            return Ok((None, HintSet::default()));
        };
        let stored = self.ids.plan(run.row.definition).await?;
        let tasks = self.lock_open_tasks(run_key).await?;
        let mut image = RunImage::new(&stored.definition, self.session.now(), run.row, tasks);
        let answer = decide::cancel(&mut image);
        let updates = vec![RunUpdate::new(image, &stored, run.tenant_no)];
        let (tenants, payloads, closes, idle) = (None, Payloads::None, false, None);
        let outcome = self.write(Write { updates, tenants, payloads, closes, idle }).await?;
        Ok((Some(answer), outcome.hints))
    }
}
