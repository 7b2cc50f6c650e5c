//! Taking tasks from workers that are gone.

use std::collections::{BTreeMap, BTreeSet};

use stepwell_core::decide::{Happening, TaskHappening, Verdict};
use stepwell_core::id::{Epoch, RunKey, Token};
use stepwell_core::lease::{LastBeat, losses_after};
use uuid::Uuid;

use super::super::queue::service::lock_serving_exclusive;
use super::super::rows::worker::{self, HeldClaim};
use super::super::rows::{TaskKeys, int, read_all, token};
use super::super::run::{Happened, Happenings, RunSet};
use super::super::session::{PgResult, Session};
use super::super::sql::{self, Sql};
use super::term::check_epoch;
use crate::ports::{ClaimRef, HintSet, ReapRequest};

pub(crate) const READ_CLAIMS: Sql = sql::WORKER.named("read_claims");
const END_WORKERS: Sql = sql::WORKER.named("end_workers");
const FOLD_FRONTIERS: Sql = sql::POSITION.named("fold_frontiers");
pub(crate) const DELETE_SERVE: Sql = sql::WORKER.named("delete_serve");
pub(crate) const DELETE_PROGRESS: Sql = sql::PROGRESS.named("delete_progress");
const NEXT_CLAIM_COUNT: Sql = sql::WORKER.named("next_claim_count");
const MARK_WORKERS_LOST: Sql = sql::WORKER.named("mark_workers_lost");
const READ_LOSSES: Sql = sql::WORKER.named("read_losses");
const LOCK_SILENT: Sql = sql::WORKER.named("lock_silent");

/// Most tasks that one transaction takes from dead workers.
pub(crate) const TAKEN_MAX: usize = 500;

/// Workers that serve nothing any more, and whose tasks are still to be taken.
pub(crate) struct LostWorkers {
    pub(crate) numbers: Vec<i64>,
    /// What they claimed before has lesser tokens; one that registers again may claim more.
    before: Token,
    pub(crate) held: Vec<LostClaim>,
}

/// What a dead worker held.
pub(crate) struct LostClaim {
    claim: ClaimRef,
    /// How often the task was lost before, when that was read.
    losses: u32,
    /// How many losses it is charged with for this one.
    charge: u32,
}

/// Lets workers serve nothing any more that have not beaten since, and looks at what they held.
/// Whoever enqueues tasks waits for it, so it touches the rows of these workers only. They neither
/// claim nor beat behind it. Should the leader go before their tasks are taken, the next one finds
/// them as workers that left.
pub(crate) async fn lose_workers(
    session: &Session,
    epoch: Epoch,
    request: &ReapRequest,
) -> PgResult<LostWorkers> {
    check_epoch(session, epoch).await?;
    lock_serving_exclusive(session).await?;
    let numbers = lock_silent(session, &request.dead).await?;
    let row = session.one(NEXT_CLAIM_COUNT, &[]).await?;
    let count = row.as_ref().map(worker::read_claim_count).transpose()?.unwrap_or_default();
    let lost = LostWorkers { before: Token::new(count, 0), held: Vec::new(), numbers };
    let numbers = &lost.numbers;
    if numbers.is_empty() {
        return Ok(lost);
    }
    session.run(MARK_WORKERS_LOST, &[numbers]).await?;
    session.run(DELETE_SERVE, &[numbers]).await?;
    session.run(DELETE_PROGRESS, &[numbers]).await?;
    Ok(lost)
}

/// What dead workers hold, in order, with what each task is charged: all tasks of a worker are
/// charged together.
pub(crate) async fn read_lost(
    session: &Session,
    lost: &mut LostWorkers,
    crash_limit: u32,
) -> PgResult<()> {
    let mut by_worker: BTreeMap<i64, Vec<HeldClaim>> = BTreeMap::new();
    for row in session.all(READ_CLAIMS, &[&lost.numbers]).await? {
        let held = worker::read_claim(&row)?;
        if held.claim.token < lost.before {
            by_worker.entry(held.worker).or_default().push(held);
        }
    }
    for mut claims in by_worker.into_values() {
        claims.sort_unstable_by_key(|held| held.claim);
        let losses: Vec<u32> = claims.iter().map(|held| held.losses).collect();
        let charged = claims.into_iter().zip(losses_after(&losses, crash_limit));
        lost.held.extend(charged.map(|(HeldClaim { claim, losses, .. }, after)| LostClaim {
            claim,
            losses,
            charge: after.saturating_sub(losses),
        }));
    }
    Ok(())
}

/// Takes tasks from dead workers, and says how many. What was taken before is left alone. A memo
/// may have forgiven losses since they were read; under the locks of the runs none does any more.
pub(crate) async fn take_lost(
    runs: &RunSet<'_>,
    epoch: Epoch,
    taken: &[LostClaim],
    crash_limit: u32,
) -> PgResult<(usize, HintSet)> {
    check_epoch(runs.session, epoch).await?;
    let keys: BTreeSet<RunKey> = taken.iter().map(|lost| lost.claim.run).collect();
    runs.lock(&keys.into_iter().collect::<Vec<_>>()).await?;
    let now = read_losses(runs.session, taken).await?;
    let mut happenings = Happenings::new();
    for LostClaim { claim, losses, charge } in taken {
        let losses = now.get(claim).unwrap_or(losses) + charge;
        let lost = TaskHappening::Lost { losses, crash_limit };
        let happened =
            Happened { token: Some(claim.token), happening: Happening::Task(claim.node, lost) };
        happenings.entry(claim.run).or_default().push(happened);
    }
    let (mut verdicts, hints) = runs.happen(happenings).await?;
    let is_taken =
        |lost: &&LostClaim| verdicts.next(lost.claim.run).is_some_and(Verdict::is_applied);
    Ok((taken.iter().filter(is_taken).count(), hints))
}

/// How often tasks were lost that these claims still hold.
async fn read_losses(session: &Session, taken: &[LostClaim]) -> PgResult<BTreeMap<ClaimRef, u32>> {
    let tasks = TaskKeys::of(taken.iter().map(|lost| (lost.claim.run, lost.claim.node)));
    let tokens: Vec<Uuid> = taken.iter().map(|lost| token(lost.claim.token)).collect();
    let [keys, nodes] = tasks.params();
    let rows = session.all(READ_LOSSES, &[keys, nodes, &tokens]).await?;
    let held: Vec<HeldClaim> = read_all(&rows, worker::read_claim)?;
    Ok(held.into_iter().map(|held| (held.claim, held.losses)).collect())
}

/// Workers have nothing any more that could be taken from them. Says how many were not known to
/// have ended.
pub(crate) async fn end_workers(session: &Session, ended: &[i64]) -> PgResult<usize> {
    let rows = session.all(END_WORKERS, &[&ended]).await?;
    session.run(FOLD_FRONTIERS, &[&ended]).await?;
    Ok(rows.len())
}

/// The numbers of workers of which nothing was heard since those beats.
async fn lock_silent(session: &Session, beats: &[LastBeat]) -> PgResult<Vec<i64>> {
    let ids: Vec<&str> = beats.iter().map(|beat| beat.worker.as_str()).collect();
    let n_beats: Vec<i64> = beats.iter().map(|beat| int(beat.n_beats)).collect();
    let rows = session.all(LOCK_SILENT, &[&ids, &n_beats]).await?;
    Ok(read_all(&rows, worker::read_no)?)
}
