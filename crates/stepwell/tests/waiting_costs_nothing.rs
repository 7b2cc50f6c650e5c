//! Runs that wait ask nothing of anybody: an idle worker sends the same statements with thousands
//! of them around, and so does one that claims, executes and commits. A step that goes waiting
//! reads no signal, whether there are some or not.
//!
//! That none of these statements reads the rows of those who wait is held by the tests of plans.
#![cfg(all(feature = "testing", feature = "postgres", feature = "sqlite"))]

mod support_postgres;

use std::sync::Arc;

use stepwell::ports::{ClaimAnswer, Clock, CommitItem, Traffic};
use stepwell::testing::ManualClock;
use stepwell::testing::conformance::World;
use stepwell::testing::conformance::world::{Flow, WORKER, completed, waiting, worker};
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

/// Asserts that a step goes waiting by the same statements whether signals are kept for it or not:
/// the timer that is due now looks for them.
async fn check_opening(world: &World, traffic: impl Fn() -> Traffic) {
    let flow = world.define("a; b < a").await;
    let mut costs = Vec::new();
    for n_kept in [0, 0, 5] {
        let run = world.start(&flow).await;
        let task = world.claim_one().await;
        for _ in 0..n_kept {
            world.signal(&run, "paid").await;
        }
        let item = CommitItem { claim: task.claim, outcome: waiting("paid/1h") };
        let before = traffic();
        world.store().commit(vec![item]).await.expect("commit");
        costs.push(traffic().since(before));
        let is_due_now = world.dump().await.timers.values().any(|due| *due == world.clock().now());
        assert_eq!(is_due_now, n_kept > 0, "a timer looks, if there is something to look at");
    }
    // What is done for the first time may cost more.
    assert_eq!(costs[1], costs[2], "without signals and with some");
}

#[tokio::test]
async fn who_goes_waiting_reads_no_signal_on_sqlite() {
    let (world, store, _folder) = sqlite();
    check_opening(&world, || store.traffic()).await;
}

#[tokio::test]
async fn who_goes_waiting_reads_no_signal_on_postgres() {
    let schema = Schema::make("opening").await;
    let world = World::new(Arc::new(schema.store.clone()), Arc::clone(&schema.clock));
    check_opening(&world, || schema.store.traffic()).await;
    schema.remove().await;
}

fn sqlite() -> (World, SqliteStore, TempDir) {
    let folder = TempDir::new().expect("a test machine has a folder for temporary files");
    let clock = Arc::new(ManualClock::new());
    let options = SqliteOptions::new(folder.path().join("waiting.db")).synchronous_normal();
    let store = SqliteStore::with_clock(options, Arc::clone(&clock) as _).expect("a fresh file");
    (World::new(Arc::new(store.clone()), clock), store, folder)
}

#[tokio::test]
async fn thousands_of_waiting_runs_cost_no_statement_on_sqlite() {
    let (world, store, _folder) = sqlite();
    check(&world, || store.traffic()).await;
}

#[tokio::test]
async fn thousands_of_waiting_runs_cost_no_statement_on_postgres() {
    let schema = Schema::make("waiting").await;
    let world = World::new(Arc::new(schema.store.clone()), Arc::clone(&schema.clock));
    check(&world, || schema.store.traffic()).await;
    schema.remove().await;
}
