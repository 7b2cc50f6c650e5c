//! Drives a store without an engine: runs are started and tasks claimed through its ports, so that
//! one call can be measured by itself.

use std::sync::Arc;
use std::time::Duration;

use stepwell::core::decide::{Notes, RunSeed};
use stepwell::core::id::{Queue, RunId, RunKey, Tenant, WorkerId};
use stepwell::core::run::{Attributes, WaitFor};
use stepwell::core::workflow::{Draft, DraftStep, NodeKind, Placement, StepPolicy, WaitPolicy};
use stepwell::ports::{
    ClaimAnswer, ClaimRef, ClaimRequest, CommitItem, DynStore, HeartbeatAnswer, Lead,
    MarkedDefinition, Outcome, Payload, ReapRequest, StartAnswer, StartRequest, Take,
    TenantSettings, WorkerRegistration,
};

use super::bench_store::BenchStore;
use super::measure::{self, micros};
use super::progress::Progress;
use crate::commands::Failure;

/// Runs started in one transaction.
const START_BATCH: usize = 5_000;

/// The worker sends no heartbeats, and there is no leader that could take it for dead.
const LEASE: Duration = Duration::from_hours(24);

/// Losses at which a task ends; there are none here.
const CRASH_LIMIT: u32 = 3;

/// Starts runs and claims tasks on a store without an engine.
pub(super) struct StoreDriver {
    store: DynStore,
    next_key: u128,
    n_claims: u64,
}

/// The worker that claims.
pub(super) fn worker() -> WorkerId {
    WorkerId::new("bench").expect("a good name")
}

/// A worker that serves what the other one does not, and claims nothing.
pub(super) fn other_worker() -> WorkerId {
    WorkerId::new("other").expect("a good name")
}

/// One more.
pub(super) fn third_worker() -> WorkerId {
    WorkerId::new("third").expect("a good name")
}

fn tenant(name: &str) -> Tenant {
    Tenant::new(name).expect("a good name")
}

impl StoreDriver {
    pub(super) fn new(store: &BenchStore) -> Self {
        // Keys grow with time, as those of the engine do.
        let micros = measure::wall_clock().as_micros();
        let next_key = u128::from(micros.unsigned_abs()) << 64;
        Self { store: store.open.ports(), next_key, n_claims: 0 }
    }

    /// Stores a workflow of one step in this queue.
    pub(super) async fn register(
        &self,
        name: &str,
        queue: &str,
    ) -> Result<MarkedDefinition, Failure> {
        let queue = Queue::new(queue).expect("a good name");
        let policy = StepPolicy { queue, ..StepPolicy::default() };
        self.register_node(name, NodeKind::Step, policy).await
    }

    /// Stores a workflow that waits for a signal, or a day.
    pub(super) async fn register_wait(&self, name: &str) -> Result<MarkedDefinition, Failure> {
        let wait_for = WaitFor {
            signals: vec!["go".to_owned()],
            matching: Attributes::new(),
            timeout: Some(Duration::from_hours(24)),
        };
        let wait = WaitPolicy { wait_for, asks_worker: false, is_any: false };
        let policy = StepPolicy { wait: Some(wait), ..StepPolicy::default() };
        self.register_node(name, NodeKind::Wait, policy).await
    }

    async fn register_node(
        &self,
        workflow: &str,
        kind: NodeKind,
        policy: StepPolicy,
    ) -> Result<MarkedDefinition, Failure> {
        let placement = Placement::Explicit(Vec::new());
        let step = DraftStep { name: "work".to_owned(), kind, placement, policy };
        let draft = Draft { workflow: workflow.to_owned(), steps: vec![step], ..Draft::default() };
        let definition = draft.resolve().expect("a well-formed workflow");
        Ok(self.store.register(&definition).await?.marked())
    }

    /// Registers the worker for the default queue and these workflows.
    pub(super) async fn serve(&self, definitions: &[MarkedDefinition]) -> Result<(), Failure> {
        self.register_worker("default", worker(), definitions).await
    }

    /// Registers a worker for a queue and a workflow.
    pub(super) async fn serve_in(
        &self,
        queue: &str,
        worker: WorkerId,
        definition: MarkedDefinition,
    ) -> Result<(), Failure> {
        self.register_worker(queue, worker, &[definition]).await
    }

    /// Registers another worker, which claims nothing, for the default queue and these workflows.
    pub(super) async fn serve_elsewhere(
        &self,
        definitions: &[MarkedDefinition],
    ) -> Result<(), Failure> {
        self.register_worker("default", other_worker(), definitions).await
    }

    async fn register_worker(
        &self,
        queue: &str,
        worker: WorkerId,
        definitions: &[MarkedDefinition],
    ) -> Result<(), Failure> {
        let queues = vec![Queue::new(queue).expect("a good name")];
        let services = definitions.iter().map(|definition| definition.service()).collect();
        let registration = WorkerRegistration { worker, queues, services, lease: LEASE };
        Ok(self.store.register_worker(registration).await?)
    }

    /// Takes a worker off the list.
    pub(super) async fn leave(&self, worker: &WorkerId) -> Result<(), Failure> {
        Ok(self.store.deregister_worker(worker).await?)
    }

    /// Moves tasks to where they are served, in so many rounds at most.
    pub(super) async fn settle(&self, n_rounds: usize) -> Result<(), Failure> {
        for _ in 0..n_rounds {
            if !self.store.settle_services().await? {
                break;
            }
        }
        Ok(())
    }

    /// Takes a worker for dead, as a leader does, with all that it holds.
    pub(super) async fn bury(&self, worker: WorkerId) -> Result<(), Failure> {
        let Lead::Leading(epoch) = self.store.lead(&worker, LEASE).await? else {
            return Err(Failure::Unexpected("another one leads".to_owned()));
        };
        let lives = self.store.lives().await?;
        let dead = lives.into_iter().map(|life| life.last_beat);
        let dead = dead.filter(|beat| beat.worker == worker).collect();
        let request = ReapRequest { crash_limit: CRASH_LIMIT, dead };
        self.store.reap(epoch, request).await?;
        Ok(())
    }

    /// A heartbeat of a worker that holds these claims.
    pub(super) async fn beat(&self, worker: &WorkerId, held: &[ClaimRef]) -> Result<(), Failure> {
        match self.store.heartbeat(worker, held).await? {
            HeartbeatAnswer::Alive { lost, unknown } if lost.is_empty() && unknown.is_empty() => {
                Ok(())
            }
            answer => Err(Failure::Unexpected(format!("a heartbeat was answered by {answer:?}"))),
        }
    }

    /// Completes claimed tasks in one transaction.
    pub(super) async fn complete(&self, claims: &[ClaimRef]) -> Result<(), Failure> {
        let output = || Outcome::Completed { output: Payload::empty(), notes: Notes::default() };
        let item = |claim: &ClaimRef| CommitItem { claim: *claim, outcome: output() };
        self.store.commit(claims.iter().map(item).collect()).await?;
        Ok(())
    }

    /// Lets only so many tasks of a tenant be ready or running at once.
    pub(super) async fn limit(&self, tenant_name: &str, tasks_max: u32) -> Result<(), Failure> {
        let settings = TenantSettings { tasks_max: Some(tasks_max), ..TenantSettings::default() };
        Ok(self.store.set_tenant(&tenant(tenant_name), settings).await?)
    }

    /// Starts so many runs of a tenant.
    pub(super) async fn fill(
        &mut self,
        definition: MarkedDefinition,
        tenant: &str,
        n_runs: usize,
        progress: &Progress,
    ) -> Result<(), Failure> {
        for first in (0..n_runs).step_by(START_BATCH) {
            let n = START_BATCH.min(n_runs - first);
            self.start(definition, tenant, n).await?;
            progress.set(first + n);
        }
        Ok(())
    }

    /// Starts runs in one transaction. Their inputs are numbers from 0 on.
    pub(super) async fn start(
        &mut self,
        definition: MarkedDefinition,
        tenant_name: &str,
        n_runs: usize,
    ) -> Result<Vec<RunKey>, Failure> {
        let tenant = tenant(tenant_name);
        let request = |run: usize| {
            self.next_key += 1;
            let key = RunKey(self.next_key);
            let id = RunId::new(key.to_string()).expect("a good name");
            let MarkedDefinition { id: definition, mark } = definition;
            let seed = RunSeed { key, tenant: tenant.clone(), id, definition, deadline: None };
            let bytes: Arc<[u8]> = run.to_string().into_bytes().into();
            let input = Payload::new("json".into(), bytes);
            StartRequest { seed, mark, input, input_digest: [0; 32] }
        };
        let requests: Vec<StartRequest> = (0..n_runs).map(request).collect();
        let keys = requests.iter().map(|request| request.seed.key).collect();
        for answer in self.store.start(requests).await? {
            match answer {
                StartAnswer::Started => {}
                StartAnswer::Refused(error) => return Err(error.into()),
                StartAnswer::AlreadyStarted(key) => {
                    return Err(Failure::Unexpected(format!("run {key} was there before")));
                }
            }
        }
        Ok(keys)
    }

    /// Claims so often so many tasks and gives the time of each claim in microseconds. What was
    /// claimed is replaced, so that the queue stays as long as it is.
    pub(super) async fn claim(
        &mut self,
        definition: MarkedDefinition,
        tenant_name: &str,
        n_claims: usize,
        tasks_max: usize,
    ) -> Result<Vec<u64>, Failure> {
        let mut spans = Vec::with_capacity(n_claims);
        for _ in 0..n_claims {
            let began_at = measure::now();
            self.hold(worker(), tasks_max).await?;
            spans.push(micros(began_at.elapsed()));
            self.start(definition, tenant_name, tasks_max).await?;
        }
        Ok(spans)
    }

    /// Claims so many tasks for a worker.
    pub(super) async fn hold(
        &mut self,
        worker: WorkerId,
        tasks_max: usize,
    ) -> Result<Vec<ClaimRef>, Failure> {
        self.n_claims += 1;
        let (take, crash_limit, salt) = (Take::Plain, CRASH_LIMIT, self.n_claims);
        let request = ClaimRequest { worker, tasks_max, take, crash_limit, salt };
        match self.store.claim(request).await? {
            ClaimAnswer::Claimed { tasks, .. } if tasks.len() == tasks_max => {
                Ok(tasks.into_iter().map(|task| task.claim).collect())
            }
            ClaimAnswer::Claimed { tasks, .. } => {
                let message = format!("claimed {} tasks of {tasks_max}", tasks.len());
                Err(Failure::Unexpected(message))
            }
            ClaimAnswer::NoTrial | ClaimAnswer::NotRegistered => {
                Err(Failure::Unexpected("the worker is not registered".to_owned()))
            }
        }
    }
}
