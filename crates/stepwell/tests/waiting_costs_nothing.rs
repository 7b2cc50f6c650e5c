//! Runs that wait ask nothing of anybody: an idle worker sends the same statements with thousands
//! of them around, and so does one that claims, executes and commits.
//!
//! That none of these statements reads the rows of those who wait is held by the tests of plans.
#![cfg(all(feature = "testing", feature = "postgres", feature = "sqlite"))]

mod support_postgres;

use std::sync::Arc;

use stepwell::ports::{ClaimAnswer, CommitItem, Traffic};
use stepwell::testing::ManualClock;
use stepwell::testing::conformance::World;
use stepwell::testing::conformance::world::{Flow, WORKER, completed, worker};
use stepwell::{SqliteOptions, SqliteStore};
use support_postgres::Schema;
use tempfile::TempDir;

/// How many runs wait.
const CROWD: usize = 3_000;

/// What an idle worker that leads asks of its store: it looks for work and timers, and beats.
async fn idle(world: &World) {
    let (store, own) = (world.store(), worker(WORKER));
    let epoch = world.lead().await;
    for _ in 0..10 {
        store.claim(world.claim_request(&own, 100)).await.expect("look for work");
        store.fire_timers(epoch, 100).await.expect("look for timers");
        store.heartbeat(&own, &[]).await.expect("beat");
    }
}

/// Starts a run of one step, claims and completes it.
async fn work(world: &World, flow: &Flow) {
    let store = world.store();
    let request = world.request("acme", "", flow, b"input");
    store.start(vec![request]).await.expect("start a run");
    let answer = store.claim(world.claim_request(&worker(WORKER), 100)).await.expect("claim");
    let ClaimAnswer::Claimed { tasks, .. } = answer else { panic!("the worker is registered") };
    assert_eq!(tasks.len(), 1, "who waits is not claimed");
    let items = tasks.iter().map(|task| CommitItem { claim: task.claim, outcome: completed() });
    store.commit(items.collect()).await.expect("commit");
}

/// Asserts that being idle and working cost as many statements among a crowd as without it.
async fn check(world: &World, traffic: impl Fn() -> Traffic) {
    let flow = world.define("a").await;
    let crowd = world.define("w ? paid/24h; b < w").await;
    let measure = async || {
        // What is done for the first time may cost more.
        idle(world).await;
        work(world, &flow).await;
        let before = traffic();
        idle(world).await;
        let idle = traffic();
        work(world, &flow).await;
        (idle.since(before), traffic().since(idle))
    };
    let alone = measure().await;
    let requests = (0..CROWD).map(|_| world.request("acme", "", &crowd, b"input")).collect();
    world.store().start(requests).await.expect("start a crowd");
    let among = measure().await;
    assert_eq!(alone, among, "alone and among {CROWD} that wait");
}

#[tokio::test]
async fn thousands_of_waiting_runs_cost_no_statement_on_sqlite() {
    let folder = TempDir::new().expect("a test machine has a folder for temporary files");
    let clock = Arc::new(ManualClock::new());
    let options = SqliteOptions::new(folder.path().join("waiting.db")).synchronous_normal();
    let store = SqliteStore::with_clock(options, Arc::clone(&clock) as _).expect("a fresh file");
    let world = World::new(Arc::new(store.clone()), clock);
    check(&world, || store.traffic()).await;
}

#[tokio::test]
async fn thousands_of_waiting_runs_cost_no_statement_on_postgres() {
    let schema = Schema::make("waiting").await;
    let world = World::new(Arc::new(schema.store.clone()), Arc::clone(&schema.clock));
    check(&world, || schema.store.traffic()).await;
    schema.remove().await;
}
