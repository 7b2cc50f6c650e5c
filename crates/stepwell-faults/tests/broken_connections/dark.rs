//! Connections that go dark without a word.

use std::sync::Arc;
use std::time::Duration;

use stepwell::{AttemptState, Engine, Error, PostgresOptions, PostgresStore};
use stepwell_faults::database::{OwnDatabase, connect, eventually};
use stepwell_faults::wire::Wire;

use crate::support::{Journal, TENANT, all_came_right, count, engine, server, start, store, sums};

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_go_dark_cost_no_worker_its_lease() {
    // FA5, FA7: under the settings that everybody has. Behind a proxy that takes what is sent and
    // hangs, no end of a connection is ever told.
    let database = OwnDatabase::make(&server()).await;
    let client = connect(database.url()).await;
    let journal = Journal::new(0);
    let wire = Wire::to(database.url()).await;
    let engine = async |url: &str| {
        let mut builder = Engine::builder(store(url).await).state(Arc::clone(&journal));
        let sums = builder.workflow(sums());
        (builder.start().await.expect("the engine starts"), sums)
    };
    let (first, sums) = engine(wire.url()).await;
    start(&first, &sums, 1).await;
    let n_begun = || journal.executions().iter().filter(|(_, step, _)| step == "double").count();
    eventually("it is in its second step", async || n_begun() == 1).await;
    // The other leads once the first is gone dark, and would take it for dead.
    let (second, _) = engine(database.url()).await;

    assert!(wire.darken(|_| true) >= 3, "work, heartbeats, leading");
    let worker = first.worker_id();
    let n_beats = async || {
        let read = "select n_beats from stepwell.worker where id = $1 and state = 0";
        let row = client.query_opt(read, &[&worker]).await.expect("it answers");
        row.map_or(0, |row| row.get::<_, i64>(0))
    };
    let before = n_beats().await;
    eventually("it beats again on another connection", async || n_beats().await > before).await;
    eventually("and goes on", async || n_beats().await > before + 1).await;
    let taken_for_dead = async || {
        let read = "select count(*) from stepwell.worker where state <> 0";
        client.query_one(read, &[]).await.expect("it answers").get::<_, i64>(0)
    };
    assert_eq!(taken_for_dead().await, 0);
    journal.permits.add_permits(1_000);
    let dump = all_came_right(database.url(), &journal, 1).await;
    assert_eq!(count(&dump, AttemptState::Lost), 0);
    first.stop_gracefully().await;
    second.stop_gracefully().await;
    database.abandon().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_waits_for_ever_for_a_connection_that_went_dark() {
    // FA5: looks, claims, commits and starts are answered with an error in time, and go through
    // on another connection then.
    const N_RUNS: u32 = 6;
    let database = OwnDatabase::make(&server()).await;
    let journal = Journal::new(0);
    let wire = Wire::to(database.url()).await;
    let options = PostgresOptions::new(wire.url()).statement_timeout(Duration::from_secs(1));
    let store = PostgresStore::connect_with(options).await.expect("the server answers");
    let (engine, sums) = engine(store, &journal, Duration::from_secs(30)).await;
    for n in 0..N_RUNS {
        start(&engine, &sums, n).await;
    }
    let n_begun = || journal.executions().iter().filter(|(_, step, _)| step == "double").count();
    eventually("all are in their second step", async || n_begun() == N_RUNS as usize).await;
    for _ in 0..2 {
        assert!(wire.darken(|_| true) > 0);
        let run = engine.run_handle(TENANT, "run-0").await;
        // It may have found that out before.
        assert!(matches!(run, Ok(_) | Err(Error::Unavailable { .. })));
    }
    wire.darken(|_| true);
    journal.permits.add_permits(1_000);
    start(&engine, &sums, N_RUNS).await;
    let dump = all_came_right(database.url(), &journal, N_RUNS + 1).await;
    assert_eq!(count(&dump, AttemptState::Lost), 0);
    engine.stop_gracefully().await;
    database.abandon().await;
}
