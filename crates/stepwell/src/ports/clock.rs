//! Time as a port.

use std::time::Duration;

use stepwell_core::store_time::Reading;
use stepwell_core::time::Timestamp;

use super::BoxFuture;

/// Tells and awaits time. Nothing else in the engine may.
pub trait Clock: Send + Sync + 'static {
    /// The time of day. Stores without a clock of their own go by it; it may be set, ahead or back,
    /// so spans within the process are measured by [`Clock::elapsed`].
    fn now(&self) -> Timestamp;

    /// How long this clock has been running, by a clock that never steps back.
    fn elapsed(&self) -> Duration;

    /// Both times of this moment.
    fn read(&self) -> Reading {
        Reading { now: self.now(), elapsed: self.elapsed() }
    }

    /// Completes after `span`.
    fn sleep(&self, span: Duration) -> BoxFuture<()>;

    /// Completes when the time of day has jumped: it and [`Clock::elapsed`] have moved on by spans
    /// that differ by a second or more, as after a machine was suspended. Never, for a clock that
    /// cannot tell.
    fn jumped(&self) -> BoxFuture<()> {
        Box::pin(std::future::pending())
    }
}
