//! Where queued tasks wait: in a queue, behind a limit, or for a worker that serves them.
//!
//! Only tasks that can be claimed now are in a queue, so a claim reads in order and never scans
//! past what it cannot take, however much is held back.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use stepwell_core::decide::may_start;
use stepwell_core::id::{Node, Queue, RunKey, ServiceId, Tenant};
use stepwell_core::queue::{
    FairError, OrderKey, Position, TenantNo, TenantPosition, WaitsIn, surplus, tenant_no, waits_in,
};
use stepwell_core::time::Timestamp;

use super::positions::{Frontiers, Positions};
use crate::ports::{StoredDefinition, TenantSettings};

/// A task that waits to be claimed.
#[derive(Clone, Debug)]
pub(super) struct Queued {
    pub(super) run: RunKey,
    pub(super) node: Node,
    pub(super) tenant: Tenant,
    pub(super) queue: Queue,
    pub(super) service: ServiceId,
    pub(super) losses: u32,
    /// When its run must have ended.
    pub(super) deadline: Option<Timestamp>,
}

/// What ready tasks have in common that the same claims can take.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ReadyKey {
    pub(super) queue: Queue,
    pub(super) service: ServiceId,
    /// Suspects are told by their losses.
    pub(super) losses: u32,
}

/// What workers serve: a queue, and a service in it.
pub(super) type ServiceKey = (Queue, ServiceId);

/// A place in a queue: the fair key, then the order of arrival.
pub(super) type QueuePlace = (OrderKey, u64);

/// A ready task that may be claimed.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) key: ReadyKey,
    pub(super) at: QueuePlace,
}

#[derive(Clone, Debug)]
pub(super) enum Place {
    Ready { key: ReadyKey, at: QueuePlace, position: Position },
    Throttled { tenant: Tenant, number: u64 },
    Parked { service: ServiceKey, number: u64 },
}

/// A tenant and its waiting work.
pub(super) struct TenantEntry {
    pub(super) tenant_no: TenantNo,
    pub(super) own: Option<TenantSettings>,
    pub(super) positions: BTreeMap<Queue, Positions>,
    pub(super) n_ready: usize,
    pub(super) n_running: usize,
    pub(super) n_parked: usize,
    pub(super) throttled: BTreeMap<u64, Queued>,
    ready_numbers: BTreeMap<u64, (RunKey, Node)>,
}

/// All waiting tasks of the store.
#[derive(Default)]
pub(super) struct Queues {
    pub(super) defaults: TenantSettings,
    pub(super) tenants: BTreeMap<Tenant, TenantEntry>,
    pub(super) ready: BTreeMap<ReadyKey, BTreeMap<QueuePlace, Queued>>,
    pub(super) places: HashMap<(RunKey, Node), Place>,
    pub(super) frontiers: Frontiers,
    parked: BTreeMap<ServiceKey, BTreeMap<u64, Queued>>,
    served: BTreeSet<ServiceKey>,
    last_number: u64,
    /// Tasks that entered a queue in this transaction and were not handed over.
    pub(super) n_enqueued: usize,
}

impl TenantEntry {
    fn new(tenant_no: TenantNo) -> Self {
        Self {
            tenant_no,
            own: None,
            positions: BTreeMap::new(),
            n_ready: 0,
            n_running: 0,
            n_parked: 0,
            throttled: BTreeMap::new(),
            ready_numbers: BTreeMap::new(),
        }
    }

    pub(super) fn settings(&self, defaults: TenantSettings) -> TenantSettings {
        TenantSettings::in_force(self.own, defaults)
    }

    pub(super) fn n_admitted(&self) -> usize {
        self.n_ready + self.n_running
    }

    fn room_left(&self, defaults: TenantSettings) -> Option<u64> {
        self.settings(defaults).room_left(self.n_admitted() as u64)
    }
}

impl Queues {
    /// The entry of a tenant, made when it is first seen.
    pub(super) fn tenant(&mut self, tenant: &Tenant) -> Result<&mut TenantEntry, FairError> {
        if !self.tenants.contains_key(tenant) {
            let entry = TenantEntry::new(tenant_no(self.tenants.len())?);
            self.tenants.insert(tenant.clone(), entry);
        }
        self.tenants.get_mut(tenant).ok_or(FairError::TooManyTenants)
    }

    /// Whether a tenant can get a place in these queues, so that a start can be refused before
    /// anything is stored.
    pub(super) fn check_room(
        &mut self,
        tenant: &Tenant,
        queues: &BTreeSet<Queue>,
    ) -> Result<(), FairError> {
        self.tenant(tenant)?;
        let Some(entry) = self.tenants.get(tenant) else { return Ok(()) };
        queues.iter().try_for_each(|queue| self.stands_at(entry, queue).check())
    }

    /// Where a tenant stands in a queue.
    fn stands_at(&self, tenant: &TenantEntry, queue: &Queue) -> TenantPosition {
        let (frontier, weight) = (self.frontiers.get(queue), tenant.settings(self.defaults).weight);
        let newcomer = TenantPosition { frontier, last: None, weight };
        tenant.positions.get(queue).map_or(newcomer, |known| known.at(frontier, weight))
    }

    /// Lets a task wait where it belongs, under the next number of arrival.
    pub(super) fn enqueue(&mut self, task: Queued) {
        self.last_number += 1;
        self.place(self.last_number, task);
    }

    fn place(&mut self, number: u64, task: Queued) {
        let defaults = self.defaults;
        let key = (task.run, task.node);
        let service = (task.queue.clone(), task.service);
        let is_served = self.served.contains(&service);
        // A tenant without a place was refused when its run started.
        let Ok(tenant) = self.tenant(&task.tenant) else { return };
        match waits_in(is_served, tenant.room_left(defaults)) {
            WaitsIn::Parked => {
                tenant.n_parked += 1;
                self.parked.entry(service.clone()).or_default().insert(number, task);
                self.places.insert(key, Place::Parked { service, number });
            }
            WaitsIn::Throttled => {
                let place = Place::Throttled { tenant: task.tenant.clone(), number };
                tenant.throttled.insert(number, task);
                self.places.insert(key, place);
            }
            WaitsIn::Queue => self.admit(number, task),
        }
    }

    /// Puts a task into its queue at its tenant's next position.
    fn admit(&mut self, number: u64, task: Queued) {
        let Some(tenant) = self.tenants.get(&task.tenant) else { return };
        let (position, order) = self.stands_at(tenant, &task.queue).take(tenant.tenant_no);
        let Some(tenant) = self.tenants.get_mut(&task.tenant) else { return };
        self.n_enqueued += 1;
        tenant.positions.entry(task.queue.clone()).or_default().taken(position, number);
        tenant.n_ready += 1;
        tenant.ready_numbers.insert(number, (task.run, task.node));
        let (queue, service, losses) = (task.queue.clone(), task.service, task.losses);
        let key = ReadyKey { queue, service, losses };
        let at = (order, number);
        let place = Place::Ready { key: key.clone(), at, position };
        self.places.insert((task.run, task.node), place);
        self.ready.entry(key).or_default().insert(at, task);
    }

    /// The first `n_max` tasks of a queue of these services that may start now, suspects or plain
    /// ones, in their order.
    pub(super) fn first_ready(
        &self,
        queue: &Queue,
        services: &[ServiceId],
        n_max: usize,
        now: Timestamp,
        is_asked_for: impl Fn(u32) -> bool,
    ) -> Vec<Candidate> {
        let mut found: Vec<Candidate> = Vec::new();
        let is_asked_for = |key: &ReadyKey| {
            key.queue == *queue && services.contains(&key.service) && is_asked_for(key.losses)
        };
        for (key, tasks) in self.ready.iter().filter(|(key, _)| is_asked_for(key)) {
            let may_start = |(_, task): &(&QueuePlace, &Queued)| may_start(task.deadline, now);
            let candidate =
                |(at, _): (&QueuePlace, &Queued)| Candidate { key: key.clone(), at: *at };
            found.extend(tasks.iter().filter(may_start).take(n_max).map(candidate));
        }
        found.sort_unstable_by_key(|candidate| candidate.at);
        found.truncate(n_max);
        found
    }

    /// Takes a ready task to a worker and moves the frontier on.
    pub(super) fn claim(&mut self, candidate: &Candidate) -> Option<Queued> {
        let Candidate { key, at } = candidate;
        let (task, position) = self.remove_ready(key, *at)?;
        self.frontiers.raise(&task.queue, position);
        if let Some(tenant) = self.tenants.get_mut(&task.tenant) {
            tenant.n_running += 1;
            if let Some(positions) = tenant.positions.get_mut(&task.queue) {
                positions.dequeued(position, at.1);
            }
        }
        Some(task)
    }

    fn remove_ready(&mut self, key: &ReadyKey, at: QueuePlace) -> Option<(Queued, Position)> {
        let rows = self.ready.get_mut(key)?;
        let task = rows.remove(&at)?;
        if rows.is_empty() {
            self.ready.remove(key);
        }
        let Some(Place::Ready { position, .. }) = self.places.remove(&(task.run, task.node)) else {
            return None;
        };
        let tenant = self.tenants.get_mut(&task.tenant)?;
        tenant.n_ready -= 1;
        tenant.ready_numbers.remove(&at.1);
        Some((task, position))
    }

    /// Takes a ready task out of its queue without a claim and gives its position back.
    fn withdraw(&mut self, run: RunKey, node: Node) -> Option<(u64, Queued)> {
        let Some(Place::Ready { key, at, .. }) = self.places.get(&(run, node)).cloned() else {
            return None;
        };
        let (task, position) = self.remove_ready(&key, at)?;
        let frontier = self.frontiers.get(&task.queue);
        let tenant = self.tenants.get_mut(&task.tenant)?;
        if let Some(positions) = tenant.positions.get_mut(&task.queue) {
            positions.withdrawn(frontier, position, at.1);
        }
        Some((at.1, task))
    }

    /// Takes cancelled tasks off, wherever they wait, and lets others into the room they leave.
    pub(super) fn cancel(&mut self, run: RunKey, nodes: &[Node]) {
        let mut tenants = BTreeSet::new();
        for node in nodes {
            if let Some((_, task)) = self.withdraw(run, *node) {
                tenants.insert(task.tenant);
            } else {
                self.forget(run, *node);
            }
        }
        for tenant in tenants {
            self.fill(&tenant);
        }
    }

    fn forget(&mut self, run: RunKey, node: Node) {
        match self.places.remove(&(run, node)) {
            Some(Place::Throttled { tenant, number }) => {
                if let Some(entry) = self.tenants.get_mut(&tenant) {
                    entry.throttled.remove(&number);
                }
            }
            Some(Place::Parked { service, number }) => {
                let task = self.parked.get_mut(&service).and_then(|tasks| tasks.remove(&number));
                if let Some(entry) = task.and_then(|task| self.tenants.get_mut(&task.tenant)) {
                    entry.n_parked -= 1;
                }
            }
            Some(Place::Ready { .. }) | None => {}
        }
    }

    /// A claim of the tenant ended.
    pub(super) fn free_slot(&mut self, tenant: &Tenant) {
        if let Some(entry) = self.tenants.get_mut(tenant) {
            entry.n_running = entry.n_running.saturating_sub(1);
        }
        self.fill(tenant);
    }

    /// Lets throttled tasks of a tenant in, as far as its limit allows, oldest first.
    pub(super) fn fill(&mut self, tenant: &Tenant) {
        let defaults = self.defaults;
        let has_room = |entry: &&mut TenantEntry| entry.room_left(defaults) != Some(0);
        while let Some(entry) = self.tenants.get_mut(tenant).filter(has_room) {
            let Some((number, task)) = entry.throttled.pop_first() else { return };
            self.place(number, task);
        }
    }

    /// Takes the youngest ready tasks of a tenant back behind its limit.
    pub(super) fn shrink(&mut self, tenant: &Tenant) {
        let Some(entry) = self.tenants.get(tenant) else { return };
        let limit = entry.settings(self.defaults).tasks_max;
        for _ in 0..surplus(entry.n_admitted() as u64, limit) {
            let youngest = |entry: &TenantEntry| entry.ready_numbers.values().next_back().copied();
            let Some((run, node)) = self.tenants.get(tenant).and_then(youngest) else { return };
            let Some((number, task)) = self.withdraw(run, node) else { return };
            if let Some(entry) = self.tenants.get_mut(tenant) {
                entry.throttled.insert(number, task);
            }
            let place = Place::Throttled { tenant: tenant.clone(), number };
            self.places.insert((run, node), place);
        }
    }

    /// Says what live workers serve from now on, and leaves what waits where it is.
    pub(super) fn serve_only(&mut self, served: BTreeSet<ServiceKey>) {
        self.served = served;
    }

    /// Says what live workers serve from now on: parked tasks that are served come back, stamped
    /// anew, and ready ones that nobody serves are parked. Those that nobody serves follow a change
    /// of their step's queue.
    pub(super) fn serve(
        &mut self,
        served: BTreeSet<ServiceKey>,
        definitions: &[Arc<StoredDefinition>],
    ) {
        self.served = served;
        let definition = |service: ServiceId| definitions.get(service.0 as usize);
        let has_moved = |task: &Queued| {
            let stored = definition(task.service);
            stored.is_some_and(|stored| stored.definition.queue(task.node) != task.queue)
        };
        let follow = |task: Queued| {
            let queue = definition(task.service).map(|stored| stored.definition.queue(task.node));
            Queued { queue: queue.unwrap_or_else(|| task.queue.clone()), ..task }
        };
        // In the order of arrival, whichever queue and workflow they waited for.
        let mut back: BTreeMap<u64, Queued> = BTreeMap::new();
        for (key, parked) in &mut self.parked {
            let is_served = self.served.contains(key);
            back.extend(parked.extract_if(.., |_, task| is_served || has_moved(task)));
        }
        self.parked.retain(|_, parked| !parked.is_empty());
        for (number, task) in back {
            if let Some(tenant) = self.tenants.get_mut(&task.tenant) {
                tenant.n_parked -= 1;
            }
            let is_served = self.served.contains(&(task.queue.clone(), task.service));
            self.place(number, if is_served { task } else { follow(task) });
        }
        let is_served = |key: &ReadyKey| self.served.contains(&(key.queue.clone(), key.service));
        let unserved: Vec<_> = self
            .ready
            .iter()
            .filter(|(key, _)| !is_served(key))
            .flat_map(|(_, rows)| rows.values().map(|task| (task.run, task.node)))
            .collect();
        let withdrawn: Vec<(u64, Queued)> =
            unserved.into_iter().filter_map(|(run, node)| self.withdraw(run, node)).collect();
        let tenants: BTreeSet<Tenant> =
            withdrawn.iter().map(|(_, task)| task.tenant.clone()).collect();
        for tenant in &tenants {
            self.fill(tenant);
        }
        for (number, task) in withdrawn {
            self.place(number, follow(task));
        }
    }
}
