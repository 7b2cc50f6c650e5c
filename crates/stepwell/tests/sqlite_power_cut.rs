//! What a power cut leaves of a SQLite file: all that waited for the disk, and perhaps the claims
//! after it.
#![cfg(all(feature = "sqlite", feature = "testing"))]

use std::path::Path;
use std::sync::Arc;

use stepwell::testing::ManualClock;
use stepwell::testing::conformance::World;
use stepwell::{SqliteOptions, SqliteStore};
use tempfile::TempDir;

fn open(folder: &Path, clock: &ManualClock) -> World {
    let options = SqliteOptions::new(folder.join("stepwell.db"));
    let store = SqliteStore::with_clock(options, Arc::new(clock.clone())).expect("it opens");
    World::new(Arc::new(store), Arc::new(clock.clone()))
}

/// The file and its log as another machine finds them, the log cut off at a length.
fn copy(from: &Path, log_bytes: Option<u64>) -> TempDir {
    let to = TempDir::new().expect("there is room for a file");
    for name in ["stepwell.db", "stepwell.db-wal"] {
        std::fs::copy(from.join(name), to.path().join(name)).expect("it is copied");
    }
    if let Some(bytes) = log_bytes {
        let log = std::fs::OpenOptions::new().write(true).open(to.path().join("stepwell.db-wal"));
        log.and_then(|log| log.set_len(bytes)).expect("it is cut");
    }
    to
}

#[tokio::test]
async fn a_claim_that_a_power_cut_takes_back_is_made_again() {
    // R1: a lone claim does not wait for the disk, so it may be missing; nothing else is.
    let folder = TempDir::new().expect("there is room for a file");
    let log_bytes = || {
        let log = std::fs::metadata(folder.path().join("stepwell.db-wal"));
        log.expect("there is a log").len()
    };
    let clock = ManualClock::new();
    let world = open(folder.path(), &clock);
    let flow = world.define("a; b < a").await;
    let run = world.start(&flow).await;
    let before = log_bytes();
    assert_eq!(world.claim_all().await.steps(), "a");
    assert!(log_bytes() > before, "the claim outlives the process");

    let crashed = copy(folder.path(), None);
    let after_crash = open(crashed.path(), &clock);
    assert_eq!(after_crash.states(&run).await, "a RUNNING, b PENDING");

    let cut = copy(folder.path(), Some(before));
    let after_cut = open(cut.path(), &clock);
    assert_eq!(after_cut.states(&run).await, "a QUEUED, b PENDING");
    let batch = after_cut.claim_all().await;
    assert_eq!((batch.steps().as_str(), batch.of("a").attempt), ("a", 1));
    after_cut.complete(batch.of("a")).await;
    assert_eq!(after_cut.states(&run).await, "a COMPLETED, b QUEUED");
}
