//! A page of a listing looks at a bounded number of runs, however few are like its filter.
#![cfg(all(feature = "testing", feature = "postgres", feature = "sqlite"))]

mod support_postgres;

use std::sync::Arc;

use stepwell::core::limits::PAGE_LOOKS_MAX;
use stepwell::ports::{DynStore, RunFilter};
use stepwell::testing::ManualClock;
use stepwell::testing::conformance::World;
use stepwell::testing::conformance::world::tenant;
use stepwell::{MemoryStore, SqliteOptions, SqliteStore};
use support_postgres::Schema;
use tempfile::TempDir;

/// Asserts that the one run of a tenant is found behind more runs of another than one page looks
/// at, on the second page.
async fn check(store: DynStore, clock: Arc<ManualClock>) {
    let world = World::new(Arc::clone(&store), clock);
    let flow = world.define_unserved("a").await;
    let rare = world.start_for("rare", &flow).await;
    for n_runs in [PAGE_LOOKS_MAX / 2; 2] {
        let requests = (0..n_runs).map(|_| world.request("acme", "", &flow, b"input")).collect();
        store.start(requests).await.expect("start a crowd");
    }
    let filter = RunFilter { tenant: Some(tenant("rare")), ..RunFilter::default() };
    let first = store.list(&filter, None, 10).await.expect("list runs");
    assert!(first.runs.is_empty() && first.next.is_some(), "{:?}", first.next);
    let second = store.list(&filter, first.next, 10).await.expect("list runs");
    let keys: Vec<_> = second.runs.iter().map(|run| run.row.key).collect();
    assert_eq!((keys, second.next), (vec![rare.key], None));
    let all = store.list(&RunFilter::default(), None, 10).await.expect("list runs");
    assert_eq!(all.runs.len(), 10, "whoever asks for all gets full pages");
    let of_acme = RunFilter { tenant: Some(tenant("acme")), ..RunFilter::default() };
    let page = store.list(&of_acme, None, 10).await.expect("list runs");
    assert_eq!(page.next, page.runs.last().map(|run| run.row.key), "it goes on where it ends");
}

#[tokio::test]
async fn a_rare_run_is_found_on_a_later_page_in_memory() {
    let clock = Arc::new(ManualClock::new());
    check(Arc::new(MemoryStore::with_clock(Arc::clone(&clock) as _)), clock).await;
}

#[tokio::test]
async fn a_rare_run_is_found_on_a_later_page_on_sqlite() {
    let folder = TempDir::new().expect("a test machine has a folder for temporary files");
    let clock = Arc::new(ManualClock::new());
    let options = SqliteOptions::new(folder.path().join("listing.db")).synchronous_normal();
    let store = SqliteStore::with_clock(options, Arc::clone(&clock) as _).expect("a fresh file");
    check(Arc::new(store), clock).await;
}

#[tokio::test]
async fn a_rare_run_is_found_on_a_later_page_on_postgres() {
    let schema = Schema::make("listing").await;
    check(Arc::new(schema.store.clone()), Arc::clone(&schema.clock)).await;
    schema.remove().await;
}
