//! What a span of work cost: time, traffic, bytes written and memory.

use std::time::Instant;

use stepwell::Traffic;

use super::bench_store::BenchStore;
use super::measure;
use super::report::Part;
use crate::commands::Failure;

/// Reads time, traffic, bytes and memory from here on.
pub(super) struct Meter {
    began_at: Instant,
    traffic: Option<Traffic>,
    bytes_written: Option<u64>,
}

impl Meter {
    pub(super) async fn begin(store: &BenchStore) -> Result<Self, Failure> {
        measure::forget_memory_peak();
        let bytes_written = store.bytes_written().await?;
        Ok(Self { began_at: measure::now(), traffic: store.open.traffic(), bytes_written })
    }

    /// What so many runs and tasks have cost since then.
    pub(super) async fn end(
        self,
        store: &BenchStore,
        part: &str,
        n_runs: usize,
        n_tasks: usize,
    ) -> Result<Part, Failure> {
        let span = self.began_at.elapsed();
        let rss_bytes = measure::memory_peak();
        let n_tasks = n_tasks as u64;
        let traffic = self.traffic.zip(store.open.traffic()).map(|(then, now)| now.since(then));
        let bytes = self.bytes_written.zip(store.bytes_written().await?);
        let bytes = bytes.map(|(then, now)| now.saturating_sub(then));
        Ok(Part {
            n_runs: Some(n_runs as u64),
            n_tasks: Some(n_tasks),
            seconds: Some(span.as_secs_f64()),
            tasks_per_second: Some(measure::rate(n_tasks, span)),
            statements_per_task: traffic.map(|t| measure::per_count(t.statements, n_tasks)),
            transactions_per_task: traffic.map(|t| measure::per_count(t.transactions, n_tasks)),
            statements: traffic.map(|t| t.statements),
            transactions: traffic.map(|t| t.transactions),
            written_bytes_per_task: bytes.map(|n| measure::per_count(n, n_tasks)),
            rss_bytes,
            ..Part::named(part)
        })
    }
}
