//! Definitions, workers, tenants and starts.

use std::borrow::Cow;
use std::time::Duration;

use sha2::{Digest, Sha256};
use stepwell_core::decide::RunSeed;
use stepwell_core::id::{Queue, RunId, RunKey, WorkerId};
use stepwell_core::workflow::Definition;

use super::{Flow, LEASE, Run, Sketch, TENANT, WORKER, World, tenant, worker};
use crate::ports::{
    MarkedService, Payload, StartAnswer, StartRequest, TenantSettings, WorkerRegistration,
};

impl World {
    /// Stores a workflow and lets the worker [`WORKER`] serve it, beside all before it.
    pub async fn define(&self, sketch: impl Into<Sketch>) -> Flow {
        let flow = self.define_unserved(sketch).await;
        self.serve(&flow).await;
        flow
    }

    /// Stores a workflow that no worker serves.
    pub async fn define_unserved(&self, sketch: impl Into<Sketch>) -> Flow {
        let definition = self.resolve(sketch.into());
        let stored = self.store.register(&definition).await.expect("register a definition");
        self.acted().await;
        Flow(stored)
    }

    /// The definition of a sketch, not stored.
    #[must_use]
    pub fn resolve(&self, sketch: Sketch) -> Definition {
        let number = {
            let mut desk = self.desk();
            desk.n_flows += 1;
            desk.n_flows
        };
        sketch.resolve(&format!("flow-{number}"))
    }

    /// Lets [`WORKER`] serve a workflow, beside all before it.
    pub async fn serve(&self, flow: &Flow) {
        {
            let mut desk = self.desk();
            desk.served.push(flow.0.marked_service());
            desk.queues.insert(Queue::default_queue());
            let steps = &flow.0.definition.policy.steps;
            desk.queues.extend(steps.iter().map(|policy| policy.queue.clone()));
        }
        self.hire(WORKER).await;
    }

    /// Registers a worker that serves what [`WORKER`] serves.
    pub async fn hire(&self, name: &str) -> WorkerId {
        let (queues, services) = {
            let desk = self.desk();
            (desk.queues.iter().cloned().collect(), desk.served.clone())
        };
        self.register(name, queues, services, LEASE).await
    }

    /// Registers a worker that serves these queues and workflows only.
    pub async fn hire_for(&self, name: &str, queues: &[&str], flows: &[&Flow]) -> WorkerId {
        let queues = queues.iter().map(|name| super::queue(name)).collect();
        let services = flows.iter().map(|flow| flow.0.marked_service()).collect();
        self.register(name, queues, services, LEASE).await
    }

    /// Registers a worker.
    pub async fn register(
        &self,
        name: &str,
        queues: Vec<Queue>,
        services: Vec<MarkedService>,
        lease: Duration,
    ) -> WorkerId {
        let id = worker(name);
        let registration = WorkerRegistration { worker: id.clone(), queues, services, lease };
        self.store.register_worker(registration).await.expect("register a worker");
        self.desk().workers.insert(id.clone());
        self.dead().await;
        self.acted().await;
        id
    }

    /// Takes a worker off the list.
    pub async fn dismiss(&self, worker: &WorkerId) {
        self.store.deregister_worker(worker).await.expect("deregister a worker");
        self.desk().workers.remove(worker);
        self.acted().await;
    }

    /// Sets a tenant's limit, weight 1.
    pub async fn limit(&self, name: &str, tasks_max: impl Into<Option<u32>>) {
        let settings = TenantSettings { weight: 1, tasks_max: tasks_max.into() };
        self.store.set_tenant(&tenant(name), settings).await.expect("set a tenant");
        self.acted().await;
    }

    /// Sets a tenant's weight, without a limit.
    pub async fn weigh(&self, name: &str, weight: u32) {
        let settings = TenantSettings { weight, tasks_max: None };
        self.store.set_tenant(&tenant(name), settings).await.expect("set a tenant");
        self.acted().await;
    }

    /// Sets the limit of tenants without settings of their own.
    pub async fn limit_all(&self, tasks_max: impl Into<Option<u32>>) {
        let settings = TenantSettings { weight: 1, tasks_max: tasks_max.into() };
        self.store.set_default_tenant(settings).await.expect("set the default tenant");
        self.acted().await;
    }

    /// Starts a run of [`TENANT`].
    pub async fn start(&self, flow: &Flow) -> Run {
        self.start_for(TENANT, flow).await
    }

    /// Starts a run of a tenant.
    pub async fn start_for(&self, tenant: &str, flow: &Flow) -> Run {
        self.start_many_for(tenant, flow, 1).await.remove(0)
    }

    /// Starts a run of [`TENANT`] that may take so long.
    pub async fn start_within(&self, flow: &Flow, deadline: Duration) -> Run {
        let mut request = self.request(TENANT, "", flow, b"input");
        request.seed.deadline = Some(deadline);
        let run = run_of(&request, flow);
        let answer = self.try_start(request).await;
        assert!(matches!(answer, StartAnswer::Started), "{answer:?}");
        run
    }

    /// Starts several runs of a tenant in one transaction.
    pub async fn start_many_for(&self, tenant: &str, flow: &Flow, n: usize) -> Vec<Run> {
        let requests: Vec<StartRequest> =
            (0..n).map(|_| self.request(tenant, "", flow, b"input")).collect();
        let runs: Vec<Run> = requests.iter().map(|request| run_of(request, flow)).collect();
        let answers = self.start_all(requests).await;
        let is_started = |answer: &StartAnswer| matches!(answer, StartAnswer::Started);
        assert!(answers.iter().all(is_started), "{answers:?}");
        assert_eq!(answers.len(), n);
        runs
    }

    /// Starts what is requested, whatever the answers.
    pub async fn start_all(&self, requests: Vec<StartRequest>) -> Vec<StartAnswer> {
        let answers = self.store.start(requests).await.expect("start runs");
        self.acted().await;
        answers
    }

    /// Starts one run, whatever the answer.
    pub async fn try_start(&self, request: StartRequest) -> StartAnswer {
        self.start_all(vec![request]).await.remove(0)
    }

    /// A request under a fresh key; with a fresh id as well if `id` is empty.
    #[must_use]
    pub fn request(&self, whose: &str, id: &str, flow: &Flow, input: &[u8]) -> StartRequest {
        let number = {
            let mut desk = self.desk();
            desk.n_runs += 1;
            desk.n_runs
        };
        let id = if id.is_empty() { format!("run-{number}") } else { id.to_owned() };
        let seed = RunSeed {
            // Keys grow with time in their upper half, as the engine's do.
            key: RunKey((u128::from(number) << 80) | 0xfeed),
            tenant: tenant(whose),
            id: RunId::new(id).expect("the case gives a usable id"),
            definition: flow.0.id,
            deadline: None,
        };
        let input_digest = Sha256::digest(input).into();
        StartRequest { seed, mark: flow.0.mark, input: payload(input), input_digest }
    }
}

/// The run that a request asks for.
#[must_use]
pub fn run_of(request: &StartRequest, flow: &Flow) -> Run {
    let seed = &request.seed;
    Run { key: seed.key, tenant: seed.tenant.clone(), id: seed.id.clone(), flow: flow.clone() }
}

/// Bytes as a payload.
#[must_use]
pub fn payload(bytes: &[u8]) -> Payload {
    Payload::new(Cow::Borrowed("test"), bytes)
}
