//! What the engines of one test share: time, thread, ids and store.
//!
//! Virtual time moves only when nothing can happen at the present moment: no task is ready, and no
//! step waits for anything outside. Calls of the store need no rule of their own, since none
//! outlasts the poll that makes it.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::time::Duration;

use futures_util::FutureExt;
use stepwell_core::code::Code;

use super::activity::Activity;
use super::awaited_store::AwaitedStore;
use super::blocking_call::BlockingCall;
use super::driver::{Driver, Goal, Outcome};
use super::executions::{Execution, Executions};
use super::hope::Hope;
use super::stuck::{self, Stuck};
use super::{CountedIds, ManualClock, ManualScheduler};
use crate::api::blocking::BlockOn;
use crate::error::Error;
use crate::ports::{BoxFuture, Clock, DynStore, Spawner};

/// What the engines of one test share.
pub(super) struct TestRuntime {
    pub(super) world: Arc<World>,
    driver: Driver,
    /// What must live as long as the store, such as its database.
    _kept: Box<dyn Any + Send + Sync>,
}

/// What the driving thread works on.
pub(super) struct World {
    pub(super) clock: ManualClock,
    pub(super) scheduler: ManualScheduler,
    pub(super) store: AwaitedStore,
    pub(super) ids: Arc<CountedIds>,
    pub(super) executions: Executions,
    /// Futures that have ended, and who waits to hear of it.
    ended: Mutex<Vec<(mpsc::Sender<Outcome>, Outcome)>>,
    activity: Activity,
}

impl TestRuntime {
    pub(super) fn new(store: DynStore, clock: ManualClock, kept: impl Any + Send + Sync) -> Self {
        let activity = Activity::new();
        let driver = Driver::start(activity.clone());
        let world = Arc::new(World {
            clock,
            scheduler: ManualScheduler::new(),
            store: AwaitedStore::new(store, driver.reactor(), activity.clone()),
            ids: Arc::new(CountedIds::new(0)),
            executions: Executions::new(activity.clone()),
            ended: Mutex::default(),
            activity,
        });
        Self { world, driver, _kept: Box::new(kept) }
    }

    /// Reaches a goal on the driving thread.
    pub(super) fn reach(
        &self,
        goal: impl FnOnce(&World) -> Result<(), Stuck> + Send + 'static,
    ) -> Result<(), Stuck> {
        let world = Arc::clone(&self.world);
        self.ask(Box::new(move || goal(&world)), mpsc::channel())
    }

    /// Waits for a future, at the present moment or wherever `how` moves time to.
    pub(super) fn wait_for(
        &self,
        future: BoxFuture<()>,
        how: fn(&World, &AtomicBool) -> Result<(), Stuck>,
    ) -> Result<(), Stuck> {
        let (answer_to, answer) = mpsc::channel();
        let is_done = Arc::new(AtomicBool::new(false));
        let (flag, told) = (Arc::clone(&is_done), answer_to.clone());
        let world = Arc::clone(&self.world);
        // Another thread may be waiting already; then its goal drives this future as well.
        self.world.scheduler.spawn(Box::pin(async move {
            let outcome = AssertUnwindSafe(future).catch_unwind().await;
            flag.store(true, Ordering::Release);
            world.ended().push((told, outcome.map(Ok)));
        }));
        let world = Arc::clone(&self.world);
        self.ask(Box::new(move || how(&world, &is_done)), (answer_to, answer))
    }

    fn ask(
        &self,
        goal: Goal,
        answer: (mpsc::Sender<Outcome>, mpsc::Receiver<Outcome>),
    ) -> Result<(), Stuck> {
        self.driver.reach(goal, answer, self.world.scheduler.real_time_max())
    }
}

impl Drop for TestRuntime {
    fn drop(&mut self) {
        self.world.scheduler.close();
    }
}

impl BlockOn for TestRuntime {
    fn check(&self) -> Result<(), Error> {
        if Driver::is_current() {
            let message = "a call that waits was made by an async step or by the future given to \
                           `drive`; use `as_async` there";
            return Err(Error::refused(Code::BlockingInAsync, message));
        }
        Ok(())
    }

    /// Waits at the current moment of virtual time.
    fn block_on(&self, future: BoxFuture<()>) -> Result<(), Stuck> {
        if BlockingCall::current().is_some() {
            // A blocking step: the driver is at work, and waits for this thread.
            self.world.scheduler.block_on(future);
            return Ok(());
        }
        self.wait_for(future, World::wait_now)
    }
}

/// For how long the executions of one goal were waited for, by the real clock.
#[derive(Default)]
struct Round {
    since: BTreeMap<u64, Duration>,
    n_polls: BTreeMap<u64, u64>,
}

/// How many tasks are polled between two looks for a step that is never idle.
const POLLS_MAX: usize = 1_000;

impl World {
    pub(super) fn run_cycle(&self) -> bool {
        self.scheduler.run_cycle()
    }

    pub(super) fn run_until_idle(&self) -> Result<(), Stuck> {
        self.settle(&mut Round::default(), &|| false)
    }

    /// Waits until the flag is set, while time stands still.
    pub(super) fn wait_now(&self, is_done: &AtomicBool) -> Result<(), Stuck> {
        let is_done = || is_done.load(Ordering::Acquire);
        self.settle(&mut Round::default(), &is_done)?;
        if is_done() {
            return Ok(());
        }
        let (next_due, steps) = (Hope::next_due(self)?, self.executions.all());
        match given_up(steps.clone()) {
            held if held.is_empty() => Err(stuck::at_this_moment(next_due, &steps)),
            held => Err(stuck::never_end(&held, self.scheduler.real_time_max())),
        }
    }

    /// Waits until the flag is set, moving time on whenever nothing else is left to do.
    pub(super) fn wait_in_time(&self, is_done: &AtomicBool) -> Result<(), Stuck> {
        let is_done = || is_done.load(Ordering::Acquire);
        let mut round = Round::default();
        loop {
            self.settle(&mut round, &is_done)?;
            if is_done() {
                return Ok(());
            }
            let next = self.clock.next_wake().ok_or_else(stuck::no_wake_up)?;
            self.clock.advance(next);
        }
    }

    /// Moves time on, stopping wherever something wakes.
    pub(super) fn advance(&self, span: Duration) -> Result<(), Stuck> {
        let target = self.clock.elapsed().saturating_add(span);
        let mut round = Round::default();
        loop {
            self.settle(&mut round, &|| false)?;
            let left = target.saturating_sub(self.clock.elapsed());
            match self.clock.next_wake() {
                Some(next) if next <= left => self.clock.advance(next),
                _ => break self.clock.advance(left),
            }
        }
        self.settle(&mut round, &|| false)
    }

    /// Runs until all runs have ended, jumping to the next wake-up whenever nothing is left to do.
    pub(super) fn run_to_end(&self) -> Result<(), Stuck> {
        let (mut round, mut hope) = (Round::default(), Hope::default());
        loop {
            self.settle(&mut round, &|| false)?;
            if hope.is_fulfilled(self)? {
                return Ok(());
            }
            let mut held = given_up(self.executions.all());
            held.retain(|step| !step.has_timeout && !step.sleeps(&self.clock));
            if !held.is_empty() {
                return Err(stuck::never_end(&held, self.scheduler.real_time_max()));
            }
            match self.clock.next_wake().filter(|_| hope.is_left(self)) {
                Some(next) => self.clock.advance(next),
                None => return Err(stuck::for_ever(&hope.n_open(), &self.executions.all())),
            }
        }
    }

    /// Runs until nothing happens any more at this moment, or the goal is reached. What steps wait
    /// for outside is waited for, though not for longer than a step may take.
    fn settle(&self, round: &mut Round, is_done: &dyn Fn() -> bool) -> Result<(), Stuck> {
        loop {
            self.run_ready(round)?;
            // Not earlier: a test goes on when everybody has done what there is to do.
            for (answer_to, outcome) in self.ended().drain(..) {
                // Who asked may have gone.
                let _ = answer_to.send(outcome);
            }
            if is_done() {
                return Ok(());
            }
            let waiting = self.executions.all().into_iter().filter(|step| step.waits_outside());
            let waiting: Vec<Arc<Execution>> = waiting.collect();
            // A step that was woken between the two looks is ready by now.
            if self.scheduler.has_ready() {
                continue;
            }
            match self.time_left(round, &waiting) {
                Some(left) => drop(self.scheduler.wait_for_outside(left)),
                None => return Ok(()),
            }
        }
    }

    fn ended(&self) -> MutexGuard<'_, Vec<(mpsc::Sender<Outcome>, Outcome)>> {
        self.ended.lock().expect("no holder of the lock panics")
    }

    fn run_ready(&self, round: &mut Round) -> Result<(), Stuck> {
        let mut n_polls = 0;
        while self.scheduler.run_next() {
            n_polls += 1;
            if n_polls % POLLS_MAX == 0 {
                self.check_busy(round)?;
            }
        }
        Ok(())
    }

    /// Finds a step that is polled again and again for longer than a step may take.
    fn check_busy(&self, round: &mut Round) -> Result<(), Stuck> {
        let (now, real_time_max) = (self.activity.elapsed(), self.scheduler.real_time_max());
        for execution in self.executions.all() {
            let since = *round.since.entry(execution.id).or_insert(now);
            let n_polls = round.n_polls.insert(execution.id, execution.n_polls());
            let is_busy = n_polls.is_some_and(|before| before < execution.n_polls());
            if is_busy && now.saturating_sub(since) >= real_time_max {
                return Err(stuck::never_end(&[execution], real_time_max));
            }
        }
        Ok(())
    }

    /// How long to wait for these at most; `None` if there is nothing to wait for.
    fn time_left(&self, round: &mut Round, waiting: &[Arc<Execution>]) -> Option<Duration> {
        let (now, real_time_max) = (self.activity.elapsed(), self.scheduler.real_time_max());
        let mut longest = None;
        for execution in waiting.iter().filter(|execution| !execution.is_given_up()) {
            let since = *round.since.entry(execution.id).or_insert(now);
            let left = real_time_max.saturating_sub(now.saturating_sub(since));
            if left.is_zero() {
                execution.give_up();
            } else {
                longest = longest.max(Some(left));
            }
        }
        longest
    }
}

/// Those that wait for something outside and were waited for in vain.
fn given_up(mut executions: Vec<Arc<Execution>>) -> Vec<Arc<Execution>> {
    executions.retain(|execution| execution.is_given_up() && execution.waits_outside());
    executions
}
