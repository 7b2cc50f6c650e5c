//! The steps that are being executed, and what they wait for.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

use super::activity::Activity;
use super::blocking_call::BlockingCall;
use super::manual_clock::ManualClock;
use super::waits::Probe;
use crate::engine::{StepFn, TaskContext};
use crate::ports::{BoxFuture, ClaimRef};

/// The steps that are being executed. Clones share one list.
#[derive(Clone)]
pub(super) struct Executions {
    by_id: Arc<Mutex<BTreeMap<u64, Arc<Execution>>>>,
    last_id: Arc<AtomicU64>,
    activity: Activity,
}

/// One execution of user code.
pub(super) struct Execution {
    pub(super) id: u64,
    /// What to call it in a message.
    pub(super) name: Arc<str>,
    pub(super) has_timeout: bool,
    /// Absent for code of the test itself.
    task: Option<Arc<TaskContext>>,
    code: RunningCode,
    /// Whether it was waited for in vain, and has not moved since.
    given_up: AtomicBool,
    n_polls: AtomicU64,
}

enum RunningCode {
    Async(Arc<Probe>),
    Blocking(Option<Arc<BlockingCall>>),
}

/// The list and the polled future have a handle on the probe each.
const N_OWN_PROBES: usize = 2;

impl Executions {
    pub(super) fn new(activity: Activity) -> Self {
        Self { by_id: Arc::default(), last_id: Arc::default(), activity }
    }

    /// The same code, seen while it is executed.
    pub(super) fn observe(&self, code: StepFn) -> StepFn {
        let executions = self.clone();
        match code {
            StepFn::Async(code) => StepFn::Async(Arc::new(move |args| {
                let task = Arc::clone(&args.context);
                executions.observe_future(Some(task), code(args))
            })),
            StepFn::Blocking(code) => StepFn::Blocking(Arc::new(move |args| {
                let call = RunningCode::Blocking(BlockingCall::current());
                let _listed = executions.begin(Some(Arc::clone(&args.context)), call);
                code(args)
            })),
            code @ (StepFn::Sleep | StepFn::Wait(_)) => code,
        }
    }

    /// The same future, seen while it runs. Without a task it is the test's own.
    pub(super) fn observe_future<T: 'static>(
        &self,
        task: Option<Arc<TaskContext>>,
        future: BoxFuture<T>,
    ) -> BoxFuture<T> {
        let probe = Probe::new();
        let listed = self.begin(task, RunningCode::Async(Arc::clone(&probe)));
        Box::pin(Observed { future, probe, listed })
    }

    fn begin(&self, task: Option<Arc<TaskContext>>, code: RunningCode) -> Listed {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed);
        let policy = task.as_ref().and_then(|task| task.workflow.policy(task.claim.node));
        let has_timeout = policy
            .is_some_and(|policy| policy.timeout.is_some() || policy.heartbeat_timeout.is_some());
        let execution = Arc::new(Execution {
            id,
            name: task.as_deref().map_or_else(|| "the future given to `drive`".into(), name),
            has_timeout,
            task,
            code,
            given_up: AtomicBool::new(false),
            n_polls: AtomicU64::new(0),
        });
        self.by_id().insert(id, Arc::clone(&execution));
        Listed { execution, executions: self.clone() }
    }

    /// All of them, oldest first.
    pub(super) fn all(&self) -> Vec<Arc<Execution>> {
        self.by_id().values().cloned().collect()
    }

    fn by_id(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Execution>>> {
        self.by_id.lock().expect("no holder of the lock panics")
    }
}

fn name(task: &TaskContext) -> Arc<str> {
    let (step, run, workflow) =
        (task.step(), task.run_id.as_str(), &task.workflow.declared.workflow);
    format!("step {step:?} of run {run:?} (workflow {workflow:?})").into()
}

impl Execution {
    /// The claim that it runs under; absent for code of the test itself.
    pub(super) fn claim(&self) -> Option<ClaimRef> {
        self.task.as_ref().map(|task| task.claim)
    }

    /// Whether it is a function that waits for nothing but the engine.
    fn waits_for_engine(&self) -> bool {
        self.task.as_ref().is_some_and(|task| task.waits_for_engine())
    }

    /// Whether something outside the test may move it on.
    pub(super) fn waits_outside(&self) -> bool {
        match &self.code {
            RunningCode::Async(probe) => {
                !self.waits_for_engine() && probe.is_held_outside(N_OWN_PROBES)
            }
            RunningCode::Blocking(call) => call.as_ref().is_none_or(|call| call.is_running()),
        }
    }

    /// Whether it was waited for in vain, and has not moved since.
    pub(super) fn is_given_up(&self) -> bool {
        let is_overdue = match &self.code {
            RunningCode::Async(_) => false,
            RunningCode::Blocking(call) => call.as_ref().is_some_and(|call| call.is_overdue()),
        };
        is_overdue || self.given_up.load(Ordering::Relaxed)
    }

    pub(super) fn give_up(&self) {
        if !self.given_up.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                name = &*self.name,
                "waits for something outside, time goes on without it"
            );
        }
    }

    /// Whether it sleeps until a moment of virtual time, that of its time-out perhaps.
    pub(super) fn sleeps(&self, clock: &ManualClock) -> bool {
        match &self.code {
            // The worker sleeps for a function that waits.
            RunningCode::Async(probe) => {
                self.waits_for_engine() || probe.inner_wakers().iter().any(|w| clock.will_wake(w))
            }
            RunningCode::Blocking(_) => self.waits_for_engine(),
        }
    }

    /// How often its code was polled.
    pub(super) fn n_polls(&self) -> u64 {
        self.n_polls.load(Ordering::Relaxed)
    }
}

/// Keeps an execution on the list.
struct Listed {
    execution: Arc<Execution>,
    executions: Executions,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.executions.by_id().remove(&self.execution.id);
    }
}

struct Observed<T> {
    future: BoxFuture<T>,
    probe: Arc<Probe>,
    listed: Listed,
}

impl<T> Future for Observed<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let Self { future, probe, listed } = self.get_mut();
        let Listed { execution, executions } = listed;
        execution.given_up.store(false, Ordering::Relaxed);
        execution.n_polls.fetch_add(1, Ordering::Relaxed);
        let _doing = executions.activity.begin(&execution.name);
        probe.poll(future.as_mut(), cx)
    }
}
