//! Tenants that start runs and workers that serve them, without engines: for many tasks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use stepwell::core::decide::{CancelRequest, RunSeed};
use stepwell::core::id::{Queue, RunId, RunKey, Tenant, WorkerId};
use stepwell::core::workflow::{
    Definition, Draft, DraftStep, NodeKind, ParentRef, Placement, StepPolicy, workflow_hash,
};
use stepwell::ports::{
    ClaimAnswer, ClaimRequest, ClaimedTask, Claims, CommitItem, Commits, Definitions,
    MarkedDefinition, Outcome, Payload, StartAnswer, StartRequest, Starts, Take, TenantSettings,
    TenantView, Tenants, WorkerRegistration, Workers,
};
use stepwell::testing::ManualClock;

use super::at_once;
use super::fleet::LEASE;
use super::journal::{Entry, Journal, Step};
use super::link::Link;
use super::watch::Watch;

/// What tenants order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ware {
    /// One step.
    Single,
    /// Two steps and their join.
    Join,
    /// One step that only a worker serves who never asks for work.
    Stray,
    /// One step that nobody serves.
    Orphan,
}

const WARES: [(Ware, &str); 4] = [
    (Ware::Single, "single"),
    (Ware::Join, "join"),
    (Ware::Stray, "stray"),
    (Ware::Orphan, "orphan"),
];

/// A store, tenants, and two workers that serve all they can.
pub(crate) struct Market {
    pub(crate) watch: Arc<Watch>,
    link: Link,
    flows: Vec<MarkedDefinition>,
    held: Vec<ClaimedTask>,
    /// Every tenant's runs in order.
    runs: BTreeMap<Tenant, Vec<RunKey>>,
    /// Runs whose tasks stay where they are.
    strays: BTreeSet<RunKey>,
    n_runs: usize,
    n_claims: u64,
}

impl Market {
    pub(crate) fn new(watch: Arc<Watch>) -> Self {
        let link = Link::new(&watch);
        let flow = |(ware, name): &(Ware, &str)| {
            let definition = match ware {
                Ware::Join => definition(name, &[&[], &[], &[0, 1]]),
                _ => definition(name, &[&[]]),
            };
            at_once(link.register(&definition)).expect("register a definition").marked()
        };
        let flows = WARES.iter().map(flow).collect();
        let market = Self {
            watch,
            link,
            flows,
            held: Vec::new(),
            runs: BTreeMap::new(),
            strays: BTreeSet::new(),
            n_runs: 0,
            n_claims: 0,
        };
        let served = [market.flow(Ware::Single), market.flow(Ware::Join)];
        market.introduce("worker-0", &served);
        market.introduce("worker-1", &served);
        market.introduce("absent", &[market.flow(Ware::Stray)]);
        market
    }

    pub(crate) fn strict() -> Self {
        Self::new(Watch::strict(&ManualClock::new()))
    }

    pub(crate) fn lenient() -> Self {
        Self::new(Watch::lenient(&ManualClock::new()))
    }

    fn flow(&self, ware: Ware) -> MarkedDefinition {
        let ix = WARES.iter().position(|(known, _)| *known == ware);
        self.flows[ix.expect("every ware is listed")]
    }

    fn introduce(&self, worker: &str, definitions: &[MarkedDefinition]) {
        let registration = WorkerRegistration {
            worker: WorkerId::new(worker).expect("a usable name"),
            queues: vec![Queue::default_queue()],
            services: definitions.iter().map(|id| id.service()).collect(),
            lease: LEASE,
        };
        at_once(self.link.register_worker(registration)).expect("register a worker");
    }

    /// One worker serves orphans from now on, or nobody does.
    pub(crate) fn adopt(&self, is_adopted: bool) {
        let mut served = vec![self.flow(Ware::Single), self.flow(Ware::Join)];
        if is_adopted {
            served.push(self.flow(Ware::Orphan));
        }
        self.introduce("worker-0", &served);
        self.introduce("worker-1", &served);
    }

    /// Starts a run of so many steps that nobody serves.
    pub(crate) fn crowd(&mut self, tenant: &Tenant, n_steps: usize) {
        let definition = definition("crowd", &vec![&[] as &[u32]; n_steps]);
        let stored = at_once(self.link.register(&definition)).expect("register a definition");
        self.start(tenant, stored.marked(), 1);
    }

    /// A tenant orders so many times.
    pub(crate) fn order(&mut self, tenant: &Tenant, ware: Ware, n: usize) {
        self.start(tenant, self.flow(ware), n);
    }

    fn start(&mut self, tenant: &Tenant, definition: MarkedDefinition, n: usize) {
        let mut requests = Vec::new();
        for _ in 0..n {
            self.n_runs += 1;
            let (key, id) = (RunKey(self.n_runs as u128), format!("run-{}", self.n_runs));
            let id = RunId::new(id).expect("a usable name");
            let MarkedDefinition { id: number, mark } = definition;
            let tenant_of = tenant.clone();
            let seed = RunSeed { key, tenant: tenant_of, id, definition: number, deadline: None };
            let input = Payload::empty();
            requests.push(StartRequest { seed, mark, input, input_digest: [0; 32] });
            self.runs.entry(tenant.clone()).or_default().push(key);
            if definition == self.flow(Ware::Stray) {
                self.strays.insert(key);
            }
        }
        let answers = at_once(self.link.start(requests)).expect("start runs");
        let is_started = |answer: &StartAnswer| matches!(answer, StartAnswer::Started);
        assert!(answers.iter().all(is_started), "{answers:?}");
    }

    /// A worker takes up to so many tasks; says how many there were.
    pub(crate) fn claim(&mut self, worker: usize, tasks_max: usize) -> usize {
        self.n_claims += 1;
        let request = ClaimRequest {
            worker: WorkerId::new(format!("worker-{}", worker % 2)).expect("a usable name"),
            tasks_max,
            take: Take::Plain,
            crash_limit: 3,
            salt: self.n_claims,
        };
        match at_once(self.link.claim(request)).expect("claim") {
            ClaimAnswer::Claimed { tasks, .. } => {
                let n = tasks.len();
                self.held.extend(tasks);
                n
            }
            other => panic!("workers stay registered: {other:?}"),
        }
    }

    /// So many of the tasks that were claimed are done, oldest first.
    pub(crate) fn complete(&mut self, n: usize) {
        let done = self.held.drain(..n.min(self.held.len()));
        let outcome = || Outcome::Completed { output: Payload::empty(), notes: BTreeMap::new() };
        let items: Vec<CommitItem> =
            done.map(|task| CommitItem { claim: task.claim, outcome: outcome() }).collect();
        if !items.is_empty() {
            at_once(self.link.commit(items)).expect("commit");
        }
    }

    /// What happened in the queue. Tasks that nobody takes wait for ever and are left out.
    pub(crate) fn journal(&self) -> Journal {
        let mut journal = self.watch.journal();
        let waits = |entry: &Entry| {
            matches!(entry.step, Step::Ready { .. }) && self.strays.contains(&entry.task.0)
        };
        journal.0.retain(|entry| !waits(entry));
        journal
    }

    pub(crate) fn n_held(&self) -> usize {
        self.held.len()
    }

    /// Cancels one of a tenant's runs, counted from the youngest.
    pub(crate) fn cancel(&self, tenant: &Tenant, nth_youngest: usize) {
        let runs = self.runs.get(tenant).map_or(&[] as &[RunKey], Vec::as_slice);
        if let Some(run) = runs.iter().rev().nth(nth_youngest) {
            at_once(self.link.cancel(*run, CancelRequest::by("a test"))).expect("cancel");
        }
    }

    pub(crate) fn set(&self, tenant: &Tenant, weight: u32, tasks_max: Option<u32>) {
        let settings = TenantSettings { weight, tasks_max };
        at_once(self.link.set_tenant(tenant, settings)).expect("set a tenant");
    }

    pub(crate) fn view(&self, tenant: &Tenant) -> Option<TenantView> {
        at_once(self.link.tenant(tenant)).expect("read a tenant")
    }

    pub(crate) fn n_ready(&self, tenant: &Tenant) -> usize {
        self.view(tenant).map_or(0, |view| view.n_ready)
    }
}

pub(crate) fn tenant(ix: usize) -> Tenant {
    Tenant::new(format!("tenant-{ix}")).expect("a usable name")
}

/// A workflow of steps after these parents.
fn definition(name: &str, parents: &[&[u32]]) -> Definition {
    let workflow = workflow_hash(name);
    let handle = |index: &u32| ParentRef::Handle { index: *index, workflow, needed: false };
    let step = |(ix, parents): (usize, &&[u32])| DraftStep {
        name: format!("s{ix}"),
        kind: NodeKind::Step,
        placement: Placement::Explicit(parents.iter().map(handle).collect()),
        policy: StepPolicy::default(),
    };
    let steps = parents.iter().enumerate().map(step).collect();
    let draft = Draft { workflow: name.to_owned(), steps, ..Draft::default() };
    draft.resolve().expect("a well-formed workflow")
}
