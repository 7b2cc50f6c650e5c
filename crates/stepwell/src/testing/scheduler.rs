//! A scheduler that runs everything on the caller's thread, in a fixed order, when it is told.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use crate::ports::{BoxFuture, Spawner};

/// Runs tasks one at a time on the caller's thread, in the order they became ready. Clones share
/// one scheduler; [`ManualScheduler::group`] makes a handle whose tasks can be killed together.
#[derive(Clone)]
pub struct ManualScheduler {
    shared: Arc<Shared>,
    group: u64,
}

struct Shared {
    tasks: Mutex<Tasks>,
    ready: Arc<Ready>,
}

#[derive(Default)]
struct Tasks {
    by_id: BTreeMap<u64, Task>,
    last_id: u64,
    last_group: u64,
    /// A group killed while one of its tasks was being polled.
    killed: Vec<u64>,
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
        let shared = Shared { tasks: Mutex::default(), ready: Arc::default() };
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
        while let Some(id) = { self.ready().pop_front() } {
            self.poll(id);
        }
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
        if poll.is_pending() && !tasks.killed.contains(&task.group) {
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
        if tasks.killed.contains(&self.group) {
            return;
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

    /// There is one thread, so the closure runs on it at once.
    fn spawn_blocking(&self, closure: Box<dyn FnOnce() + Send + 'static>) {
        closure();
    }

    fn block_on(&self, mut future: BoxFuture<()>) {
        let waker = Waker::noop();
        let poll = future.as_mut().poll(&mut Context::from_waker(waker));
        assert!(
            poll == Poll::Ready(()),
            "a blocking step waits for something that cannot happen on its own thread"
        );
    }
}

impl std::fmt::Debug for ManualScheduler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ManualScheduler").field("group", &self.group).finish_non_exhaustive()
    }
}
