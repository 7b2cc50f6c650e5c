//! What live workers serve: held still by all who enqueue, changed by workers that come and go.
//! Tasks that have to move for it do so in bounded pieces, afterwards.

use stepwell_core::id::{DefinitionId, ServiceId};
use stepwell_core::workflow::MovedFrom;

use super::super::lookup::IdLookup;
use super::super::rows::queue::{Queued, read};
use super::super::rows::run::RunRef;
use super::super::rows::worker::{ServiceArrays, ServicePlace, StepPlaces, read_place};
use super::super::rows::{read_all, rows_max, tenant};
use super::super::session::{Params, PgResult, Session};
use super::super::sql::{self, Sql};
use super::QueueSet;
use super::positions::Arrivals;
use crate::ports::SETTLED_SERVICES_MAX;

const LOCK_SERVING_EXCLUSIVE: Sql = sql::WORKER.named("lock_serving_exclusive");
const UNPARK: Sql = sql::PARKED.named("unpark");
const PARKED_PLACES: Sql = sql::PARKED.named("parked_places");
const READY_PLACES: Sql = sql::QUEUE.named("ready_places");
const TENANTS_PARKED_AT: Sql = sql::PARKED.named("tenants_parked_at");
const TENANTS_READY_AT: Sql = sql::QUEUE.named("tenants_ready_at");
const TENANTS_PARKED_OF: Sql = sql::PARKED.named("tenants_parked_of");
const UNPARK_OF: Sql = sql::PARKED.named("unpark_of");
const WITHDRAW_READY_AT: Sql = sql::QUEUE.named("withdraw_ready_at");

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
    /// As those, where other steps of theirs still have the queue.
    moved_steps: StepPlaces,
    /// Ready, and served by nobody.
    unserved: Vec<ServicePlace>,
}

impl Misplaced {
    fn is_empty(&self) -> bool {
        let is_any_moved = !self.moved.is_empty() || !self.moved_steps.is_empty();
        self.served.is_empty() && self.unserved.is_empty() && !is_any_moved
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
        let mut moved = self.take(TENANTS_PARKED_AT, UNPARK, &places.moved).await?;
        moved.extend(self.take_steps(&places.moved_steps).await?);
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
        let mut misplaced = Misplaced { unserved, ..Misplaced::default() };
        for place in parked {
            if place.is_served {
                misplaced.served.push(place);
                continue;
            }
            match moved_from(ids, &place).await? {
                MovedFrom::None => {}
                MovedFrom::All => misplaced.moved.push(place),
                MovedFrom::Some(nodes) => misplaced.moved_steps.add(&place, &nodes),
            }
        }
        Ok(misplaced)
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

    /// As [`take`](Self::take), of parked tasks of steps.
    async fn take_steps(&self, places: &StepPlaces) -> PgResult<Vec<Queued>> {
        if places.is_empty() {
            return Ok(Vec::new());
        }
        let ([queues, services, nodes], n) = (places.params(), rows_max(SETTLED_SERVICES_MAX));
        let params: Params<'_> = &[queues, services, &n, nodes];
        let tenants = self.session.all(TENANTS_PARKED_OF, params).await?;
        let tenants: Vec<i32> = read_all(&tenants, tenant::read_int)?;
        self.room(tenants.iter().map(|no| no.unsigned_abs())).await?;
        let params: Params<'_> = &[queues, services, &n, &tenants, nodes];
        Ok(read_all(&self.session.all(UNPARK_OF, params).await?, read)?)
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

/// The steps of a service whose tasks have another queue by now.
async fn moved_from(ids: &IdLookup<'_>, place: &ServicePlace) -> PgResult<MovedFrom> {
    let plan = ids.find_plan(definition_of(place.service)).await?;
    Ok(plan.map_or(MovedFrom::None, |stored| stored.definition.moved_from(&place.queue)))
}

fn definition_of(service: ServiceId) -> DefinitionId {
    RunRef::of_service(service, 0).definition
}
