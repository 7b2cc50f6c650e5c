//! Real time, real threads, real chance: the one leaf that touches them.

mod async_context;
mod clock;
mod host;
mod ids;
mod os_signals;
mod spawner;

pub(crate) use async_context::is_polled;
pub(crate) use clock::SystemClock;
pub(crate) use host::host_name;
pub(crate) use ids::SystemIds;
pub use os_signals::shutdown_signal;
pub(crate) use spawner::TokioSpawner;
