//! What tests need: engines on virtual time, and the suite that every store must pass.

mod bed;
pub mod conformance;
mod counted_ids;
mod manual_clock;
#[cfg(feature = "postgres")]
mod postgres;
mod scheduler;
mod test_engine;

pub use counted_ids::CountedIds;
pub use manual_clock::ManualClock;
#[cfg(feature = "postgres")]
pub use postgres::TestDatabase;
pub use scheduler::ManualScheduler;
pub use test_engine::{TestEngine, TestEngineBuilder};
