//! Taking tasks from workers that are gone.

use std::collections::BTreeMap;

use stepwell_core::decide::{Happening, TaskHappening};
use stepwell_core::id::Epoch;
use stepwell_core::lease::{LastBeat, losses_after};

use super::super::queue::service::lock_serving_exclusive;
use super::super::rows::worker::{self, HeldClaim};
use super::super::rows::{int, read_all};
use super::super::run::{Happened, Happenings, RunSet};
use super::super::session::{PgResult, Session};
use super::super::sql::{self, Sql};
use super::term::check_epoch;
use crate::ports::{Hint, HintSet, ReapRequest, Reaped};

pub(crate) const READ_CLAIMS: Sql = sql::WORKER.named("read_claims");
const END_WORKERS: Sql = sql::WORKER.named("end_workers");
const FOLD_FRONTIERS: Sql = sql::POSITION.named("fold_frontiers");
pub(crate) const DELETE_SERVE: Sql = sql::WORKER.named("delete_serve");
pub(crate) const DELETE_PROGRESS: Sql = sql::PROGRESS.named("delete_progress");
const LOCK_SILENT: Sql = sql::WORKER.named("lock_silent");

/// Marks workers dead that have not beaten since, and takes their tasks from them.
pub(crate) async fn reap(
    runs: &RunSet<'_>,
    epoch: Epoch,
    request: &ReapRequest,
) -> PgResult<(Reaped, HintSet)> {
    let session = runs.session;
    check_epoch(session, epoch).await?;
    lock_serving_exclusive(session).await?;
    let dead = lock_silent(session, &request.dead).await?;
    let mut reaped = Reaped { n_workers: dead.len(), n_tasks: 0 };
    if dead.is_empty() {
        return Ok((reaped, HintSet::default()));
    }
    end_workers(session, &dead).await?;
    session.run(DELETE_SERVE, &[&dead]).await?;
    session.run(DELETE_PROGRESS, &[&dead]).await?;
    let (n_tasks, mut hints) = lose(runs, &dead, request.crash_limit).await?;
    reaped.n_tasks = n_tasks;
    hints.add(Hint::Ready);
    Ok((reaped, hints))
}

/// Workers have nothing any more that could be taken from them. They are locked, so no claim of
/// theirs is under way.
pub(crate) async fn end_workers(session: &Session, ended: &[i64]) -> PgResult<()> {
    session.run(END_WORKERS, &[&ended]).await?;
    session.run(FOLD_FRONTIERS, &[&ended]).await
}

/// The numbers of workers of which nothing was heard since those beats.
async fn lock_silent(session: &Session, beats: &[LastBeat]) -> PgResult<Vec<i64>> {
    let ids: Vec<&str> = beats.iter().map(|beat| beat.worker.as_str()).collect();
    let n_beats: Vec<i64> = beats.iter().map(|beat| int(beat.n_beats)).collect();
    let rows = session.all(LOCK_SILENT, &[&ids, &n_beats]).await?;
    Ok(read_all(&rows, worker::read_no)?)
}

/// Takes all tasks of dead workers from them, charged together by worker. Says how many.
async fn lose(runs: &RunSet<'_>, dead: &[i64], crash_limit: u32) -> PgResult<(usize, HintSet)> {
    let mut by_worker: BTreeMap<i64, Vec<HeldClaim>> = BTreeMap::new();
    for row in runs.session.all(READ_CLAIMS, &[&dead]).await? {
        let held = worker::read_claim(&row)?;
        by_worker.entry(held.worker).or_default().push(held);
    }
    let n_tasks = by_worker.values().map(Vec::len).sum();
    let mut happenings = Happenings::new();
    for claims in by_worker.into_values() {
        let losses: Vec<u32> = claims.iter().map(|held| held.losses).collect();
        for (held, losses) in claims.into_iter().zip(losses_after(&losses, crash_limit)) {
            let lost = TaskHappening::Lost { losses, crash_limit };
            let happening = Happening::Task(held.claim.node, lost);
            let happened = Happened { token: Some(held.claim.token), happening };
            happenings.entry(held.claim.run).or_default().push(happened);
        }
    }
    let (_, hints) = runs.happen(happenings).await?;
    Ok((n_tasks, hints))
}
