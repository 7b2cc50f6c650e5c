//! What live workers serve: held still by all who enqueue, changed by workers that come and go.
//! Tasks that have to move for it do so in bounded pieces, afterwards.

use stepwell_core::id::{DefinitionId, ServiceId};

use super::super::lookup::IdLookup;
use super::super::rows;
use super::super::rows::queue::{Queued, read};
use super::super::rows::run::RunRef;
use super::super::rows::worker::{ServiceArrays, ServicePlace, read_place};
use super::super::rows::{read_all, rows_max, tenant};
use super::super::session::{Params, PgResult, Session};
use super::super::sql::{self, Sql};
use super::QueueSet;
use super::positions::Arrivals;
use crate::ports::SETTLED_SERVICES_MAX;

const LOCK_SERVING_SHARED: Sql = sql::WORKER.named("lock_serving_shared");
const LOCK_SERVING_EXCLUSIVE: Sql = sql::WORKER.named("lock_serving_exclusive");
const UNPARK: Sql = sql::QUEUE.named("unpark");
const PARKED_PLACES: Sql = sql::QUEUE.named("parked_places");
const READY_PLACES: Sql = sql::QUEUE.named("ready_places");
const TENANTS_PARKED_AT: Sql = sql::QUEUE.named("tenants_parked_at");
const TENANTS_READY_AT: Sql = sql::QUEUE.named("tenants_ready_at");
const WITHDRAW_READY_AT: Sql = sql::QUEUE.named("withdraw_ready_at");

/// Opens a transaction, reads its time and holds still what live workers serve, in one round trip.
pub(crate) async fn open_serving(session: &Session) -> PgResult<()> {
    let now = open_and_share(session).await?;
    session.set_now(now);
    Ok(())
}

/// As [`open_serving`], for what reads the time later.
pub(crate) async fn begin_serving(session: &Session) -> PgResult<()> {
    open_and_share(session).await.map(drop)
}

async fn open_and_share(session: &Session) -> PgResult<i64> {
    let schema = &session.pool().schema;
    let params: [rows::Param<'_>; 1] = [schema];
    let (begun, shared) = tokio::join!(
        biased;
        session.open_timeless(),
        session.one(LOCK_SERVING_SHARED, &params),
    );
    begun?;
    let now = shared?.as_ref().map(rows::server::read_now).transpose()?;
    Ok(now.unwrap_or_default())
}

/// Holds still what live workers serve, so that no task is parked behind the back of a worker
/// that registers. Called before anything else is locked.
pub(crate) async fn lock_serving_shared(session: &Session) -> PgResult<()> {
    session.all(LOCK_SERVING_SHARED, &[&session.pool().schema]).await.map(drop)
}

/// Waits for everybody who enqueues tasks. Called before anything else is locked.
pub(crate) async fn lock_serving_exclusive(session: &Session) -> PgResult<()> {
    session.all(LOCK_SERVING_EXCLUSIVE, &[&session.pool().schema]).await.map(drop)
}

/// Where tasks wait that have to move.
#[derive(Default)]
struct Misplaced {
    /// Parked, and served by now.
    served: Vec<ServicePlace>,
    /// Parked in queues that their steps no longer have.
    moved: Vec<ServicePlace>,
    /// Ready, and served by nobody.
    unserved: Vec<ServicePlace>,
}

impl Misplaced {
    fn is_empty(&self) -> bool {
        self.served.is_empty() && self.moved.is_empty() && self.unserved.is_empty()
    }
}

/// What a round of settling did.
#[derive(Default)]
pub(crate) struct SettledServices {
    /// Whether tasks are in queues for it.
    pub(crate) made_ready: bool,
    /// Whether there may be more.
    pub(crate) is_left: bool,
}

impl QueueSet<'_> {
    /// Some of the parked tasks that are served by now are enqueued again, stamped anew, and some
    /// of the ready ones that nobody serves any more are parked. What workers serve is held still.
    pub(crate) async fn settle_services(&self, ids: &IdLookup<'_>) -> PgResult<SettledServices> {
        let places = self.misplaced(ids).await?;
        if places.is_empty() {
            return Ok(SettledServices::default());
        }
        let mut back = self.take(TENANTS_PARKED_AT, UNPARK, &places.served).await?;
        let moved = self.take(TENANTS_PARKED_AT, UNPARK, &places.moved).await?;
        let unserved = self.take(TENANTS_READY_AT, WITHDRAW_READY_AT, &places.unserved).await?;
        let is_full = |tasks: &[Queued]| tasks.len() >= SETTLED_SERVICES_MAX;
        let is_left = is_full(&back) || is_full(&moved) || is_full(&unserved);
        let gone: Vec<_> = unserved.iter().map(|task| (task.run, task.node)).collect();
        back.extend(self.follow(ids, moved).await?);
        back.sort_by_key(|task| task.number);
        let n_back = self.enqueue(back, Arrivals::UnderWay).await?;
        // Those who come back are stamped before the places of those who go are given back.
        self.return_positions(&unserved).await?;
        // Room that they leave is for those who waited behind the limit.
        let n_freed = self.free_admissions(&gone).await?;
        let unserved = self.follow(ids, unserved).await?;
        let n_followed = self.enqueue(unserved, Arrivals::UnderWay).await?;
        let made_ready = n_back + n_freed + n_followed > 0;
        Ok(SettledServices { made_ready, is_left })
    }

    async fn misplaced(&self, ids: &IdLookup<'_>) -> PgResult<Misplaced> {
        let (parked, ready) = tokio::join!(
            biased;
            self.session.all(PARKED_PLACES, &[]),
            self.session.all(READY_PLACES, &[]),
        );
        let parked = read_all(&parked?, read_place)?;
        let mut unserved = read_all(&ready?, read_place)?;
        unserved.retain(|place| !place.is_served);
        if !unserved.is_empty() || parked.iter().any(|place| !place.is_served) {
            // Which queue a step has is told by the policies as they are now.
            ids.check_policies().await?;
        }
        let mut misplaced = Misplaced { unserved, ..Misplaced::default() };
        for place in parked {
            if place.is_served {
                misplaced.served.push(place);
            } else if !self.is_used(ids, &place).await? {
                misplaced.moved.push(place);
            }
        }
        Ok(misplaced)
    }

    /// Whether steps of a service still have their tasks in a queue.
    async fn is_used(&self, ids: &IdLookup<'_>, place: &ServicePlace) -> PgResult<bool> {
        let plan = ids.find_plan(definition_of(place.service)).await?;
        Ok(plan.is_none_or(|stored| stored.definition.uses_queue(&place.queue)))
    }

    /// Takes some of the first tasks away from where they wait. Their tenants are locked before:
    /// whoever holds one may look for these tasks in its name, and must not wait for us meanwhile.
    async fn take(
        &self,
        tenants: Sql,
        withdraw: Sql,
        places: &[ServicePlace],
    ) -> PgResult<Vec<Queued>> {
        if places.is_empty() {
            return Ok(Vec::new());
        }
        let places = places.iter().map(|place| (&place.queue, place.service));
        let places = ServiceArrays::of(places);
        let ([queues, services], n) = (places.params(), rows_max(SETTLED_SERVICES_MAX));
        let tenants = self.session.all(tenants, &[queues, services, &n]).await?;
        let tenants: Vec<i32> = read_all(&tenants, tenant::read_int)?;
        self.room(tenants.iter().map(|no| no.unsigned_abs())).await?;
        let params: Params<'_> = &[queues, services, &n, &tenants];
        Ok(read_all(&self.session.all(withdraw, params).await?, read)?)
    }

    /// Tasks that nobody serves wait in the queues that their steps have now.
    async fn follow(&self, ids: &IdLookup<'_>, mut tasks: Vec<Queued>) -> PgResult<Vec<Queued>> {
        for task in &mut tasks {
            if let Some(stored) = ids.find_plan(definition_of(task.service)).await? {
                task.queue = stored.definition.queue(task.node);
            }
        }
        Ok(tasks)
    }
}

fn definition_of(service: ServiceId) -> DefinitionId {
    RunRef::of_service(service, 0).definition
}
