//! What the engines of one test share: time, thread, ids and store.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use super::{CountedIds, ManualClock, ManualScheduler};
use crate::api::Engine;
use crate::api::blocking::BlockOn;
use crate::error::Error;
use crate::outbound::memory::MemoryStore;
use crate::ports::{BoxFuture, Clock, Spawner};

/// How long a step may wait for something outside, such as a socket, in real time.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the engines of one test share.
pub(super) struct Bed {
    pub(super) clock: ManualClock,
    pub(super) scheduler: ManualScheduler,
    pub(super) store: MemoryStore,
    pub(super) ids: Arc<CountedIds>,
    engines: Mutex<Vec<Engine>>,
    /// Steps may use tokio's timers and sockets. They need a reactor, which has a thread of its
    /// own; the engine and the steps stay on the caller's.
    reactor: Option<Runtime>,
}

impl Bed {
    pub(super) fn new(seed: u64) -> Self {
        let clock = ManualClock::new();
        let reactor = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        Self {
            store: MemoryStore::with_clock(Arc::new(clock.clone())),
            clock,
            scheduler: ManualScheduler::new(),
            ids: Arc::new(CountedIds::new(seed)),
            engines: Mutex::default(),
            reactor: Some(reactor.expect("a test machine has a thread to spare")),
        }
    }

    pub(super) fn add(&self, engine: Engine) {
        self.engines().push(engine);
    }

    /// Forgets an engine that crashed: what it held will never move again.
    pub(super) fn forget(&self, crashed: &Engine) {
        self.engines().retain(|engine| engine.worker_id() != crashed.worker_id());
    }

    /// How many steps are being executed right now.
    pub(super) fn n_running(&self) -> usize {
        self.engines().iter().map(Engine::n_running).sum()
    }

    fn engines(&self) -> MutexGuard<'_, Vec<Engine>> {
        self.engines.lock().expect("no holder of the lock panics")
    }

    fn enter(&self) -> Option<tokio::runtime::EnterGuard<'_>> {
        self.reactor.as_ref().map(Runtime::enter)
    }

    pub(super) fn run_cycle(&self) -> bool {
        let _guard = self.enter();
        self.scheduler.run_cycle()
    }

    pub(super) fn run_until_idle(&self) {
        let _guard = self.enter();
        self.scheduler.run_until_idle();
    }

    /// Moves time on, stopping wherever something wakes.
    pub(super) fn advance(&self, span: Duration) {
        let target = self.clock.elapsed().saturating_add(span);
        loop {
            self.run_until_idle();
            let left = target.saturating_sub(self.clock.elapsed());
            match self.clock.next_wake() {
                Some(next) if next <= left => self.clock.advance(next),
                _ => break self.clock.advance(left),
            }
        }
        self.run_until_idle();
    }

    /// Runs everything until `is_done`, jumping to the next wake-up whenever nothing is left to
    /// do. Gives up, and says so, when nothing could ever happen any more.
    pub(super) fn jump_until(&self, is_done: impl Fn() -> bool) -> bool {
        loop {
            self.settle();
            if is_done() {
                return true;
            }
            let next_due = self.store.next_due().map(|due| due.since(self.clock.now()));
            let next_wake = self.clock.next_wake();
            let next = match (next_due, next_wake) {
                // With a step at work its time-out may be next; with a claim of a dead engine,
                // the end of its lease.
                (_, Some(wake)) if self.store.n_claims() > 0 => wake,
                // What is due already waits for the leader to wake.
                (Some(due), Some(wake)) if due.is_zero() => wake,
                (Some(due), Some(wake)) => due.min(wake),
                _ => return false,
            };
            self.clock.advance(next);
        }
    }

    /// Runs until idle, and gives steps that wait for something outside a little real time.
    fn settle(&self) {
        self.run_until_idle();
        while self.n_running() > 0 && self.scheduler.wait_for_outside(PATIENCE) {
            self.run_until_idle();
        }
    }

    fn spawn_flagged(&self, future: BoxFuture<()>) -> Arc<Mutex<bool>> {
        let done = Arc::new(Mutex::new(false));
        let flag = Arc::clone(&done);
        self.scheduler.spawn(Box::pin(async move {
            future.await;
            *flag.lock().expect("no holder of the lock panics") = true;
        }));
        done
    }

    /// Waits for a future, moving time on whenever nothing else is left to do.
    pub(super) fn wait_in_time(&self, future: BoxFuture<()>) {
        let done = self.spawn_flagged(future);
        let is_done = || *done.lock().expect("no holder of the lock panics");
        loop {
            self.run_until_idle();
            match self.clock.next_wake() {
                _ if is_done() => return,
                Some(next) => self.clock.advance(next),
                None => panic!("the future waits for something that will never happen"),
            }
        }
    }
}

impl BlockOn for Bed {
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Waits at the current moment of virtual time.
    fn block_on(&self, future: BoxFuture<()>) {
        let done = self.spawn_flagged(future);
        loop {
            self.run_until_idle();
            if *done.lock().expect("no holder of the lock panics") {
                return;
            }
            assert!(
                self.scheduler.wait_for_outside(PATIENCE),
                "nothing more happens at this moment of virtual time; the next timer is due in \
                 {:?}. Use `advance`, `advance_to` or `run_to_end` to move time on first",
                self.store.next_due().map(|due| due.since(self.clock.now())),
            );
        }
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        if let Some(reactor) = self.reactor.take() {
            // Dropping a runtime waits for its threads, which is refused in async tests.
            reactor.shutdown_background();
        }
    }
}
