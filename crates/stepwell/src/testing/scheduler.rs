//! A scheduler that polls everything on one thread, in a fixed order, when it is told.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use super::blocking_call::BlockingCall;
use super::waits::{InnerWait, inner_waker, poll_step};
use crate::ports::{BoxFuture, NoThread, Spawner};

/// How much real time a test gives to what it cannot move itself, unless it says otherwise.
const REAL_TIME_MAX: Duration = Duration::from_secs(10);

/// Runs tasks one at a time on the caller's thread, in the order they became ready. Blocking
/// closures have threads, and take turns with the tasks. Clones share one scheduler;
/// [`ManualScheduler::group`] makes a handle whose tasks can be killed together.
#[derive(Clone)]
pub struct ManualScheduler {
    shared: Arc<Shared>,
    group: u64,
}

struct Shared {
    tasks: Mutex<Tasks>,
    ready: Arc<Ready>,
    real_time_max: Mutex<Duration>,
}

#[derive(Default)]
struct Tasks {
    by_id: BTreeMap<u64, Task>,
    last_id: u64,
    last_group: u64,
    /// Groups that were killed, perhaps while one of their tasks was being polled.
    killed: Vec<u64>,
    /// Nothing is spawned any more.
    is_closed: bool,
}

struct Task {
    group: u64,
    future: BoxFuture<()>,
    waker: Arc<TaskWaker>,
}

/// Tasks that can be polled, in order.
#[derive(Default)]
struct Ready {
    ids: Mutex<VecDeque<u64>>,
    woken: Condvar,
}

struct TaskWaker {
    id: u64,
    is_queued: AtomicBool,
    ready: Arc<Ready>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        if !self.is_queued.swap(true, Ordering::AcqRel) {
            self.ready.ids.lock().expect("no holder of the lock panics").push_back(self.id);
            self.ready.woken.notify_all();
        }
    }
}

impl Default for ManualScheduler {
    fn default() -> Self {
        let (tasks, ready) = (Mutex::default(), Arc::default());
        let shared = Shared { tasks, ready, real_time_max: Mutex::new(REAL_TIME_MAX) };
        Self { shared: Arc::new(shared), group: 0 }
    }
}

impl ManualScheduler {
    /// A scheduler without tasks.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A handle on the same scheduler whose tasks form a group of their own.
    #[must_use]
    pub fn group(&self) -> Self {
        let mut tasks = self.tasks();
        tasks.last_group += 1;
        Self { shared: Arc::clone(&self.shared), group: tasks.last_group }
    }

    /// Drops all tasks of this handle's group where they stand, as a crash would.
    pub fn kill(&self) {
        let mut tasks = self.tasks();
        tasks.killed.push(self.group);
        let group = self.group;
        let dead: Vec<u64> =
            tasks.by_id.iter().filter(|(_, t)| t.group == group).map(|(id, _)| *id).collect();
        let dead: Vec<Task> = dead.iter().filter_map(|id| tasks.by_id.remove(id)).collect();
        // Dropping a future may wake others, which takes locks again.
        drop(tasks);
        drop(dead);
    }

    /// Drops all tasks of all groups, and whatever is spawned afterwards. Tasks hold what spawned
    /// them, so without this none of it would ever be freed.
    pub(super) fn close(&self) {
        let mut tasks = self.tasks();
        tasks.is_closed = true;
        let dead = std::mem::take(&mut tasks.by_id);
        drop(tasks);
        drop(dead);
    }

    /// How much real time blocking closures get before others go on without them.
    pub(super) fn real_time_max(&self) -> Duration {
        *self.shared.real_time_max.lock().expect("no holder of the lock panics")
    }

    pub(super) fn set_real_time_max(&self, span: Duration) {
        *self.shared.real_time_max.lock().expect("no holder of the lock panics") = span;
    }

    /// Polls each task that is ready now once. Says whether there was any.
    pub fn run_cycle(&self) -> bool {
        let now: Vec<u64> = self.ready().drain(..).collect();
        for id in &now {
            self.poll(*id);
        }
        !now.is_empty()
    }

    /// Polls until nothing is ready.
    pub fn run_until_idle(&self) {
        while self.run_next() {}
    }

    /// Polls the task that has been ready for longest. Says whether there was any.
    pub(super) fn run_next(&self) -> bool {
        let Some(id) = ({ self.ready().pop_front() }) else { return false };
        self.poll(id);
        true
    }

    /// Whether a task can be polled.
    pub(super) fn has_ready(&self) -> bool {
        !self.ready().is_empty()
    }

    /// Waits in real time until something outside, such as a socket, makes a task ready. Says
    /// whether that happened.
    #[must_use]
    pub fn wait_for_outside(&self, patience: Duration) -> bool {
        let ready = self.ready();
        let waited = self.shared.ready.woken.wait_timeout_while(ready, patience, |r| r.is_empty());
        let (ready, _) = waited.expect("no holder of the lock panics");
        !ready.is_empty()
    }

    fn poll(&self, id: u64) {
        let Some(mut task) = self.tasks().by_id.remove(&id) else { return };
        task.waker.is_queued.store(false, Ordering::Release);
        let waker = Waker::from(Arc::clone(&task.waker));
        let poll = task.future.as_mut().poll(&mut Context::from_waker(&waker));
        let mut tasks = self.tasks();
        if poll.is_pending() && !tasks.is_dead(task.group) {
            tasks.by_id.insert(id, task);
        } else {
            // A finished future is dropped without the lock, as it may wake others.
            drop(tasks);
            drop(task);
        }
    }

    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        self.shared.tasks.lock().expect("no holder of the lock panics")
    }

    fn ready(&self) -> MutexGuard<'_, VecDeque<u64>> {
        self.shared.ready.ids.lock().expect("no holder of the lock panics")
    }
}

impl Spawner for ManualScheduler {
    fn spawn(&self, future: BoxFuture<()>) {
        let mut tasks = self.tasks();
        if tasks.is_dead(self.group) {
            // Dropping a future may wake others, which takes locks again.
            drop(tasks);
            return drop(future);
        }
        tasks.last_id += 1;
        let id = tasks.last_id;
        let ready = Arc::clone(&self.shared.ready);
        let waker = Arc::new(TaskWaker { id, is_queued: AtomicBool::new(false), ready });
        let task = Task { group: self.group, future, waker: Arc::clone(&waker) };
        tasks.by_id.insert(id, task);
        drop(tasks);
        waker.wake();
    }

    fn spawn_apart(&self, _name: &str, future: BoxFuture<()>) {
        self.spawn(future);
    }

    /// Runs the closure at once, and goes on when it has ended or waits for a future.
    fn spawn_blocking(&self, closure: Box<dyn FnOnce() + Send + 'static>) -> Result<(), NoThread> {
        BlockingCall::start(closure, self.real_time_max())
    }

    /// Waits while everything else goes on: driven by whoever drives the scheduler if the caller
    /// is a blocking closure, and by the caller if it is not.
    fn block_on(&self, future: BoxFuture<()>) {
        let Some(call) = BlockingCall::current() else { return self.drive(future) };
        let span = self.real_time_max();
        call.wait_for(|answer| {
            self.spawn(Box::pin(async move {
                future.await;
                answer.give(span);
            }));
        });
    }

    fn engine_waker(&self, cx: &Context<'_>) -> Waker {
        inner_waker(cx)
    }

    fn poll_step(
        &self,
        cx: &Context<'_>,
        waker_from: &dyn Fn(&Waker) -> Waker,
        poll: &mut dyn FnMut(&mut Context<'_>),
    ) {
        poll_step(cx, waker_from, poll);
    }

    fn engine_wait(&self, future: BoxFuture<()>) -> BoxFuture<()> {
        Box::pin(InnerWait(future))
    }
}

impl ManualScheduler {
    /// Drives everything until a future has ended.
    fn drive(&self, future: BoxFuture<()>) {
        let ended = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&ended);
        self.spawn(Box::pin(async move {
            future.await;
            flag.store(true, Ordering::Release);
        }));
        loop {
            self.run_until_idle();
            if ended.load(Ordering::Acquire) {
                return;
            }
            assert!(
                self.wait_for_outside(self.real_time_max()),
                "nothing happens any more, and the future has not ended"
            );
        }
    }
}

impl Tasks {
    fn is_dead(&self, group: u64) -> bool {
        self.is_closed || self.killed.contains(&group)
    }
}

impl std::fmt::Debug for ManualScheduler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ManualScheduler").field("group", &self.group).finish_non_exhaustive()
    }
}
