//! While somebody holds an old snapshot, the server keeps what was taken from queues; nobody steps
//! over it.
#![cfg(all(feature = "testing", feature = "postgres"))]

mod support_postgres;

use std::sync::Arc;

use serde_json::Value;
use stepwell::PostgresStore;
use stepwell::testing::conformance::World;
use stepwell::testing::conformance::world::{WORKER, worker};
use stepwell::testing::{ManualClock, TestDatabase};
use support_postgres::{connect, rows};
use tokio_postgres::Client;

const N_TASKS: usize = 8_000;

/// How many pages a look at the queue touches.
async fn n_pages(client: &Client, store: &PostgresStore, name: &str, arguments: &str) -> u64 {
    let all = store.every_statement();
    let (_, sql) = all.iter().find(|(known, _)| *known == name).expect("it is a statement");
    let prepare =
        format!("{}; deallocate all; prepare looked_at as {sql}", store.planner_settings());
    client.batch_execute(&prepare).await.expect("the statement fits the schema");
    let explain = "explain (analyze, buffers, format json) execute looked_at";
    let plan = rows(client, &format!("begin; {explain}({arguments}); rollback")).await;
    let plan: Value = serde_json::from_str(&plan.join("\n")).expect("the server writes JSON");
    plan.pointer("/0/Plan/Shared Hit Blocks").and_then(Value::as_u64).expect("pages are counted")
}

/// A look of a claim for one service and for two, and one that asks whether anybody waits.
async fn looks(client: &Client, store: &PostgresStore) -> [u64; 3] {
    let claim = n_pages(client, store, "first_ready", "'default', 0, 2, 10, null").await;
    let wide = "'default', '{0, 1}', 2, 10, null, 55, 94";
    let wide = n_pages(client, store, "first_ready_of_many", wide).await;
    let idle = n_pages(client, store, "find_idle_worker", &format!("'{WORKER}'")).await;
    [claim, wide, idle]
}

#[tokio::test]
async fn looks_at_a_queue_do_not_step_over_what_was_taken_under_an_old_snapshot() {
    let database = TestDatabase::create().await;
    let clock = Arc::new(ManualClock::new());
    let options = database.options().poll_only().clock(Arc::clone(&clock) as _).passing_eagerly();
    let store = PostgresStore::connect_with(options).await.expect("the server answers");
    let world = World::new(Arc::new(store.clone()), clock);
    let client = connect(&database.url()).await;
    let flow = world.define("k").await;
    let holder = connect(&database.url()).await;
    let hold = "begin isolation level repeatable read; select count(*) from stepwell.ready";
    holder.batch_execute(hold).await.expect("a snapshot is held");
    world.start_many_for("acme", &flow, N_TASKS).await;
    assert_eq!(world.claim(&worker(WORKER), N_TASKS).await.iter().count(), N_TASKS);
    // Two rounds, at the next claims.
    for _ in 0..2 {
        assert_eq!(world.claim_all().await.iter().count(), 0);
    }
    let passed = looks(&client, &store).await;
    client.batch_execute("delete from stepwell.watermark").await.expect("it is forgotten");
    let stepped_over = looks(&client, &store).await;
    holder.batch_execute("commit").await.expect("it is let go");
    for (passed, stepped_over) in passed.iter().zip(stepped_over) {
        assert!(passed * 3 < stepped_over, "{passed} pages, and {stepped_over} over all");
    }
    world.start_for("acme", &flow).await;
    assert_eq!(world.claim_all().await.iter().count(), 1, "what comes later is found");
}
