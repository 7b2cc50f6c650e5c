//! Positions of tenants in queues: the last one each was given, and the next ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use stepwell_core::id::Queue;
use stepwell_core::queue::{Position, TenantNo, TenantPosition, last_after_cancel};

use super::super::connection::pool::Pool;
use super::super::connection::role::Role;
use super::super::rows::position::{self, PositionArrays, TenantInQueue, TenantInQueueArrays};
use super::super::rows::queue::{PlaceArrays, Queued};
use super::super::session::{Conflict, PgResult, Session};
use super::super::sql::{self, Sql};
use super::QueueSet;

const INSERT_MISSING_POSITIONS: Sql = sql::POSITION.named("insert_missing_positions");
const READ_POSITIONS: Sql = sql::POSITION.named("read_positions");
const LOCK_POSITIONS: Sql = sql::POSITION.named("lock_positions");
const UPDATE_POSITIONS: Sql = sql::POSITION.named("update_positions");
const READ_FRONTIERS: Sql = sql::POSITION.named("read_frontiers");
const GREATEST_POSITIONS: Sql = sql::QUEUE.named("greatest_positions");

/// The last positions that tenants were given in queues.
pub(crate) type TenantPositions = BTreeMap<TenantInQueue, Option<Position>>;

/// How far queues are, by the greatest position that was dequeued.
pub(super) type Frontiers = BTreeMap<Queue, Position>;

/// Where tasks come from that are enqueued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrivals {
    /// Runs that start. They are refused when the positions are used up.
    OfStarts,
    /// Runs that are under way. When the positions are used up they share the last one, in order of
    /// arrival.
    UnderWay,
}

/// The tenants of tasks in the queues of tasks.
pub(super) fn tenants_in_queues(tasks: &[Queued]) -> BTreeSet<TenantInQueue> {
    tasks.iter().map(|task| (task.tenant_no, task.queue.clone())).collect()
}

/// Gives tasks their tenants' next positions, in order.
pub(super) fn take_positions(
    tasks: &[Queued],
    arrivals: Arrivals,
    weight: impl Fn(u32) -> u32,
    positions: &mut TenantPositions,
    frontiers: &Frontiers,
) -> PgResult<PlaceArrays> {
    let mut places = PlaceArrays::default();
    let mut full = BTreeSet::new();
    for (ix, task) in tasks.iter().enumerate() {
        let frontier = frontiers.get(&task.queue).copied().unwrap_or_default();
        let last = positions.entry((task.tenant_no, task.queue.clone())).or_default();
        let mut at = TenantPosition { frontier, last: *last, weight: weight(task.tenant_no) };
        if arrivals == Arrivals::OfStarts && at.check().is_err() {
            // A run that has a position in the queue shares it among its tasks.
            let is_alike = |other: &Queued| other.run == task.run && other.queue == task.queue;
            if !tasks[..ix].iter().any(is_alike) {
                full.insert((task.tenant_no, task.queue.clone()));
            }
        }
        let (position, order_key) = at.take(TenantNo(task.tenant_no));
        *last = at.last;
        places.push(position, order_key);
    }
    if full.is_empty() { Ok(places) } else { Err(Conflict::OutOfPositions(full).into()) }
}

/// Starts are refused for want of positions also where nobody serves their tasks yet.
pub(super) fn check_positions(
    tasks: &[Queued],
    weight: impl Fn(u32) -> u32,
    positions: &TenantPositions,
    frontiers: &Frontiers,
) -> PgResult<()> {
    let is_full = |(tenant_no, queue): &TenantInQueue| {
        let frontier = frontiers.get(queue).copied().unwrap_or_default();
        let last = positions.get(&(*tenant_no, queue.clone())).copied().flatten();
        TenantPosition { frontier, last, weight: weight(*tenant_no) }.check().is_err()
    };
    let full: BTreeSet<TenantInQueue> =
        tenants_in_queues(tasks).into_iter().filter(is_full).collect();
    if full.is_empty() { Ok(()) } else { Err(Conflict::OutOfPositions(full).into()) }
}

impl QueueSet<'_> {
    /// The last positions of tenants in queues, locked in order. Rows that are missing are inserted
    /// before.
    pub(super) async fn lock_all_positions(
        &self,
        tenants: &BTreeSet<TenantInQueue>,
    ) -> PgResult<TenantPositions> {
        if tenants.is_empty() {
            return Ok(TenantPositions::new());
        }
        insert_missing(self.session, tenants).await?;
        lock(self.session, tenants).await
    }

    pub(super) async fn update_positions(&self, positions: &TenantPositions) -> PgResult<()> {
        if positions.is_empty() {
            return Ok(());
        }
        self.session.run(UPDATE_POSITIONS, &PositionArrays::of(positions).params()).await
    }

    pub(super) async fn frontiers(&self, tenants: &BTreeSet<TenantInQueue>) -> PgResult<Frontiers> {
        if tenants.is_empty() {
            return Ok(Frontiers::new());
        }
        let queues: BTreeSet<&str> = tenants.iter().map(|(_, queue)| queue.as_str()).collect();
        let queues: Vec<&str> = queues.into_iter().collect();
        let rows = self.session.all(READ_FRONTIERS, &[&queues]).await?;
        Ok(rows.iter().map(position::read_frontier).collect::<Result<_, _>>()?)
    }

    /// Tenants whose ready tasks left without a claim get their positions back.
    pub(super) async fn return_positions(&self, withdrawn: &[Queued]) -> PgResult<()> {
        if withdrawn.is_empty() {
            return Ok(());
        }
        for task in withdrawn {
            self.watermarks.progress().took(task.queue.as_str(), task.service, 1);
        }
        let tenants = tenants_in_queues(withdrawn);
        let mut positions = lock(self.session, &tenants).await?;
        let frontiers = self.frontiers(&tenants).await?;
        let asked = positions.keys().map(|(tenant_no, queue)| (*tenant_no, queue));
        let asked = TenantInQueueArrays::of(asked);
        let rows = self.session.all(GREATEST_POSITIONS, &asked.params()).await?;
        for row in &rows {
            let (tenant, greatest) = position::read_greatest(row)?;
            let frontier = frontiers.get(&tenant.1).copied().unwrap_or_default();
            let last = positions.get(&tenant).copied().flatten();
            positions.insert(tenant, last_after_cancel(last, frontier, greatest));
        }
        self.update_positions(&positions).await
    }
}

/// The last positions of tenants in queues, as far as there are rows.
pub(super) async fn read_positions(
    session: &Session,
    tenants: &BTreeSet<TenantInQueue>,
) -> PgResult<TenantPositions> {
    let asked = TenantInQueueArrays::of(tenants.iter().map(|(no, queue)| (*no, queue)));
    let rows = session.all(READ_POSITIONS, &asked.params()).await?;
    Ok(rows.iter().map(position::read_last).collect::<Result<_, _>>()?)
}

/// Gives tenants that are new to a queue a row to be locked by, in a short transaction of its own:
/// found while others are locked already, it could not be locked in order.
pub(crate) async fn insert_missing_positions(
    pool: &Arc<Pool>,
    missing: &BTreeSet<TenantInQueue>,
) -> PgResult<()> {
    let session = Session::unopened(pool, Role::Work).await?;
    session.open().await?;
    insert_missing(&session, missing).await?;
    lock(&session, missing).await?;
    session.close().await?;
    session.end();
    Ok(())
}

async fn insert_missing(session: &Session, tenants: &BTreeSet<TenantInQueue>) -> PgResult<()> {
    let asked = TenantInQueueArrays::of(tenants.iter().map(|(no, queue)| (*no, queue)));
    session.run(INSERT_MISSING_POSITIONS, &asked.params()).await
}

/// The last positions of tenants in queues, locked in order, as far as there are rows.
async fn lock(session: &Session, tenants: &BTreeSet<TenantInQueue>) -> PgResult<TenantPositions> {
    let asked = TenantInQueueArrays::of(tenants.iter().map(|(no, queue)| (*no, queue)));
    let rows = session.all(LOCK_POSITIONS, &asked.params()).await?;
    Ok(rows.iter().map(position::read_last).collect::<Result<_, _>>()?)
}
