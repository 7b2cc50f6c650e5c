//! Timers fire within a tenth of a second of being due, on every durable store, whoever set them.
//!
//! Time stands still but for jumps to the next moment at which somebody wakes, so what is late
//! here is late by plan, never because the machine is slow.
#![cfg(all(feature = "sqlite", feature = "postgres", feature = "testing"))]

use std::sync::Arc;
use std::time::Duration;

use stepwell::ports::{BoxFuture, Clock as _, NoThread, Spawner, Store};
use stepwell::testing::{CountedIds, ManualClock, TestDatabase};
use stepwell::{
    Config, Engine, EventKind, PostgresStore, Run, RunEvent, SqliteOptions, SqliteStore, Workflow,
    WorkflowRef,
};

const SPANS_MILLIS: [u64; 12] = [1, 7, 99, 100, 101, 777, 999, 1_001, 2_345, 5_999, 6_001, 61_803];

const LATE_MAX: Duration = Duration::from_millis(100);

/// How long the machine may take for what should happen at one moment.
const PATIENCE: Duration = Duration::from_secs(30);

/// Real tasks, for engines on a clock that is moved by hand.
struct Tasks;

impl Spawner for Tasks {
    #[expect(clippy::disallowed_methods, reason = "the stores of this test are real")]
    fn spawn(&self, future: BoxFuture<()>) {
        drop(tokio::spawn(future));
    }

    fn spawn_apart(&self, _name: &str, future: BoxFuture<()>) {
        self.spawn(future);
    }

    fn spawn_blocking(&self, _: Box<dyn FnOnce() + Send + 'static>) -> Result<(), NoThread> {
        unreachable!("no step of this test blocks");
    }

    fn block_on(&self, _future: BoxFuture<()>) {
        unreachable!("no step of this test blocks");
    }
}

fn naps() -> Workflow<(), ()> {
    let mut w = Workflow::define::<(), ()>("naps");
    for millis in SPANS_MILLIS {
        let nap = w.sleep(&name(millis), Duration::from_millis(millis)).from_start();
        w.step(&format!("after {millis}")).after(nap).run(async |_, ()| Ok(()));
    }
    w.no_output()
}

fn name(millis: u64) -> String {
    format!("nap {millis}")
}

/// An engine whose loops look so rarely by themselves that only what they know of timers, or are
/// told of them, makes them wake in time.
async fn engine(
    store: impl Store,
    clock: &Arc<ManualClock>,
    ids: &Arc<CountedIds>,
    slots: usize,
) -> (Engine, WorkflowRef<(), ()>) {
    let hour = Duration::from_hours(1);
    let config = Config {
        slots,
        lease: hour,
        heartbeat_interval: hour / 3,
        poll_interval: hour,
        leader_ttl: hour,
        timer_interval: hour,
        ..Config::default()
    };
    let (clock, ids) = (Arc::clone(clock), Arc::clone(ids));
    let mut builder = Engine::builder(store).config(config).runtime(clock, Arc::new(Tasks), ids);
    let naps = builder.workflow(naps());
    (builder.start().await.expect("it starts"), naps)
}

#[expect(clippy::disallowed_methods, reason = "a test that hangs says so")]
async fn patient(what: &str, happens: impl AsyncFn() -> bool) {
    let until = async {
        while !happens().await {
            tokio::task::yield_now().await;
        }
    };
    let in_time = tokio::time::timeout(PATIENCE, until).await;
    assert!(in_time.is_ok(), "{what}: nobody means to wake in time");
}

async fn woken(run: &Run<()>, nap: &str) -> Option<RunEvent> {
    let is_end = |event: &RunEvent| {
        event.step.as_deref() == Some(nap) && matches!(event.kind, EventKind::Woken { .. })
    };
    run.events().await.expect("they are read").into_iter().find(is_end)
}

/// Lets time jump from wake-up to wake-up and holds the end of every sleep to its span.
async fn sleeps_end_in_time(run: &Run<()>, clock: &ManualClock) {
    let begin = clock.now();
    for millis in SPANS_MILLIS {
        let (nap, due) = (name(millis), begin.after(Duration::from_millis(millis)));
        let left = || due.after(LATE_MAX).since(clock.now());
        // A hint may wake them earlier, so it is asked once and not again.
        let next_wake = || clock.next_wake().filter(|wake| *wake <= left());
        let event = loop {
            patient(&nap, async || next_wake().is_some() || woken(run, &nap).await.is_some()).await;
            if let Some(event) = woken(run, &nap).await {
                break event;
            }
            clock.advance(next_wake().unwrap_or_default());
        };
        assert!(event.at >= due, "{nap} ended {:?} early", due.since(event.at));
        let late = event.at.since(due);
        assert!(late <= LATE_MAX, "{nap} ended {late:?} late");
    }
}

/// Engines on two stores of one database: the one leads, the other only starts runs.
async fn on_time<S: Store>(open: impl AsyncFn(Arc<ManualClock>) -> S) {
    let (clock, ids) = (Arc::new(ManualClock::new()), Arc::new(CountedIds::new(0)));
    let (leader, by_leader) = engine(open(Arc::clone(&clock)).await, &clock, &ids, 10).await;
    let (client, by_client) = engine(open(Arc::clone(&clock)).await, &clock, &ids, 0).await;
    let run = leader.start(&by_leader, ()).tenant("t").await.expect("it starts");
    sleeps_end_in_time(&run, &clock).await;
    let run = client.start(&by_client, ()).tenant("t").await.expect("it starts");
    sleeps_end_in_time(&run, &clock).await;
    leader.stop_gracefully().await;
    client.stop_gracefully().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sleeps_in_a_file_end_within_a_tenth_of_a_second_of_being_due() {
    // R4
    let folder = tempfile::TempDir::new().expect("there is room for a file");
    let path = folder.path().join("stepwell.db");
    on_time(async |clock| {
        SqliteStore::with_clock(SqliteOptions::new(&path), clock).expect("it opens")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sleeps_in_postgres_end_within_a_tenth_of_a_second_of_being_due() {
    // R4
    let database = TestDatabase::create().await;
    on_time(async |clock| {
        let options = database.options().clock(clock);
        PostgresStore::connect_with(options).await.expect("the server answers")
    })
    .await;
}
