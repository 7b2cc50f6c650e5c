//! An engine on virtual time, for tests of workflows.

use std::future::Future;
use std::ops::Deref;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use stepwell_core::time::Timestamp;

use super::runtime::{TestRuntime, World};
use super::stuck::Stuck;
use super::{ManualClock, ManualScheduler, TestEngineBuilder};
use crate::api::Engine;
use crate::api::blocking::{Engine as BlockingEngine, Run};
use crate::error::Error;
use crate::outbound::memory::MemoryStore;
use crate::ports::{BoxFuture, Clock, Store};
use crate::worker::StopReport;

/// An engine on virtual time: deterministic, and fast however long its workflows sleep. It works in
/// memory, unless it is built [on](TestEngine::on) another store.
///
/// It has all calls of the [blocking engine](crate::blocking::Engine), with `test` as the
/// default tenant. Nothing moves unless a call waits for it or one of the methods here is used.
///
/// ```
/// use std::time::Duration;
/// use stepwell::testing::TestEngine;
/// use stepwell::{RunStatus, Workflow};
///
/// let mut w = Workflow::define("reminder");
/// let nap = w.sleep("nap", Duration::from_secs(24 * 60 * 60)).from_start();
/// let ring = w.step("ring").after(nap).run(async |_ctx, ()| Ok("wake up".to_owned()));
/// let reminder: Workflow<(), String> = w.output(ring);
///
/// let mut builder = TestEngine::builder();
/// let reminder = builder.workflow(reminder);
/// let test = builder.start()?;
/// let run = test.start(&reminder, ()).now()?;
/// test.advance(Duration::from_secs(23 * 60 * 60));
/// assert_eq!(run.status()?, RunStatus::Running);
/// test.run_to_end();
/// assert_eq!(run.result()?, "wake up");
/// # Ok::<(), stepwell::Error>(())
/// ```
pub struct TestEngine {
    engine: Engine,
    blocking: BlockingEngine,
    runtime: Arc<TestRuntime>,
    group: ManualScheduler,
}

impl TestEngine {
    /// Begins to build an engine in memory, with a clock and a scheduler of its own.
    pub fn builder() -> TestEngineBuilder<()> {
        let clock = ManualClock::new();
        Self::on(MemoryStore::with_clock(Arc::new(clock.clone())), clock)
    }

    /// As [`TestEngine::builder`], with another seed for ids and jitter.
    pub fn builder_with_seed(seed: u64) -> TestEngineBuilder<()> {
        Self::builder().seed(seed)
    }

    /// Begins to build an engine on a store, which must be on the same clock.
    ///
    /// Real threads and sockets of the store do their work while virtual time stands still, and
    /// whatever the engine asks of it is answered before anything else happens. So the same test
    /// does the same thing on every run, whichever store it is on.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::sync::Arc;
    /// use stepwell::testing::{ManualClock, TestEngine};
    /// use stepwell::MemoryStore;
    ///
    /// let clock = ManualClock::new();
    /// let store = MemoryStore::with_clock(Arc::new(clock.clone()));
    /// let test = TestEngine::on(store, clock).start()?;
    /// assert!(test.list(Default::default(), None, 10)?.runs.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn on(store: impl Store, clock: ManualClock) -> TestEngineBuilder<()> {
        Self::build(TestRuntime::new(Arc::new(store), clock, ()))
    }

    /// Begins to build an engine on a SQLite file, which is made if it is not there.
    ///
    /// # Panics
    /// When the file cannot be opened.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use stepwell::testing::TestEngine;
    /// use stepwell::Workflow;
    ///
    /// let mut w = Workflow::define::<(), ()>("nap");
    /// w.sleep("nap", Duration::from_secs(24 * 60 * 60)).from_start();
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("test.db");
    /// let mut builder = TestEngine::on_sqlite(path);
    /// let nap = builder.workflow(w.no_output());
    /// let test = builder.start()?;
    /// let run = test.start(&nap, ()).now()?;
    /// test.run_to_end();
    /// run.result()?;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "sqlite")]
    #[track_caller]
    pub fn on_sqlite(path: impl AsRef<std::path::Path>) -> TestEngineBuilder<()> {
        let clock = ManualClock::new();
        // A test's file need not survive a power cut.
        let options = crate::SqliteOptions::new(path).synchronous_normal();
        match crate::SqliteStore::with_clock(options, Arc::new(clock.clone())) {
            Ok(store) => Self::on(store, clock),
            Err(error) => panic!("open a test's file: {error}"),
        }
    }

    /// Begins to build an engine on a PostgreSQL database, which lives as long as the engines of
    /// the test.
    ///
    /// # Panics
    /// When the server does not answer.
    ///
    /// ```no_run
    /// use stepwell::testing::{TestDatabase, TestEngine};
    ///
    /// let test = TestEngine::on_postgres(TestDatabase::create_blocking()).start()?;
    /// # Ok::<(), stepwell::Error>(())
    /// ```
    #[cfg(feature = "postgres")]
    #[track_caller]
    pub fn on_postgres(database: super::TestDatabase) -> TestEngineBuilder<()> {
        let clock = ManualClock::new();
        // All engines of the test share one handle of the store, which tells them of each other's
        // work without any notification; one more connection than is ever busy will do.
        let options = database.options().connections_max(2).poll_only();
        let options = options.without_migration().clock(Arc::new(clock.clone()));
        match super::postgres::apart(crate::PostgresStore::connect_with(options)) {
            Ok(Ok(store)) => Self::build(TestRuntime::new(Arc::new(store), clock, database)),
            Ok(Err(error)) => panic!("connect to a test's database: {error}"),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    fn build(runtime: TestRuntime) -> TestEngineBuilder<()> {
        TestEngineBuilder::new(Arc::new(runtime))
    }

    pub(super) fn new(engine: Engine, runtime: Arc<TestRuntime>, group: ManualScheduler) -> Self {
        let wait: Arc<dyn crate::api::blocking::BlockOn> = runtime.clone();
        let blocking = BlockingEngine::new(engine.clone(), wait);
        Self { engine, blocking, runtime, group }
    }

    /// Begins to build another engine on the same store, clock and scheduler: a fleet of two.
    /// Time moves for both, whichever is told to.
    pub fn builder_beside(&self) -> TestEngineBuilder<()> {
        TestEngineBuilder::new(Arc::clone(&self.runtime))
    }

    /// The same engine for async code; [`TestEngine::drive`] waits for its futures.
    #[must_use]
    pub fn as_async(&self) -> &Engine {
        &self.engine
    }

    /// The store. Its calls are answered where they are made: they never have to be awaited twice.
    #[must_use]
    pub fn store(&self) -> &(impl Store + Clone) {
        &self.runtime.world.store
    }

    /// The clock.
    #[must_use]
    pub fn clock(&self) -> &ManualClock {
        &self.runtime.world.clock
    }

    /// The current moment of virtual time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.runtime.world.clock.now()
    }

    /// Waits for a future while everything else runs, at the current moment of virtual time. The
    /// future may wait for timers and sockets of tokio's as well; those take real time.
    ///
    /// # Panics
    /// When nothing more happens at this moment and the future still waits, and when the future
    /// panics.
    #[track_caller]
    pub fn drive<F>(&self, future: F) -> F::Output
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let future = self.runtime.world.executions.observe_future(None, Box::pin(future));
        self.wait_for(future, World::wait_now)
    }

    /// Lets each part of the engine that has something to do take one turn. Says whether any
    /// had.
    #[track_caller]
    pub fn run_cycle(&self) -> bool {
        let (told, answer) = std::sync::mpsc::channel();
        self.reach(move |world| {
            // The answer is waited for below.
            let _ = told.send(world.run_cycle());
            Ok(())
        });
        answer.recv().is_ok_and(|had| had)
    }

    /// Runs until nothing is left to do at the current moment.
    #[track_caller]
    pub fn run_until_idle(&self) {
        self.reach(World::run_until_idle);
    }

    /// Runs until the run has ended, without moving time, and gives its output.
    ///
    /// # Errors
    /// When the run failed or was cancelled.
    ///
    /// # Panics
    /// When it cannot end at this moment, because it sleeps or waits for a retry.
    #[track_caller]
    pub fn run_until_complete<O: Send + 'static>(&self, run: &Run<O>) -> Result<O, Error> {
        run.result()
    }

    /// Moves time on by `span`, firing everything that falls due on the way when it does.
    #[track_caller]
    pub fn advance(&self, span: Duration) {
        self.reach(move |world| world.advance(span));
    }

    /// Moves time on to a moment.
    #[track_caller]
    pub fn advance_to(&self, moment: Timestamp) {
        self.advance(moment.since(self.now()));
    }

    /// Runs until all runs have ended, jumping from timer to timer.
    ///
    /// # Panics
    /// When some run can never end, because no engine has its code, or a step of it waits for
    /// something that does not come.
    #[track_caller]
    pub fn run_to_end(&self) {
        self.reach(World::run_to_end);
    }

    /// Stops the engine, moving time on as far as the grace period needs.
    #[track_caller]
    pub fn stop(&self, grace: Duration) -> StopReport {
        let engine = self.engine.clone();
        self.wait_for(Box::pin(async move { engine.stop(grace).await }), World::wait_in_time)
    }

    /// Kills the engine where it stands, as a crash of its process would: nothing is handed
    /// back, and its claims are held until somebody finds it dead.
    pub fn crash(&self) {
        self.group.kill();
    }

    #[track_caller]
    fn reach(&self, goal: impl FnOnce(&World) -> Result<(), Stuck> + Send + 'static) {
        if let Err(Stuck(why)) = self.runtime.reach(goal) {
            panic!("{why}");
        }
    }

    #[track_caller]
    fn wait_for<T: Send + 'static>(
        &self,
        future: BoxFuture<T>,
        how: fn(&World, &std::sync::atomic::AtomicBool) -> Result<(), Stuck>,
    ) -> T {
        let slot = Arc::new(Mutex::new(None));
        let filled = Arc::clone(&slot);
        let fill = async move {
            let output = future.await;
            *filled.lock().expect("no holder of the lock panics") = Some(output);
        };
        if let Err(Stuck(why)) = self.runtime.wait_for(Box::pin(fill), how) {
            panic!("{why}");
        }
        let output = slot.lock().expect("no holder of the lock panics").take();
        output.expect("the wait ended, so the future did")
    }
}

impl Deref for TestEngine {
    type Target = BlockingEngine;

    fn deref(&self) -> &BlockingEngine {
        &self.blocking
    }
}
