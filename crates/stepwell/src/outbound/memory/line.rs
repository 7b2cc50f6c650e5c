//! Where queued tasks wait: in a queue, behind a limit, or for a worker that serves them.
//!
//! Only tasks that can be claimed now are in a queue, so a claim reads in order and never scans
//! past what it cannot take, however much is held back.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use stepwell_core::fair::{FairError, Group, OrderKey, Position, group};
use stepwell_core::id::{DefinitionId, Node, Queue, RunKey, Tenant};

use super::fair_line::{Frontiers, Standing};
use crate::ports::TenantSettings;

/// A task that waits to be claimed.
#[derive(Clone, Debug)]
pub(super) struct Queued {
    pub(super) run: RunKey,
    pub(super) node: Node,
    pub(super) tenant: Tenant,
    pub(super) queue: Queue,
    pub(super) definition: DefinitionId,
    pub(super) losses: u32,
}

/// Tasks that the same claims can take.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Lane {
    pub(super) queue: Queue,
    pub(super) definition: DefinitionId,
    /// Suspects are told by their losses.
    pub(super) losses: u32,
}

/// Tasks that wait for the same workers.
pub(super) type Lot = (Queue, DefinitionId);

/// A place in a lane: the fair key, then the order of arrival.
pub(super) type Slot = (OrderKey, u64);

#[derive(Clone, Debug)]
pub(super) enum Place {
    Ready { lane: Lane, slot: Slot, position: Position },
    Throttled { tenant: Tenant, number: u64 },
    Parked { lot: Lot, number: u64 },
}

/// A tenant and its waiting work.
pub(super) struct TenantEntry {
    pub(super) group: Group,
    pub(super) own: Option<TenantSettings>,
    pub(super) standings: BTreeMap<Queue, Standing>,
    pub(super) n_ready: usize,
    pub(super) n_running: usize,
    pub(super) n_parked: usize,
    pub(super) throttled: BTreeMap<u64, Queued>,
    ready_numbers: BTreeMap<u64, (RunKey, Node)>,
}

/// All waiting tasks of the store.
#[derive(Default)]
pub(super) struct Line {
    pub(super) defaults: TenantSettings,
    pub(super) tenants: BTreeMap<Tenant, TenantEntry>,
    pub(super) lanes: BTreeMap<Lane, BTreeMap<Slot, Queued>>,
    pub(super) places: HashMap<(RunKey, Node), Place>,
    pub(super) frontiers: Frontiers,
    parked: BTreeMap<Lot, BTreeMap<u64, Queued>>,
    served: BTreeSet<Lot>,
    last_number: u64,
    /// Tasks that joined a queue in this transaction and were not handed over.
    pub(super) n_joined: usize,
}

impl TenantEntry {
    pub(super) fn settings(&self, defaults: TenantSettings) -> TenantSettings {
        self.own.unwrap_or(defaults)
    }

    fn has_room(&self, defaults: TenantSettings) -> bool {
        let admitted = self.n_ready + self.n_running;
        self.settings(defaults).tasks_max.is_none_or(|limit| admitted < limit as usize)
    }
}

impl Line {
    /// The entry of a tenant, made when it is first seen.
    pub(super) fn tenant(&mut self, tenant: &Tenant) -> Result<&mut TenantEntry, FairError> {
        let n_tenants = self.tenants.len();
        if !self.tenants.contains_key(tenant) {
            let entry = TenantEntry {
                group: group(n_tenants)?,
                own: None,
                standings: BTreeMap::new(),
                n_ready: 0,
                n_running: 0,
                n_parked: 0,
                throttled: BTreeMap::new(),
                ready_numbers: BTreeMap::new(),
            };
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
        let defaults = self.defaults;
        self.tenant(tenant)?;
        let Some(entry) = self.tenants.get(tenant) else { return Ok(()) };
        let weight = entry.settings(defaults).weight;
        for queue in queues {
            let frontier = self.frontiers.get(queue);
            if let Some(standing) = entry.standings.get(queue) {
                standing.check(frontier, weight)?;
            }
        }
        Ok(())
    }

    /// Lets a task wait where it belongs: parked if nobody serves it, held back if its tenant is
    /// at its limit, else in its queue.
    pub(super) fn enqueue(&mut self, task: Queued) {
        self.last_number += 1;
        self.put(self.last_number, task);
    }

    fn put(&mut self, number: u64, task: Queued) {
        let defaults = self.defaults;
        let key = (task.run, task.node);
        let lot = (task.queue.clone(), task.definition);
        let served = self.served.contains(&lot);
        // A tenant without a place was refused when its run started.
        let Ok(tenant) = self.tenant(&task.tenant) else { return };
        if !served {
            tenant.n_parked += 1;
            self.parked.entry(lot.clone()).or_default().insert(number, task);
            self.places.insert(key, Place::Parked { lot, number });
        } else if !tenant.has_room(defaults) {
            let place = Place::Throttled { tenant: task.tenant.clone(), number };
            tenant.throttled.insert(number, task);
            self.places.insert(key, place);
        } else {
            self.admit(number, task);
        }
    }

    /// Puts a task into its queue at its tenant's next position.
    fn admit(&mut self, number: u64, task: Queued) {
        let frontier = self.frontiers.get(&task.queue);
        let Some(tenant) = self.tenants.get_mut(&task.tenant) else { return };
        self.n_joined += 1;
        let weight = tenant.settings(self.defaults).weight;
        let group = tenant.group;
        let standing = tenant.standings.entry(task.queue.clone()).or_default();
        let (position, order) = standing.take(frontier, weight, group, number);
        tenant.n_ready += 1;
        tenant.ready_numbers.insert(number, (task.run, task.node));
        let lane =
            Lane { queue: task.queue.clone(), definition: task.definition, losses: task.losses };
        let slot = (order, number);
        let place = Place::Ready { lane: lane.clone(), slot, position };
        self.places.insert((task.run, task.node), place);
        self.lanes.entry(lane).or_default().insert(slot, task);
    }

    /// Takes the first task of a lane to a worker and moves the frontier on.
    pub(super) fn claim_first(&mut self, lane: &Lane) -> Option<Queued> {
        let slot = *self.lanes.get(lane)?.first_key_value()?.0;
        let (task, position) = self.remove_ready(lane, slot)?;
        self.frontiers.raise(&task.queue, position);
        if let Some(tenant) = self.tenants.get_mut(&task.tenant) {
            tenant.n_running += 1;
            if let Some(standing) = tenant.standings.get_mut(&task.queue) {
                standing.dequeued(position, slot.1);
            }
        }
        Some(task)
    }

    fn remove_ready(&mut self, lane: &Lane, slot: Slot) -> Option<(Queued, Position)> {
        let rows = self.lanes.get_mut(lane)?;
        let task = rows.remove(&slot)?;
        if rows.is_empty() {
            self.lanes.remove(lane);
        }
        let Some(Place::Ready { position, .. }) = self.places.remove(&(task.run, task.node)) else {
            return None;
        };
        let tenant = self.tenants.get_mut(&task.tenant)?;
        tenant.n_ready -= 1;
        tenant.ready_numbers.remove(&slot.1);
        Some((task, position))
    }

    /// Takes a ready task out of its queue without a claim and gives its position back.
    fn withdraw(&mut self, run: RunKey, node: Node) -> Option<(u64, Queued)> {
        let Some(Place::Ready { lane, slot, .. }) = self.places.get(&(run, node)).cloned() else {
            return None;
        };
        let (task, position) = self.remove_ready(&lane, slot)?;
        let frontier = self.frontiers.get(&task.queue);
        let tenant = self.tenants.get_mut(&task.tenant)?;
        if let Some(standing) = tenant.standings.get_mut(&task.queue) {
            standing.withdrawn(frontier, position, slot.1);
        }
        Some((slot.1, task))
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
            Some(Place::Parked { lot, number }) => {
                let task = self.parked.get_mut(&lot).and_then(|line| line.remove(&number));
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

    /// Lets held-back tasks of a tenant in, as far as its limit allows, oldest first.
    pub(super) fn fill(&mut self, tenant: &Tenant) {
        let defaults = self.defaults;
        while let Some(entry) = self.tenants.get_mut(tenant).filter(|e| e.has_room(defaults)) {
            let Some((number, task)) = entry.throttled.pop_first() else { return };
            self.put(number, task);
        }
    }

    /// Takes the youngest ready tasks of a tenant back behind its limit.
    pub(super) fn shrink(&mut self, tenant: &Tenant) {
        loop {
            let Some(entry) = self.tenants.get(tenant) else { return };
            let limit = entry.settings(self.defaults).tasks_max;
            if limit.is_none_or(|limit| entry.n_ready + entry.n_running <= limit as usize) {
                return;
            }
            let Some((run, node)) = entry.ready_numbers.last_key_value().map(|(_, key)| *key)
            else {
                return;
            };
            let Some((number, task)) = self.withdraw(run, node) else { return };
            if let Some(entry) = self.tenants.get_mut(tenant) {
                entry.throttled.insert(number, task);
            }
            let place = Place::Throttled { tenant: tenant.clone(), number };
            self.places.insert((run, node), place);
        }
    }

    /// Says what live workers serve from now on, and leaves what waits where it is.
    pub(super) fn serve_only(&mut self, served: BTreeSet<Lot>) {
        self.served = served;
    }

    /// Says what live workers serve from now on: parked tasks that are served come back, stamped
    /// anew, and ready ones that nobody serves are parked.
    pub(super) fn serve(&mut self, served: BTreeSet<Lot>) {
        self.served = served;
        let back: Vec<_> =
            self.parked.keys().filter(|key| self.served.contains(*key)).cloned().collect();
        // In the order of arrival, whichever queue and workflow they waited for.
        let back: BTreeMap<u64, Queued> =
            back.iter().filter_map(|key| self.parked.remove(key)).flatten().collect();
        for (number, task) in back {
            if let Some(tenant) = self.tenants.get_mut(&task.tenant) {
                tenant.n_parked -= 1;
            }
            self.put(number, task);
        }
        let is_served = |lane: &Lane| self.served.contains(&(lane.queue.clone(), lane.definition));
        let unserved: Vec<_> = self
            .lanes
            .iter()
            .filter(|(lane, _)| !is_served(lane))
            .flat_map(|(_, rows)| rows.values().map(|task| (task.run, task.node)))
            .collect();
        let mut tenants = BTreeSet::new();
        for (run, node) in unserved {
            if let Some((number, task)) = self.withdraw(run, node) {
                tenants.insert(task.tenant.clone());
                self.put(number, task);
            }
        }
        for tenant in &tenants {
            self.fill(tenant);
        }
    }
}
