//! A fleet of engines on one watched store, on virtual time and one thread.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use stepwell::ports::{Clock, Spawner};
use stepwell::testing::{CountedIds, ManualClock, ManualScheduler};
use stepwell::{Config, Engine, EngineBuilder};

use super::link::Link;
use super::steps::{Ledger, Seat};
use super::watch::Watch;

/// How long a worker of a fleet may be silent.
pub(crate) const LEASE: Duration = Duration::from_secs(30);

/// Registers the workflows that the engine of a seat knows.
pub(crate) type Equip = Box<dyn Fn(usize, &mut EngineBuilder<Seat>)>;

/// Engines in numbered seats. Whoever leaves a seat is replaced at once, as by a supervisor.
pub(crate) struct Fleet {
    pub(crate) clock: ManualClock,
    pub(crate) watch: Arc<Watch>,
    pub(crate) ledger: Ledger,
    scheduler: ManualScheduler,
    ids: Arc<CountedIds>,
    config: Config,
    equip: Equip,
    members: Vec<Member>,
    n_hired: usize,
}

struct Member {
    engine: Engine,
    process: ManualScheduler,
    link: Link,
    is_dead: Arc<AtomicBool>,
}

/// How often workers look for work that nobody hinted at.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Settings under which a lease passes in few wake-ups.
pub(crate) fn settings(slots: usize, crash_limit: u32) -> Config {
    Config {
        slots,
        crash_limit,
        lease: LEASE,
        heartbeat_interval: LEASE / 3,
        poll_interval: POLL_INTERVAL,
        leader_ttl: LEASE / 2,
        timer_interval: Duration::from_secs(5),
        ..Config::default()
    }
}

impl Fleet {
    pub(crate) fn new(
        (clock, watch): (ManualClock, Arc<Watch>),
        n_seats: usize,
        config: Config,
        equip: Equip,
    ) -> Self {
        let (scheduler, ids) = (ManualScheduler::new(), Arc::new(CountedIds::new(7)));
        let (ledger, members, n_hired) = (Ledger::default(), Vec::new(), 0);
        let mut fleet =
            Self { clock, watch, ledger, scheduler, ids, config, equip, members, n_hired };
        for seat in 0..n_seats {
            let member = fleet.hire(seat);
            fleet.members.push(member);
        }
        fleet
    }

    /// The number of a seat, from any number.
    pub(crate) fn seat(&self, pick: usize) -> usize {
        pick % self.members.len()
    }

    pub(crate) fn engine(&self, seat: usize) -> &Engine {
        &self.members[seat].engine
    }

    pub(crate) fn link(&self, seat: usize) -> &Link {
        &self.members[seat].link
    }

    pub(crate) fn n_seats(&self) -> usize {
        self.members.len()
    }

    fn hire(&mut self, seat: usize) -> Member {
        self.n_hired += 1;
        let name = format!("worker-{}", self.n_hired);
        let (process, link) = (self.scheduler.group(), Link::new(&self.watch));
        let (is_dead, ledger) = (Arc::<AtomicBool>::default(), self.ledger.clone());
        let state = Seat {
            clock: self.clock.clone(),
            ledger,
            process: process.clone(),
            is_dead: Arc::clone(&is_dead),
        };
        let runtime = (Arc::new(self.clock.clone()), Arc::new(process.clone()));
        let mut builder = Engine::builder(link.clone())
            .config(self.config.clone())
            .worker_id(&name)
            .runtime(runtime.0, runtime.1, Arc::<CountedIds>::clone(&self.ids))
            .state(state);
        (self.equip)(seat, &mut builder);
        let engine = self.drive(builder.start()).expect("the plan is well formed");
        Member { engine, process, link, is_dead }
    }

    /// Kills the process in a seat where it stands; another one takes the seat.
    pub(crate) fn crash(&mut self, seat: usize) {
        self.members[seat].process.kill();
        self.replace(seat);
    }

    fn replace(&mut self, seat: usize) {
        self.members[seat] = self.hire(seat);
    }

    /// Whether a step has taken its process down.
    pub(crate) fn has_dead(&self) -> bool {
        self.members.iter().any(|member| member.is_dead.load(Ordering::Acquire))
    }

    /// Puts fresh engines into the seats of those that a step took down; says how many.
    pub(crate) fn replace_dead(&mut self) -> usize {
        let is_dead = |seat: &usize| self.members[*seat].is_dead.load(Ordering::Acquire);
        let dead: Vec<usize> = (0..self.members.len()).filter(is_dead).collect();
        for seat in &dead {
            self.replace(*seat);
        }
        dead.len()
    }

    /// Stops the engine in a seat in good order, while another one takes the seat.
    pub(crate) fn stop(&mut self, seat: usize, grace: Duration) {
        let engine = self.members[seat].engine.clone();
        self.scheduler.spawn(Box::pin(async move {
            engine.stop(grace).await;
        }));
        self.replace(seat);
    }

    /// Does something beside everything else, without waiting for its end.
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.scheduler.spawn(Box::pin(future));
    }

    /// Waits for something that ends without time moving on.
    pub(crate) fn drive<F>(&self, future: F) -> F::Output
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let slot = Arc::new(Mutex::new(None));
        let filled = Arc::clone(&slot);
        self.spawn(async move {
            let output = future.await;
            *filled.lock().expect("no holder of the lock panics") = Some(output);
        });
        self.scheduler.run_until_idle();
        let output = slot.lock().expect("no holder of the lock panics").take();
        output.expect("it ends at this moment of time")
    }

    /// Lets everything that is ready take so many turns.
    pub(crate) fn cycles(&self, n: usize) {
        for _ in 0..n {
            self.scheduler.run_cycle();
        }
    }

    /// Moves time on, stopping wherever something wakes.
    pub(crate) fn advance(&self, span: Duration) {
        let target = self.clock.elapsed() + span;
        self.until(span, || false);
        self.clock.advance(target.saturating_sub(self.clock.elapsed()));
        self.scheduler.run_until_idle();
    }

    /// Runs until something is done, for so long at most. Says whether it was.
    pub(crate) fn until(&self, span_max: Duration, is_done: impl Fn() -> bool) -> bool {
        let target = self.clock.elapsed() + span_max;
        loop {
            self.scheduler.run_until_idle();
            if is_done() {
                return true;
            }
            let left = target.saturating_sub(self.clock.elapsed());
            match self.clock.next_wake() {
                Some(next) if next <= left => self.clock.advance(next),
                _ => return false,
            }
        }
    }

    /// Runs until all runs have ended (T1).
    pub(crate) fn to_end(&self, span_max: Duration) {
        let n_open = || self.watch.store.n_open_runs();
        let is_done = self.until(span_max, || n_open() == 0);
        assert!(is_done, "{} runs are open after {span_max:?}:\n{}", n_open(), self.open_tasks());
    }

    fn open_tasks(&self) -> String {
        let dump = self.watch.dump();
        let mut open = Vec::new();
        for (run, tasks) in &dump.tasks {
            for task in tasks.iter().filter(|task| !task.state().is_terminal()) {
                let place = dump.places.get(&(*run, task.node));
                open.push(format!("{run} {task:?} at {place:?}"));
            }
        }
        open.truncate(20);
        open.join("\n")
    }
}
