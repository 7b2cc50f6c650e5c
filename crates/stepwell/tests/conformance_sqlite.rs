//! The SQLite store keeps every promise of its ports.
#![cfg(all(feature = "testing", feature = "sqlite"))]

use std::sync::Arc;

use async_trait::async_trait;
use stepwell::ports::DynStore;
use stepwell::testing::ManualClock;
use stepwell::testing::conformance::StoreFixture;
use stepwell::{SqliteOptions, SqliteStore};
use tempfile::TempDir;

/// A file in a folder that goes with the test.
struct Sqlite(TempDir);

impl Sqlite {
    fn new() -> Self {
        Self(TempDir::new().expect("a test machine has a folder for temporary files"))
    }
}

#[async_trait]
impl StoreFixture for Sqlite {
    async fn open(&self, clock: Arc<ManualClock>) -> DynStore {
        // The suite is about rules; whether the disk keeps its word is tested elsewhere.
        let path = self.0.path().join("stepwell.db");
        let options = SqliteOptions::new(path).synchronous_normal();
        Arc::new(SqliteStore::with_clock(options, clock).expect("a fresh file opens"))
    }
}

stepwell::conformance_suite!(Sqlite::new());
