//! A store whose every call is waited for where it is made.
//!
//! To an engine on virtual time each store then looks like one in memory: a call ends within the
//! poll that makes it. So no call is ever under way when time moves, a crash cuts none in two, and
//! the order of events does not depend on the threads and sockets of the store behind.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use async_trait::async_trait;
use stepwell_core::decide::{CancelAnswer, CancelRequest, SignalAnswer};
use stepwell_core::id::{DefinitionId, Epoch, Node, RunId, RunKey, Tenant, WorkerId};
use stepwell_core::lease::Life;
use stepwell_core::run::{RunLog, TaskRow, WaitRow};
use stepwell_core::workflow::Definition;
use tokio::runtime::Handle;

use super::activity::Activity;
use crate::ports::{
    AwaitedRun, ClaimAnswer, ClaimRef, ClaimRequest, Claims, CommitItem, Commits, Committed,
    Definitions, DynStore, FiredTimers, HeartbeatAnswer, Hints, InputsOf, Inspection, Lead,
    Leadership, ListenAnswer, ListenRequest, MemoAnswer, MemoRequest, Memos, Payload, Progress,
    ProgressReport, ReapRequest, Reaped, ReportedProgress, RunEnd, RunFilter, RunPage, RunSnapshot,
    RunView, Runs, SignalRequest, Signals, StartRequest, Started, Starts, Store, StoreDump,
    StoreError, StoredDefinition, StoredMemo, StoredSignal, TaskInputs, TenantSettings, TenantView,
    Tenants, Timers, WaitingRuns, WorkerRegistration, Workers,
};

/// A store whose every call is waited for where it is made.
#[derive(Clone)]
pub(super) struct AwaitedStore {
    store: DynStore,
    /// For a store that uses timers or sockets of tokio's in its calls.
    reactor: Handle,
    activity: Activity,
    n_changes: Arc<AtomicU64>,
}

impl AwaitedStore {
    pub(super) fn new(store: DynStore, reactor: Handle, activity: Activity) -> Self {
        Self { store, reactor, activity, n_changes: Arc::default() }
    }

    /// How often something was changed that runs depend on. Leases and terms are not counted.
    pub(super) fn n_changes(&self) -> u64 {
        self.n_changes.load(Ordering::Relaxed)
    }

    fn read<T>(&self, what: &str, call: impl Future<Output = T>) -> T {
        let _doing = self.activity.begin(&format!("the store's call `{what}`").into());
        let _entered = self.reactor.enter();
        wait_here(call)
    }

    fn change<T>(&self, what: &str, call: impl Future<Output = T>) -> T {
        self.n_changes.fetch_add(1, Ordering::Relaxed);
        self.read(what, call)
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits on this thread. The caller may be a task of tokio's with no turns left, in which tokio's
/// channels would seem empty for ever; so turns are not counted.
fn wait_here<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(tokio::task::unconstrained(future));
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut cx = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(answer) => return answer,
            Poll::Pending => std::thread::park(),
        }
    }
}

type Answer<T> = Result<T, StoreError>;

#[async_trait]
impl Definitions for AwaitedStore {
    async fn register(&self, definition: &Definition) -> Answer<Arc<StoredDefinition>> {
        self.change("register", self.store.register(definition))
    }

    async fn definition(&self, id: DefinitionId) -> Answer<Option<Arc<StoredDefinition>>> {
        self.read("definition", self.store.definition(id))
    }

    async fn latest(&self, workflow: &str) -> Answer<Option<Arc<StoredDefinition>>> {
        self.read("latest", self.store.latest(workflow))
    }
}

#[async_trait]
impl Starts for AwaitedStore {
    async fn start_and_claim(
        &self,
        requests: Vec<StartRequest>,
        offer: Option<ClaimRequest>,
    ) -> Answer<Started> {
        self.change("start_and_claim", self.store.start_and_claim(requests, offer))
    }
}

#[async_trait]
impl Claims for AwaitedStore {
    async fn claim(&self, request: ClaimRequest) -> Answer<ClaimAnswer> {
        self.read("claim", self.store.claim(request))
    }

    async fn inputs(&self, tasks: &[InputsOf]) -> Answer<Vec<TaskInputs>> {
        self.read("inputs", self.store.inputs(tasks))
    }
}

#[async_trait]
impl Commits for AwaitedStore {
    async fn commit_and_claim(
        &self,
        items: Vec<CommitItem>,
        offer: Option<ClaimRequest>,
    ) -> Answer<Committed> {
        self.change("commit_and_claim", self.store.commit_and_claim(items, offer))
    }

    async fn cancel(&self, run: RunKey, request: CancelRequest) -> Answer<Option<CancelAnswer>> {
        self.change("cancel", self.store.cancel(run, request))
    }
}

#[async_trait]
impl Signals for AwaitedStore {
    async fn signal(&self, requests: Vec<SignalRequest>) -> Answer<Vec<Option<SignalAnswer>>> {
        self.change("signal", self.store.signal(requests))
    }

    async fn signals(&self, run: RunKey) -> Answer<Vec<StoredSignal>> {
        self.read("signals", self.store.signals(run))
    }

    async fn waits(&self, run: RunKey) -> Answer<Vec<WaitRow>> {
        self.read("waits", self.store.waits(run))
    }

    async fn waiting_runs(
        &self,
        asked: &WaitingRuns,
        after: Option<RunKey>,
        rows_max: usize,
    ) -> Answer<Vec<RunKey>> {
        self.read("waiting_runs", self.store.waiting_runs(asked, after, rows_max))
    }
}

#[async_trait]
impl Timers for AwaitedStore {
    async fn fire_timers(&self, epoch: Epoch, timers_max: usize) -> Answer<FiredTimers> {
        let fired = self.read("fire_timers", self.store.fire_timers(epoch, timers_max))?;
        self.n_changes.fetch_add(u64::from(fired.n_fired > 0), Ordering::Relaxed);
        Ok(fired)
    }

    async fn put_off_timer(&self, epoch: Epoch, span: Duration) -> Answer<Option<(RunKey, Node)>> {
        self.change("put_off_timer", self.store.put_off_timer(epoch, span))
    }
}

#[async_trait]
impl Workers for AwaitedStore {
    async fn register_worker(&self, registration: WorkerRegistration) -> Answer<()> {
        self.change("register_worker", self.store.register_worker(registration))
    }

    async fn heartbeat(&self, worker: &WorkerId, claims: &[ClaimRef]) -> Answer<HeartbeatAnswer> {
        self.read("heartbeat", self.store.heartbeat(worker, claims))
    }

    async fn deregister_worker(&self, worker: &WorkerId) -> Answer<()> {
        self.change("deregister_worker", self.store.deregister_worker(worker))
    }

    async fn settle_services(&self) -> Answer<bool> {
        self.read("settle_services", self.store.settle_services())
    }

    async fn lives(&self) -> Answer<Vec<Life>> {
        self.read("lives", self.store.lives())
    }

    async fn reap(&self, epoch: Epoch, request: ReapRequest) -> Answer<Reaped> {
        let reaped = self.read("reap", self.store.reap(epoch, request))?;
        self.n_changes.fetch_add(u64::from(reaped.n_workers > 0), Ordering::Relaxed);
        Ok(reaped)
    }
}

#[async_trait]
impl Leadership for AwaitedStore {
    async fn lead(&self, candidate: &WorkerId, ttl: Duration) -> Answer<Lead> {
        self.read("lead", self.store.lead(candidate, ttl))
    }

    async fn resign(&self, epoch: Epoch) -> Answer<()> {
        self.read("resign", self.store.resign(epoch))
    }
}

#[async_trait]
impl Progress for AwaitedStore {
    async fn report_progress(&self, worker: &WorkerId, reports: &[ProgressReport]) -> Answer<()> {
        self.read("report_progress", self.store.report_progress(worker, reports))
    }

    async fn progress(&self, run: RunKey) -> Answer<Vec<ReportedProgress>> {
        self.read("progress", self.store.progress(run))
    }
}

#[async_trait]
impl Runs for AwaitedStore {
    async fn find(&self, tenant: &Tenant, id: &RunId) -> Answer<Option<RunView>> {
        self.read("find", self.store.find(tenant, id))
    }

    async fn run(&self, run: RunKey) -> Answer<Option<RunView>> {
        self.read("run", self.store.run(run))
    }

    async fn tasks(&self, run: RunKey) -> Answer<Vec<TaskRow>> {
        self.read("tasks", self.store.tasks(run))
    }

    async fn input(&self, run: RunKey) -> Answer<Option<Payload>> {
        self.read("input", self.store.input(run))
    }

    async fn output(&self, run: RunKey, node: Node) -> Answer<Option<Payload>> {
        self.read("output", self.store.output(run, node))
    }

    async fn outputs(&self, run: RunKey) -> Answer<Vec<(Node, Payload)>> {
        self.read("outputs", self.store.outputs(run))
    }

    async fn log(&self, run: RunKey) -> Answer<Option<RunLog>> {
        self.read("log", self.store.log(run))
    }

    async fn snapshot(&self, run: RunKey) -> Answer<Option<RunSnapshot>> {
        self.read("snapshot", self.store.snapshot(run))
    }

    async fn ended(&self, runs: &[AwaitedRun]) -> Answer<Vec<(RunKey, RunEnd)>> {
        self.read("ended", self.store.ended(runs))
    }

    async fn list(
        &self,
        filter: &RunFilter,
        before: Option<RunKey>,
        rows_max: usize,
    ) -> Answer<RunPage> {
        self.read("list", self.store.list(filter, before, rows_max))
    }
}

#[async_trait]
impl Memos for AwaitedStore {
    async fn store_memos(&self, requests: Vec<MemoRequest>) -> Answer<Vec<MemoAnswer>> {
        self.change("store_memos", self.store.store_memos(requests))
    }

    async fn listen(&self, requests: Vec<ListenRequest>) -> Answer<Vec<ListenAnswer>> {
        self.change("listen", self.store.listen(requests))
    }

    async fn memos(&self, run: RunKey) -> Answer<Vec<StoredMemo>> {
        self.read("memos", self.store.memos(run))
    }
}

#[async_trait]
impl Tenants for AwaitedStore {
    async fn set_tenant(&self, tenant: &Tenant, settings: TenantSettings) -> Answer<()> {
        self.change("set_tenant", self.store.set_tenant(tenant, settings))
    }

    async fn set_default_tenant(&self, settings: TenantSettings) -> Answer<()> {
        self.change("set_default_tenant", self.store.set_default_tenant(settings))
    }

    async fn tenant(&self, tenant: &Tenant) -> Answer<Option<TenantView>> {
        self.read("tenant", self.store.tenant(tenant))
    }
}

#[async_trait]
impl Inspection for AwaitedStore {
    async fn dump(&self) -> Answer<StoreDump> {
        self.read("dump", self.store.dump())
    }
}

impl Store for AwaitedStore {
    fn hints(&self) -> Hints {
        self.store.hints()
    }
}
