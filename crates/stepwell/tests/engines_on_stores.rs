//! Engines on every store, on real time: two of them share the work of one store.
#![cfg(all(feature = "sqlite", feature = "postgres", feature = "testing"))]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use stepwell::core::id::{Queue, WorkerId};
use stepwell::ports::{
    ClaimRequest, Claims, Hint, Leadership, Store, Take, WorkerRegistration, Workers,
};
use stepwell::testing::conformance::World;
use stepwell::testing::{ManualClock, TestDatabase};
use stepwell::{
    Engine, MemoryStore, NewRun, PostgresStore, Retry, RunStatus, SqliteStore, StepError, Workflow,
    WorkflowRef,
};

const N_RUNS: u32 = 100;

/// Counts what was executed, by step.
#[derive(Default)]
struct Counts {
    double: AtomicU32,
    add: AtomicU32,
}

/// a -> (double, nap) -> add; `double` fails once for every tenth run.
fn sums() -> Workflow<u32, u32, Arc<Counts>> {
    let mut w = Workflow::define::<u32, Arc<Counts>>("sums");
    let a = w.step("a").run(async |ctx| Ok(*ctx.input()));
    let retry = Retry::fixed(1, Duration::from_millis(5));
    let double = w.step("double").after(a).retry(retry).run(async |ctx, n| {
        ctx.state().double.fetch_add(1, Ordering::Relaxed);
        if n % 10 == 0 && ctx.attempt() == 1 {
            return Err(StepError::new("flaky"));
        }
        Ok(2 * n)
    });
    let nap = w.sleep("nap", Duration::from_millis(10)).after(a);
    let add = w.step("add").after((a, double, nap)).run_blocking(|ctx, (a, double, ())| {
        ctx.state().add.fetch_add(1, Ordering::Relaxed);
        Ok(a + double)
    });
    w.output(add)
}

async fn engine(store: impl Store, counts: &Arc<Counts>) -> (Engine, WorkflowRef<u32, u32>) {
    let mut builder = Engine::builder(store).state(Arc::clone(counts));
    let sums = builder.workflow(sums());
    (builder.start().await.expect("the engine starts"), sums)
}

/// Two engines on two handles of one store: every run ends right, and without faults every step
/// is executed exactly as often as it must be.
async fn two_engines_share(one: impl Store, other: impl Store) {
    // R3, R5, R15, R24, S10
    let counts = Arc::new(Counts::default());
    let (first, sums) = engine(one, &counts).await;
    let (second, _) = engine(other, &counts).await;
    let new = |n: u32| NewRun::new(n).tenant(["a", "b", "c"][n as usize % 3]);
    let started = first.start_many(&sums, (0..N_RUNS).map(new)).await.expect("they start");
    for (n, run) in (0..).zip(started) {
        let run = run.expect("no start is refused");
        assert_eq!(run.result().await.expect("it completes"), 3 * n);
        assert_eq!(run.status().await.expect("it is there"), RunStatus::Completed);
    }
    let n_flaky = N_RUNS.div_ceil(10);
    assert_eq!(counts.double.load(Ordering::Relaxed), N_RUNS + n_flaky);
    assert_eq!(counts.add.load(Ordering::Relaxed), N_RUNS);
    for engine in [first, second] {
        let report = engine.stop_gracefully().await;
        assert_eq!((report.n_handed_back, report.n_still_running), (0, 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_engines_share_a_memory_store() {
    let store = MemoryStore::new();
    two_engines_share(store.clone(), store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_engines_share_a_sqlite_file() {
    let folder = tempfile::TempDir::new().expect("there is room for a file");
    let path = folder.path().join("stepwell.db");
    let open = || SqliteStore::open(path.clone());
    // Two stores on one file know of each other only what two processes would.
    let (one, other) = (open().await.expect("it opens"), open().await.expect("it opens"));
    two_engines_share(one, other).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_engines_share_a_postgres_schema() {
    let database = TestDatabase::create().await;
    two_engines_share(database.store().await, database.store().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_working_connection_carries_an_engine_under_load() {
    // R25: starts of new tenants, claims, commits and reads all at once, in two engines.
    let database = TestDatabase::create().await;
    let options = || database.options().connections_max(1);
    let connect = || async { PostgresStore::connect_with(options()).await.expect("it opens") };
    two_engines_share(connect().await, connect().await).await;
    let counts = Arc::new(Counts::default());
    let (engine, sums) = engine(connect().await, &counts).await;
    let one = |n: u32| {
        let (engine, sums) = (engine.clone(), sums.clone());
        async move {
            let start = engine.start(&sums, n).tenant(format!("tenant {n}"));
            let run = start.await.expect("it starts");
            let (result, tasks, events) = tokio::join!(run.result(), run.tasks(), run.events());
            assert!(tasks.expect("they are there").len() > 1 && events.is_ok());
            assert_eq!(result.expect("it completes"), 3 * n);
        }
    };
    join_all((0..N_RUNS).map(one)).await;
    engine.stop_gracefully().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_in_a_file_goes_on_after_its_process_stopped() {
    // R4, R5
    let folder = tempfile::TempDir::new().expect("there is room for a file");
    let path = folder.path().join("stepwell.db");
    let counts = Arc::new(Counts::default());
    let client = SqliteStore::open(path.clone()).await.expect("it opens");
    let (engine, sums) = engine(client, &counts).await;
    let run = engine.start(&sums, 7).tenant("t").id("seven").await.expect("it starts");
    let id = run.id().to_owned();
    engine.stop(Duration::ZERO).await;
    drop((run, engine));

    let again = SqliteStore::open(path).await.expect("it opens again");
    let (engine, sums) = self::engine(again, &counts).await;
    let run = engine.run_handle_of(&sums, "t", &id).await.expect("it is there");
    assert_eq!(run.result().await.expect("it completes"), 21);
    engine.stop_gracefully().await;
}

async fn register(store: &SqliteStore, name: &str) -> WorkerId {
    let worker = WorkerId::new(name).expect("a good name");
    let registration = WorkerRegistration {
        worker: worker.clone(),
        queues: vec![Queue::default_queue()],
        services: Vec::new(),
        lease: Duration::from_secs(30),
    };
    store.register_worker(registration).await.expect("it registers");
    worker
}

#[tokio::test]
async fn news_in_a_file_are_not_drowned_by_what_one_tells_oneself() {
    // FC1: both tell something before anybody looks at the file.
    let folder = tempfile::TempDir::new().expect("there is room for a file");
    let path = folder.path().join("stepwell.db");
    let one = SqliteStore::open(path.clone()).await.expect("it opens");
    let other = SqliteStore::open(path).await.expect("it opens");
    let mut hints = one.hints();
    for n in 0..20 {
        hints.look(Hint::Ended);
        register(&other, &format!("other {n}")).await;
        register(&one, &format!("one {n}")).await;
        // One's own news are of workers; only the other's can be of anything.
        hints.given(Hint::Ended).await;
    }
}

#[tokio::test]
async fn processes_on_a_file_are_told_of_claims_that_were_taken_from_their_own_workers_only() {
    let folder = tempfile::TempDir::new().expect("there is room for a file");
    let path = folder.path().join("stepwell.db");
    let one = SqliteStore::open(path.clone()).await.expect("it opens");
    let other = SqliteStore::open(path).await.expect("it opens");
    let idle = register(&other, "idle").await;
    let world = World::new(Arc::new(one), Arc::new(ManualClock::new()));
    let held = WorkerId::new("worker").expect("a good name");
    let flow = world.define("a").await;
    let mut hints = other.hints();
    let run = world.start(&flow).await;
    hints.given(Hint::Ready).await;
    world.claim_one().await;
    for worker in [&held, &idle] {
        assert!(hints.claims_taken_from(worker).now_or_never().is_none(), "nothing was taken");
    }
    world.cancel(&run).await;
    hints.claims_taken_from(&held).await;
    assert!(hints.claims_taken_from(&idle).now_or_never().is_none(), "it held nothing");
    // One who tells something before it has heard that of others.
    for n in 0..20 {
        let run = world.start(&flow).await;
        world.claim_one().await;
        hints.look(Hint::Claims);
        world.cancel(&run).await;
        register(&other, &format!("other {n}")).await;
        hints.claims_taken_from(&held).await;
        assert!(hints.claims_taken_from(&idle).now_or_never().is_none(), "it held nothing");
    }
}

#[tokio::test]
async fn looking_for_work_in_a_file_is_no_news_to_others() {
    // A look is a commit, and a commit that others are told of makes them look: two engines would
    // keep each other busy for ever.
    let folder = tempfile::TempDir::new().expect("there is room for a file");
    let path = folder.path().join("stepwell.db");
    let store = SqliteStore::open(path.clone()).await.expect("it opens");
    let worker = register(&store, "idle").await;
    let file = rusqlite::Connection::open(path).expect("it opens");
    let n_wakes = || -> i64 {
        let read = "select n_wakes from counter";
        file.query_row(read, [], |row| row.get(0)).expect("it is there")
    };
    let before = n_wakes();
    for _ in 0..5 {
        let (worker, tasks_max, crash_limit) = (worker.clone(), 10, 3);
        let request = ClaimRequest { worker, tasks_max, take: Take::Plain, crash_limit, salt: 0 };
        store.claim(request).await.expect("it answers");
    }
    store.heartbeat(&worker, &[]).await.expect("it answers");
    store.lead(&worker, Duration::from_secs(6)).await.expect("it answers");
    assert_eq!(n_wakes(), before);
}
