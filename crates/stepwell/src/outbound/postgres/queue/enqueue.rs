//! The careful way into the queues, under the locks of tenants.

use std::collections::HashSet;

use stepwell_core::queue::{WaitsIn, waits_in};

use super::super::rows::position;
use super::super::rows::queue::{AdmittedArrays, PlaceArrays, Queued, QueuedArrays};
use super::super::rows::worker::{self, ServiceArrays};
use super::super::session::PgResult;
use super::super::sql::{self, Sql};
use super::QueueSet;
use super::limits::Room;
use super::positions::{Arrivals, take_positions, tenants_in_queues};

const READ_SERVED: Sql = sql::WORKER.named("read_served");
const TAKE_ARRIVAL_NUMBERS: Sql = sql::POSITION.named("take_arrival_numbers");
const INSERT_READY: Sql = sql::QUEUE.named("insert_ready");
const INSERT_THROTTLED: Sql = sql::QUEUE.named("insert_throttled");
const INSERT_PARKED: Sql = sql::QUEUE.named("insert_parked");
const INSERT_ADMITTED: Sql = sql::QUEUE.named("insert_admitted");

/// Arrival numbers are drawn in spans of this many, one draw for a whole batch.
const NUMBERS_PER_SPAN: u64 = 1 << 20;

/// How many spans so many tasks need.
pub(super) fn n_spans(n_tasks: usize) -> i32 {
    let n_tasks = u64::try_from(n_tasks).unwrap_or(u64::MAX);
    i32::try_from(n_tasks.div_ceil(NUMBERS_PER_SPAN)).unwrap_or(i32::MAX)
}

/// The numbers in spans, in order.
pub(super) fn numbers_in(spans: Vec<u64>) -> impl Iterator<Item = u64> {
    let first = |span: u64| span.saturating_mul(NUMBERS_PER_SPAN);
    spans.into_iter().flat_map(move |span| first(span)..first(span) + NUMBERS_PER_SPAN)
}

/// What live workers serve: queues, with the numbers of services.
pub(super) type Served = HashSet<(String, u32)>;

pub(super) fn is_served(served: &Served, task: &Queued) -> bool {
    served.contains(&(task.queue.as_str().to_owned(), task.service.0))
}

/// What tasks need.
pub(super) fn services_of(tasks: &[Queued]) -> ServiceArrays<'_> {
    ServiceArrays::of(tasks.iter().map(|task| (&task.queue, task.service)))
}

impl QueueSet<'_> {
    /// Lets tasks wait where they belong: parked if nobody serves them, throttled if their tenant
    /// is at its limit, else in their queues. Says how many are in their queues.
    pub(crate) async fn enqueue(
        &self,
        mut tasks: Vec<Queued>,
        arrivals: Arrivals,
    ) -> PgResult<usize> {
        if tasks.is_empty() {
            return Ok(0);
        }
        self.give_numbers(&mut tasks).await?;
        let served = self.served(&tasks).await?;
        let is_parked = |task: &Queued| waits_in(is_served(&served, task), None) == WaitsIn::Parked;
        let (parked, served): (Vec<_>, Vec<_>) = tasks.into_iter().partition(is_parked);
        self.park(&parked).await?;
        if served.is_empty() {
            return Ok(0);
        }
        let mut room = self.room(served.iter().map(|task| task.tenant_no)).await?;
        let (throttled, admitted): (Vec<_>, Vec<_>) =
            served.into_iter().partition(|task| room.admit(task.tenant_no) == WaitsIn::Throttled);
        self.throttle(&throttled).await?;
        self.insert_admissions(&admitted, &room).await?;
        self.make_ready(&admitted, arrivals, &room).await?;
        Ok(admitted.len())
    }

    async fn give_numbers(&self, tasks: &mut [Queued]) -> PgResult<()> {
        let n_fresh = tasks.iter().filter(|task| task.number == 0).count();
        if n_fresh == 0 {
            return Ok(());
        }
        let rows = self.session.all(TAKE_ARRIVAL_NUMBERS, &[&n_spans(n_fresh)]).await?;
        let spans = rows.iter().map(position::read_span).collect::<Result<Vec<_>, _>>()?;
        let fresh = tasks.iter_mut().filter(|task| task.number == 0);
        for (task, number) in fresh.zip(numbers_in(spans)) {
            task.number = number;
        }
        Ok(())
    }

    /// What live workers serve of what tasks need.
    async fn served(&self, tasks: &[Queued]) -> PgResult<Served> {
        let asked = services_of(tasks);
        let rows = self.session.all(READ_SERVED, &asked.params()).await?;
        Ok(rows.iter().map(worker::read_served).collect::<Result<_, _>>()?)
    }

    pub(super) async fn park(&self, tasks: &[Queued]) -> PgResult<()> {
        if tasks.is_empty() {
            return Ok(());
        }
        self.session.run(INSERT_PARKED, &QueuedArrays::of(tasks).params()).await
    }

    pub(super) async fn throttle(&self, tasks: &[Queued]) -> PgResult<()> {
        if tasks.is_empty() {
            return Ok(());
        }
        self.session.run(INSERT_THROTTLED, &QueuedArrays::of(tasks).params()).await
    }

    async fn insert_admissions(&self, tasks: &[Queued], room: &Room) -> PgResult<()> {
        let limited = tasks.iter().filter(|task| room.is_limited(task.tenant_no));
        let arrays = AdmittedArrays::of(limited);
        if arrays.is_empty() {
            return Ok(());
        }
        self.session.run(INSERT_ADMITTED, &arrays.params()).await
    }

    /// Puts tasks into their queues at their tenants' next positions.
    async fn make_ready(&self, tasks: &[Queued], arrivals: Arrivals, room: &Room) -> PgResult<()> {
        if tasks.is_empty() {
            return Ok(());
        }
        let tenants = tenants_in_queues(tasks);
        let mut positions = self.lock_all_positions(&tenants).await?;
        let frontiers = self.frontiers(&tenants).await?;
        let weight = |no| room.weight(no);
        let places = take_positions(tasks, arrivals, weight, &mut positions, &frontiers)?;
        self.update_positions(&positions).await?;
        self.insert_ready(tasks, &places).await
    }

    pub(super) async fn insert_ready(
        &self,
        tasks: &[Queued],
        places: &PlaceArrays,
    ) -> PgResult<()> {
        if tasks.is_empty() {
            return Ok(());
        }
        self.session.run(INSERT_READY, &QueuedArrays::of(tasks).params_at(places)).await
    }
}
