//! Clocks, pauses, memory and percentiles: what figures are made of.
//!
//! The one place of the benchmarks that reads a clock or waits.

use std::fs;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use stepwell::Timestamp;

/// Percentiles of measured spans, in microseconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Spread {
    pub(super) n: usize,
    pub(super) p50_micros: u64,
    pub(super) p90_micros: u64,
    pub(super) p99_micros: u64,
    pub(super) max_micros: u64,
}

impl Spread {
    /// The percentiles of these spans; `None` if there are none.
    pub(super) fn of(mut micros: Vec<u64>) -> Option<Self> {
        micros.sort_unstable();
        let max_micros = *micros.last()?;
        // The smallest value that so many per cent of all do not exceed.
        let rank = |percent: usize| micros[(micros.len() * percent).div_ceil(100).max(1) - 1];
        let (p50_micros, p90_micros, p99_micros) = (rank(50), rank(90), rank(99));
        Some(Self { n: micros.len(), p50_micros, p90_micros, p99_micros, max_micros })
    }
}

/// A moment of the machine's monotonic clock.
#[expect(clippy::disallowed_methods, reason = "measurements are of real time")]
pub(super) fn now() -> Instant {
    Instant::now()
}

/// The machine's wall clock, as stores on this machine see it.
#[expect(clippy::disallowed_methods, reason = "measurements are of real time")]
pub(super) fn wall_clock() -> Timestamp {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Timestamp::EPOCH.after(since_epoch.unwrap_or_default())
}

/// Waits in real time.
#[expect(clippy::disallowed_methods, reason = "the binary's own pause, outside of any engine")]
pub(super) async fn pause(span: Duration) {
    tokio::time::sleep(span).await;
}

/// Runs a task beside the others.
#[expect(clippy::disallowed_methods, reason = "the binary's own tasks, outside of any engine")]
pub(super) fn spawn<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> tokio::task::JoinHandle<T> {
    tokio::spawn(future)
}

/// Runs code that blocks on a thread of its own.
#[expect(clippy::disallowed_methods, reason = "hand-written statements block their thread")]
pub(super) fn spawn_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> tokio::task::JoinHandle<T> {
    tokio::task::spawn_blocking(work)
}

/// Whole microseconds; a span that does not fit is as long as can be.
pub(super) fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

/// How many a second.
pub(super) fn rate(n: u64, span: Duration) -> f64 {
    per(n, span.as_secs_f64())
}

/// A share; nothing of nothing is nothing.
#[expect(clippy::cast_precision_loss, reason = "figures for people have a few digits")]
pub(super) fn per(n: u64, of: f64) -> f64 {
    if of > 0.0 { n as f64 / of } else { 0.0 }
}

/// A share of a count.
#[expect(clippy::cast_precision_loss, reason = "figures for people have a few digits")]
pub(super) fn per_count(n: u64, of: u64) -> f64 {
    per(n, of as f64)
}

/// Forgets how much memory this process had at most, where the system allows it.
pub(super) fn forget_memory_peak() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// The most memory this process had at once, in bytes; `None` where the system does not say.
pub(super) fn memory_peak() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// The bytes this process has written to files so far; `None` where the system does not say.
pub(super) fn bytes_written() -> Option<u64> {
    let io = fs::read_to_string("/proc/self/io").ok()?;
    io.lines().find_map(|line| line.strip_prefix("wchar: "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_value_that_was_measured() {
        let spread = Spread::of((1..=200).rev().collect()).expect("there are values");
        assert_eq!((spread.p50_micros, spread.p90_micros), (100, 180));
        assert_eq!((spread.p99_micros, spread.max_micros), (198, 200));
        let one = Spread::of(vec![7]).expect("there is a value");
        assert_eq!((one.p50_micros, one.p99_micros, one.max_micros), (7, 7, 7));
        assert!(Spread::of(Vec::new()).is_none());
    }

    #[test]
    fn a_rate_over_no_time_is_nothing() {
        assert!(rate(5, Duration::ZERO).abs() < f64::EPSILON);
        assert!((rate(5, Duration::from_secs(2)) - 2.5).abs() < f64::EPSILON);
    }
}
