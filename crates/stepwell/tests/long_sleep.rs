//! A sleep of a day that begins before a restart ends after it, on every durable store.
#![cfg(all(feature = "sqlite", feature = "postgres", feature = "testing"))]

use std::sync::Arc;
use std::time::Duration;

use stepwell::ports::Store;
use stepwell::testing::{ManualClock, TestDatabase};
use stepwell::{
    Config, Engine, PostgresStore, RunStatus, SqliteOptions, SqliteStore, TaskState, Workflow,
    WorkflowRef,
};

const DAY: Duration = Duration::from_hours(24);
const MINUTE: Duration = Duration::from_mins(1);

fn reminder() -> Workflow<u32, u32> {
    let mut w = Workflow::define::<u32, ()>("reminder");
    let before = w.step("before").run(async |ctx| Ok(*ctx.input() + 1));
    let night = w.sleep("night", DAY).after(before);
    let after = w.step("after").after((before, night)).run(async |_ctx, (n, ())| Ok(n * 2));
    w.output(after)
}

async fn engine(store: impl Store) -> (Engine, WorkflowRef<u32, u32>) {
    // The store's time is moved by hand, so the leader looks often by real time.
    let config = Config { timer_interval: Duration::from_millis(10), ..Config::default() };
    let mut builder = Engine::builder(store).config(config);
    let reminders = builder.workflow(reminder());
    (builder.start().await.expect("it starts"), reminders)
}

/// Every life of the program opens the store anew; only the store's time goes on.
async fn wakes_after_restarts<S: Store>(open: impl AsyncFn(Arc<ManualClock>) -> S) {
    let clock = Arc::new(ManualClock::new());
    let (first, reminders) = engine(open(Arc::clone(&clock)).await).await;
    let run = first.start(&reminders, 20).tenant("t").id("one").await.expect("it starts");
    let is_asleep = |task: &stepwell::TaskStatus| task.state == TaskState::Sleeping;
    while !run.tasks().await.expect("they are read").iter().any(is_asleep) {
        tokio::task::yield_now().await;
    }
    first.stop_gracefully().await;
    drop((run, first));

    clock.advance(DAY.checked_sub(MINUTE).expect("a day is longer"));
    let (second, reminders) = engine(open(Arc::clone(&clock)).await).await;
    let run = second.run_handle_of(&reminders, "t", "one").await.expect("it is there");
    let early = run.result_within(Duration::from_millis(200)).await;
    assert!(early.is_err(), "a minute is left");
    assert_eq!(run.status().await.expect("it is read"), RunStatus::Running);
    second.stop_gracefully().await;
    drop((run, second));

    clock.advance(MINUTE);
    let (third, reminders) = engine(open(Arc::clone(&clock)).await).await;
    let run = third.run_handle_of(&reminders, "t", "one").await.expect("it is there");
    assert_eq!(run.result().await.expect("it completes"), 42);
    third.stop_gracefully().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_of_sleep_in_a_file_survives_restarts() {
    // R4, R12
    let folder = tempfile::TempDir::new().expect("there is room for a file");
    let path = folder.path().join("stepwell.db");
    wakes_after_restarts(async |clock| {
        SqliteStore::with_clock(SqliteOptions::new(&path), clock).expect("it opens")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_of_sleep_in_postgres_survives_restarts() {
    // R4, R12
    let database = TestDatabase::create().await;
    wakes_after_restarts(async |clock| {
        let options = database.options().clock(clock);
        PostgresStore::connect_with(options).await.expect("the server answers")
    })
    .await;
}
