//! What `set_default_tenant` costs, and what becomes of it when its caller goes halfway.
#![cfg(all(feature = "testing", feature = "postgres", feature = "sqlite"))]

mod support_postgres;

use std::sync::Arc;

use stepwell::ports::{DynStore, Traffic};
use stepwell::testing::ManualClock;
use stepwell::testing::conformance::World;
use stepwell::{SqliteOptions, SqliteStore, TenantSettings};
use support_postgres::Schema;
use tempfile::TempDir;

const LIMIT: TenantSettings = TenantSettings { weight: 1, tasks_max: Some(1) };

/// Starts two tasks of each of so many tenants.
async fn crowd(world: &World, n_tenants: usize) -> Vec<String> {
    let flow = world.define("a").await;
    let names: Vec<String> = (0..n_tenants).map(|n| format!("tenant-{n}")).collect();
    let requests = |name: &String| [0, 1].map(|_| world.request(name, "", &flow, b"input"));
    world.start_all(names.iter().flat_map(requests).collect()).await;
    names
}

/// Asserts that a default that holds already costs one look, however many tenants there are, and
/// that idle tenants cost next to nothing when it changes.
async fn check_cost(world: &World, traffic: impl Fn() -> Traffic) {
    crowd(world, 3).await;
    let idle = crowd(world, 1_000).await;
    for _ in 0..100 {
        let batch = world.claim_all().await;
        world.complete_together(&batch).await;
    }
    let cost = async |settings| {
        let before = traffic();
        world.store().set_default_tenant(settings).await.expect("set the default");
        traffic().since(before)
    };
    let changed = cost(LIMIT).await;
    let per_tenant = changed.statements / idle.len() as u64;
    assert!(per_tenant <= 3, "{changed:?} for {} tenants", idle.len());
    assert!(changed.transactions >= 10, "{changed:?} is not in pieces");
    let again = cost(LIMIT).await;
    assert!(again.statements <= 3 && again.transactions == 1, "{again:?}");
}

/// Asserts that whoever sets the same default again goes on where somebody was killed.
async fn check_killed(world: &World, kill: impl AsyncFn()) {
    let names = crowd(world, 120).await;
    kill().await;
    world.store().set_default_tenant(LIMIT).await.expect("set the default");
    for name in &names {
        let view = world.tenant_view(name).await;
        assert_eq!((view.n_ready, view.n_throttled), (1, 1), "{name}");
    }
}

fn sqlite() -> (World, SqliteStore, TempDir) {
    let folder = TempDir::new().expect("a test machine has a folder for temporary files");
    let clock = Arc::new(ManualClock::new());
    let options = SqliteOptions::new(folder.path().join("tenants.db")).synchronous_normal();
    let store = SqliteStore::with_clock(options, Arc::clone(&clock) as _).expect("a fresh file");
    (World::new(Arc::new(store.clone()), clock), store, folder)
}

fn postgres(schema: &Schema) -> World {
    let store: DynStore = Arc::new(schema.store.clone());
    World::new(store, Arc::clone(&schema.clock))
}

#[tokio::test]
async fn a_default_that_holds_already_costs_one_look_on_sqlite() {
    let (world, store, _folder) = sqlite();
    check_cost(&world, || store.traffic()).await;
}

#[tokio::test]
async fn a_default_that_holds_already_costs_one_look_on_postgres() {
    let schema = Schema::make("defaults").await;
    check_cost(&postgres(&schema), || schema.store.traffic()).await;
    schema.remove().await;
}

#[tokio::test]
async fn another_default_goes_on_after_its_caller_was_killed_on_sqlite() {
    let (world, _store, folder) = sqlite();
    let kill = async || {
        let file = rusqlite::Connection::open(folder.path().join("tenants.db"));
        let written = "update counter set default_tasks_max = 1, settle_from = 0";
        file.and_then(|file| file.execute_batch(written)).expect("the row is there");
    };
    check_killed(&world, kill).await;
}

#[tokio::test]
async fn another_default_goes_on_after_its_caller_was_killed_on_postgres() {
    let schema = Schema::make("defaults").await;
    let kill = async || {
        let written = "update tenant_default set tasks_max = 1, settle_from = 0";
        schema.client.batch_execute(written).await.expect("the row is there");
    };
    check_killed(&postgres(&schema), kill).await;
    schema.remove().await;
}
