//! Taking tasks from workers that are gone.

use std::collections::BTreeMap;

use stepwell_core::decide::{Happening, losses_after};
use stepwell_core::id::Epoch;

use super::super::queue::service::lock_serving_exclusive;
use super::super::rows::worker::{self, HeldClaim};
use super::super::rows::{read_all, rows_max};
use super::super::run::{Happened, Happenings, RunSet};
use super::super::session::{HintSet, PgResult};
use super::super::sql::{self, Sql};
use super::term::check_epoch;
use crate::ports::{Hint, ReapRequest, Reaped};

pub(crate) const READ_CLAIMS: Sql = sql::WORKER.named("read_claims");
pub(crate) const MARK_WORKERS_DEAD: Sql = sql::WORKER.named("mark_workers_dead");
pub(crate) const DELETE_SERVE: Sql = sql::WORKER.named("delete_serve");
const LOCK_DEAD_WORKERS: Sql = sql::WORKER.named("lock_dead_workers");

/// Marks workers dead that went, or have been silent for longer than their lease, and takes their
/// tasks from them.
pub(crate) async fn reap(
    runs: &RunSet<'_>,
    epoch: Epoch,
    request: ReapRequest,
) -> PgResult<(Reaped, HintSet)> {
    let session = runs.session;
    check_epoch(session, epoch).await?;
    // Before the beginning of time nobody was silent.
    let now = if request.judges_silence { session.now().as_micros() } else { i64::MIN };
    lock_serving_exclusive(session).await?;
    let n = rows_max(request.workers_max);
    let dead = session.all(LOCK_DEAD_WORKERS, &[&now, &n]).await?;
    let dead: Vec<i64> = read_all(&dead, worker::read_no)?;
    let mut reaped = Reaped { n_workers: dead.len(), n_tasks: 0 };
    if dead.is_empty() {
        return Ok((reaped, HintSet::default()));
    }
    session.run(MARK_WORKERS_DEAD, &[&dead]).await?;
    session.run(DELETE_SERVE, &[&dead]).await?;
    let (n_tasks, hints) = lose(runs, &dead, request.crash_limit).await?;
    reaped.n_tasks = n_tasks;
    runs.queues.park_and_unpark().await?;
    Ok((reaped, hints.with(Hint::Ready).with(Hint::Claims)))
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
            let happening = Happening::Lost { losses, crash_limit };
            let (node, token) = (held.claim.node, Some(held.claim.token));
            let happened = Happened { node, token, happening };
            happenings.entry(held.claim.run).or_default().push(happened);
        }
    }
    let (_, hints) = runs.happen(happenings).await?;
    Ok((n_tasks, hints))
}
