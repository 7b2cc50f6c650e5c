//! What tests need: engines on virtual time, and the suite that every store must pass.

mod activity;
mod awaited_store;
mod blocking_call;
pub mod conformance;
mod counted_ids;
mod driver;
mod executions;
mod gate;
mod hope;
mod manual_clock;
#[cfg(feature = "postgres")]
mod postgres;
mod runtime;
mod scheduler;
mod stuck;
mod test_engine;
mod test_engine_builder;
mod waits;

pub use counted_ids::CountedIds;
pub use gate::Gate;
pub use manual_clock::ManualClock;
#[cfg(feature = "postgres")]
pub use postgres::TestDatabase;
pub use scheduler::ManualScheduler;
pub use test_engine::TestEngine;
pub use test_engine_builder::TestEngineBuilder;
