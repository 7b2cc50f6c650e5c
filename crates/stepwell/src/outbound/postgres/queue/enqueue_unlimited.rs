//! The quick way into the queues, for tenants without limits.
//!
//! Tenants are looked at when the transaction begins. One that turns out to have a limit is a
//! conflict, and the transaction starts again on the careful way. The positions of tenants are
//! locked last, behind all other writes: whoever enqueues tasks of the same tenant meanwhile waits
//! for nothing but those last statements.

use std::collections::BTreeSet;

use stepwell_core::queue::{WaitsIn, waits_in};

use super::super::lookup::id_cache::READ_TENANTS;
use super::super::rows::position::{self, QueueFact, TenantInQueue, TenantInQueueArrays};
use super::super::rows::queue::{PlaceArrays, Queued};
use super::super::rows::{Param, int32, tenant};
use super::super::session::{Conflict, Params, PgResult, first_error};
use super::super::sql::{self, Sql};
use super::QueueSet;
use super::enqueue::{Served, is_served, n_spans, numbers_in, services_of};
use super::limits::{SHARE_TENANTS, Settings};
use super::positions::{
    Arrivals, Frontiers, TenantPositions, check_positions, take_positions, tenants_in_queues,
};

const LOCK_POSITIONS_FOR_ENQUEUE: Sql = sql::POSITION.named("lock_positions_for_enqueue");

/// The settings of tenants without limits, held still.
pub(crate) struct UnlimitedTenants(Settings);

impl UnlimitedTenants {
    fn weight(&self, tenant_no: u32) -> u32 {
        self.0.get(&tenant_no).map_or(1, |settings| settings.weight)
    }
}

/// What has to be known of queues to place tasks.
#[derive(Default)]
struct QueueSnapshot {
    positions: TenantPositions,
    frontiers: Frontiers,
    served: Served,
    spans: Vec<u64>,
}

/// Tasks with their places.
#[derive(Default)]
pub(crate) struct Placed {
    served: Vec<Queued>,
    unserved: Vec<Queued>,
    places: PlaceArrays,
    positions: TenantPositions,
}

impl Placed {
    /// Whether any of them is left in a queue, for somebody to claim.
    pub(crate) fn leaves_any(&self) -> bool {
        !self.served.is_empty()
    }
}

impl QueueSnapshot {
    fn add(&mut self, fact: QueueFact) {
        match fact {
            QueueFact::Served(queue, service) => {
                self.served.insert((queue, service));
            }
            QueueFact::Last(tenant, last) => {
                self.positions.insert(tenant, last);
            }
            QueueFact::Frontier(queue, frontier) => {
                self.frontiers.insert(queue, frontier);
            }
            QueueFact::Span(span) => self.spans.push(span),
        }
    }

    /// Gives tasks their places; those that nobody serves will be parked.
    fn place(
        mut self,
        mut tasks: Vec<Queued>,
        arrivals: Arrivals,
        tenants: &UnlimitedTenants,
    ) -> PgResult<Placed> {
        for (task, number) in tasks.iter_mut().zip(numbers_in(self.spans)) {
            task.number = number;
        }
        let is_parked =
            |task: &Queued| waits_in(is_served(&self.served, task), None) == WaitsIn::Parked;
        let (unserved, served): (Vec<_>, Vec<_>) = tasks.into_iter().partition(is_parked);
        let weight = |no| tenants.weight(no);
        let (positions, frontiers) = (&mut self.positions, &self.frontiers);
        let places = take_positions(&served, arrivals, weight, positions, frontiers)?;
        if arrivals == Arrivals::OfStarts {
            check_positions(&unserved, weight, positions, frontiers)?;
        }
        let taken = tenants_in_queues(&served);
        self.positions.retain(|tenant, _| taken.contains(tenant));
        Ok(Placed { served, unserved, places, positions: self.positions })
    }
}

impl QueueSet<'_> {
    /// Holds still what tenants' settings are, and reads them, unless one is taken to have a limit:
    /// those go the careful way.
    pub(crate) async fn share_unlimited_tenants(
        &self,
        tenants: &BTreeSet<u32>,
    ) -> PgResult<Option<UnlimitedTenants>> {
        if tenants.is_empty() || self.guesses.is_any_limited(tenants) {
            return Ok(None);
        }
        let numbers: Vec<i32> = tenants.iter().map(|no| int32(*no)).collect();
        let params: Params<'_> = &[&numbers];
        let (shared, rows) = tokio::join!(
            biased;
            self.session.all(SHARE_TENANTS, params),
            self.session.all(READ_TENANTS, params),
        );
        shared?;
        let settings: Settings =
            rows?.iter().map(tenant::read_settings).collect::<Result<_, _>>()?;
        let limited = settings.iter().filter(|(_, settings)| settings.tasks_max.is_some());
        let limited: BTreeSet<u32> = limited.map(|(no, _)| *no).collect();
        if !limited.is_empty() {
            return Err(Conflict::TenantHasLimit(limited).into());
        }
        Ok(Some(UnlimitedTenants(settings)))
    }

    /// Finds places for tasks of tenants that were looked at before: locks their positions, and
    /// reads the rest.
    pub(crate) async fn find_places(
        &self,
        tasks: Vec<Queued>,
        arrivals: Arrivals,
        tenants: UnlimitedTenants,
    ) -> PgResult<Placed> {
        if tasks.is_empty() {
            return Ok(Placed::default());
        }
        let asked = tenants_in_queues(&tasks);
        let arrays = TenantInQueueArrays::of(asked.iter().map(|(no, queue)| (*no, queue)));
        let ([tenant_nos, queues], n): (_, Param<'_>) = (arrays.params(), &n_spans(tasks.len()));
        let services = services_of(&tasks);
        let [served_queues, services] = services.params();
        let mut snapshot = QueueSnapshot::default();
        let params: Params<'_> = &[tenant_nos, queues, n, served_queues, services];
        for row in &self.session.all(LOCK_POSITIONS_FOR_ENQUEUE, params).await? {
            snapshot.add(position::read_fact(row)?);
        }
        let is_missing = |tenant: &&TenantInQueue| !snapshot.positions.contains_key(*tenant);
        let missing: BTreeSet<TenantInQueue> = asked.iter().filter(is_missing).cloned().collect();
        if !missing.is_empty() {
            return Err(Conflict::NoPositionRow(missing).into());
        }
        snapshot.place(tasks, arrivals, &tenants)
    }

    /// Puts tasks into their queues, or parks those that nobody serves.
    pub(crate) async fn place(&self, placed: &Placed) -> PgResult<()> {
        let (parked, positions, inserted) = tokio::join!(
            biased;
            self.park(&placed.unserved),
            self.update_positions(&placed.positions),
            self.insert_ready(&placed.served, &placed.places),
        );
        first_error([parked, positions, inserted])
    }
}
