//! The memory store keeps every promise of its ports.
#![cfg(feature = "testing")]

use std::sync::Arc;

use async_trait::async_trait;
use stepwell::MemoryStore;
use stepwell::ports::DynStore;
use stepwell::testing::ManualClock;
use stepwell::testing::conformance::StoreFixture;

struct Memory;

#[async_trait]
impl StoreFixture for Memory {
    async fn open(&self, clock: Arc<ManualClock>) -> DynStore {
        Arc::new(MemoryStore::with_clock(clock))
    }
}

stepwell::conformance_suite!(Memory);
