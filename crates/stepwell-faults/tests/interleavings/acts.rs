//! Calls of a store, to be played many times.

use std::sync::Arc;

use stepwell::core::decide::CancelRequest;
use stepwell::core::id::{Epoch, RunKey, WorkerId};
use stepwell::ports::{
    BoxFuture, ClaimAnswer, ClaimRef, ClaimRequest, ClaimedTask, CommitItem, DynStore,
    ListenRequest, MemoRequest, Outcome, ReapRequest, SignalRequest, StartRequest, StoreError,
    Take, TenantSettings, WorkerRegistration,
};
use stepwell::testing::conformance::world::{CRASH_LIMIT, completed, tenant};

/// One call of a store, to be made again and again; its answer in words.
#[derive(Clone)]
pub(crate) struct Act {
    call: Arc<dyn Fn(DynStore) -> BoxFuture<String> + Send + Sync>,
    /// What it may come to instead while another call is under way: a claim never waits, so it
    /// may come back with less than it could have had.
    pub(crate) lesser: Vec<Act>,
}

impl Act {
    pub(crate) fn call(&self, store: &DynStore) -> BoxFuture<String> {
        (self.call)(Arc::clone(store))
    }
}

fn act<F>(call: impl Fn(DynStore) -> F + Send + Sync + 'static) -> Act
where
    F: Future<Output = Result<String, StoreError>> + Send + 'static,
{
    let call = move |store| -> BoxFuture<String> {
        let called = call(store);
        Box::pin(async { called.await.unwrap_or_else(|error| format!("error: {error}")) })
    };
    Act { call: Arc::new(call), lesser: Vec::new() }
}

pub(crate) fn claim(worker: &WorkerId, tasks_max: usize, salt: u64) -> Act {
    let lesser = (0..tasks_max).rev().map(|n| claim_up_to(worker, n, salt)).collect();
    Act { lesser, ..claim_up_to(worker, tasks_max, salt) }
}

fn claim_up_to(worker: &WorkerId, tasks_max: usize, salt: u64) -> Act {
    let request = request(worker, tasks_max, salt);
    act(move |store| {
        let request = request.clone();
        async move { Ok(claimed(store.claim(request).await?)) }
    })
}

/// Claims a suspect.
pub(crate) fn claim_suspect(worker: &WorkerId, salt: u64) -> Act {
    let request = ClaimRequest { take: Take::Suspect, ..request(worker, 1, salt) };
    act(move |store| {
        let request = request.clone();
        async move { Ok(claimed(store.claim(request).await?)) }
    })
}

/// Claims one task, so many times in a row, by which queues are passed.
pub(crate) fn claim_again(worker: &WorkerId, n_times: u64) -> Act {
    let worker = worker.clone();
    act(move |store| {
        let worker = worker.clone();
        async move {
            let mut answers = Vec::new();
            for salt in 1..=n_times {
                answers.push(claimed(store.claim(request(&worker, 1, salt)).await?));
            }
            Ok(answers.join(", "))
        }
    })
}

fn request(worker: &WorkerId, tasks_max: usize, salt: u64) -> ClaimRequest {
    let (worker, crash_limit) = (worker.clone(), CRASH_LIMIT);
    ClaimRequest { worker, tasks_max, take: Take::Plain, crash_limit, salt }
}

fn claimed(answer: ClaimAnswer) -> String {
    match answer {
        ClaimAnswer::NotRegistered => "not registered".into(),
        ClaimAnswer::NoTrial => "no trial".into(),
        ClaimAnswer::Claimed { tasks: claimed, .. } => tasks(&claimed),
    }
}

fn tasks(tasks: &[ClaimedTask]) -> String {
    let task = |task: &ClaimedTask| {
        format!("{} {:?} for the {}.", task.run_id, task.claim.node, task.attempt)
    };
    format!("{:?}", tasks.iter().map(task).collect::<Vec<_>>())
}

pub(crate) fn commit(claim: ClaimRef, outcome: Outcome) -> Act {
    act(move |store| {
        let items = vec![CommitItem { claim, outcome: outcome.clone() }];
        async move { Ok(format!("{:?}", store.commit(items).await?)) }
    })
}

/// Completes a task while a worker offers to take what becomes ready. It may also leave that in
/// line.
pub(crate) fn complete_for(claim: ClaimRef, worker: &WorkerId, salt: u64) -> Act {
    let offer = Some((worker.clone(), salt));
    Act { lesser: vec![complete_and_take(claim, None)], ..complete_and_take(claim, offer) }
}

fn complete_and_take(claim: ClaimRef, offer: Option<(WorkerId, u64)>) -> Act {
    act(move |store| {
        let items = vec![CommitItem { claim, outcome: completed() }];
        let offer = offer.clone().map(|(worker, salt)| request(&worker, 3, salt));
        async move {
            let committed = store.commit_and_claim(items, offer).await?;
            let handed = tasks(&committed.handed_over.tasks);
            Ok(format!("{:?}, {handed}", committed.answers))
        }
    })
}

/// Starts a run while a worker offers to take its roots, or leaves them in line.
pub(crate) fn start_for(request: StartRequest, worker: &WorkerId, salt: u64) -> Act {
    let offer = Some((worker.clone(), salt));
    let lesser = vec![start_and_take(request.clone(), None)];
    Act { lesser, ..start_and_take(request, offer) }
}

fn start_and_take(start: StartRequest, offer: Option<(WorkerId, u64)>) -> Act {
    act(move |store| {
        let requests = vec![start.clone()];
        let offer = offer.clone().map(|(worker, salt)| request(&worker, 3, salt));
        async move {
            let started = store.start_and_claim(requests, offer).await?;
            Ok(format!("{:?}, {}", started.answers, tasks(&started.handed_over.tasks)))
        }
    })
}

pub(crate) fn complete(claim: ClaimRef) -> Act {
    commit(claim, completed())
}

pub(crate) fn cancel(run: RunKey) -> Act {
    act(move |store| async move {
        Ok(format!("{:?}", store.cancel(run, CancelRequest::by("a test")).await?))
    })
}

/// Cancels a run by force.
pub(crate) fn force(run: RunKey) -> Act {
    act(move |store| async move {
        let request = CancelRequest { force: true, ..CancelRequest::by("a test") };
        Ok(format!("{:?}", store.cancel(run, request).await?))
    })
}

pub(crate) fn signal(request: SignalRequest) -> Act {
    act(move |store| {
        let requests = vec![request.clone()];
        async move { Ok(format!("{:?}", store.signal(requests).await?)) }
    })
}

/// Stores memos of a running function.
pub(crate) fn remember(request: MemoRequest) -> Act {
    act(move |store| {
        let requests = vec![request.clone()];
        async move { Ok(format!("{:?}", store.store_memos(requests).await?)) }
    })
}

/// Lets a running function wait, and asks for news.
pub(crate) fn listen(request: ListenRequest) -> Act {
    act(move |store| {
        let requests = vec![request.clone()];
        async move { Ok(format!("{:?}", store.listen(requests).await?)) }
    })
}

/// Reads a run whole.
pub(crate) fn snapshot(run: RunKey) -> Act {
    act(move |store| async move { Ok(format!("{:?}", store.snapshot(run).await?)) })
}

pub(crate) fn heartbeat(worker: &WorkerId, claims: &[ClaimRef]) -> Act {
    let (worker, claims) = (worker.clone(), claims.to_vec());
    act(move |store| {
        let (worker, claims) = (worker.clone(), claims.clone());
        // Claims that it did not name differ in their tokens; the dump has them.
        async move {
            use stepwell::ports::HeartbeatAnswer::{Alive, Dead};
            Ok(match store.heartbeat(&worker, &claims).await? {
                Dead => "dead".into(),
                Alive { lost, unknown } => {
                    let unknown: Vec<_> = unknown.iter().map(|c| (c.run, c.node)).collect();
                    format!("alive, lost {lost:?}, unknown {unknown:?}")
                }
            })
        }
    })
}

pub(crate) fn reap(epoch: Epoch, request: ReapRequest) -> Act {
    act(move |store| {
        let request = request.clone();
        async move { Ok(format!("{:?}", store.reap(epoch, request).await?)) }
    })
}

pub(crate) fn reap_silently(epoch: Epoch, request: ReapRequest) -> Act {
    act(move |store| {
        let request = request.clone();
        async move { store.reap(epoch, request).await.map(|_| "reaped".to_owned()) }
    })
}

pub(crate) fn fire(epoch: Epoch) -> Act {
    act(move |store| async move { Ok(format!("{:?}", store.fire_timers(epoch, 100).await?)) })
}

pub(crate) fn register(registration: WorkerRegistration) -> Act {
    act(move |store| {
        let registration = registration.clone();
        async move { Ok(format!("{:?}", store.register_worker(registration).await?)) }
    })
}

pub(crate) fn deregister(worker: &WorkerId) -> Act {
    let worker = worker.clone();
    act(move |store| {
        let worker = worker.clone();
        async move { Ok(format!("{:?}", store.deregister_worker(&worker).await?)) }
    })
}

pub(crate) fn settle() -> Act {
    act(move |store| async move { Ok(format!("{:?}", store.settle_services().await?)) })
}

pub(crate) fn set_tenant(name: &'static str, settings: TenantSettings) -> Act {
    act(move |store| async move {
        Ok(format!("{:?}", store.set_tenant(&tenant(name), settings).await?))
    })
}

pub(crate) fn start(request: StartRequest) -> Act {
    act(move |store| {
        let requests = vec![request.clone()];
        async move { Ok(format!("{:?}", store.start(requests).await?)) }
    })
}
