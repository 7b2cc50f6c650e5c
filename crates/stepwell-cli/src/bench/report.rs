//! What was measured, as JSON or as a table for each store.

use serde::{Deserialize, Serialize};
use stepwell::cli::{Cell, Output, Tone};

use super::bench_store::StoreKind;
use super::limit::Limit;
use super::measure::Spread;

/// One scenario on one store.
#[derive(Serialize)]
pub(super) struct ScenarioRecord {
    pub(super) record: &'static str,
    pub(super) scenario: &'static str,
    pub(super) store: StoreKind,
    /// The same rows written by hand, in the same run; absent where nothing is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) limit: Option<Limit>,
    pub(super) parts: Vec<Part>,
}

/// One measurement of a scenario. What was not measured is absent.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Part {
    #[serde(rename = "part")]
    pub(super) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) n_runs: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) n_tasks: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tasks_per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) latency: Option<Spread>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rss_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) statements: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) transactions: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) statements_per_task: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) transactions_per_task: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) written_bytes_per_task: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) share_of_limit: Option<f64>,
    /// Something that has no place in the columns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<String>,
}

impl Part {
    pub(super) fn named(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// With these spans, in microseconds.
    pub(super) fn with_latency(mut self, micros: Vec<u64>) -> Self {
        self.latency = Spread::of(micros);
        self
    }

    /// Only spans: throughput of a scenario that waits says nothing.
    pub(super) fn without_rate(mut self) -> Self {
        self.tasks_per_second = None;
        self
    }
}

const HEADER: &[&str] = &[
    "scenario",
    "part",
    "tasks/s",
    "of limit",
    "p50",
    "p90",
    "p99",
    "max",
    "RSS",
    "stmts/task",
    "tx/task",
    "written/task",
];

/// Prints the table of one store.
pub(super) fn print(records: &[ScenarioRecord], output: Output) -> std::io::Result<()> {
    let Some(first) = records.first() else { return Ok(()) };
    output.line("")?;
    output.line(&output.paint(Tone::Strong, first.store.name()))?;
    if let Some(limit) = records.iter().find_map(|record| record.limit) {
        let (rate, n) = (count(limit.tasks_per_second), limit.connections);
        let connections = if n == 1 { "one connection" } else { "connections" };
        let n = if n == 1 { String::new() } else { format!("{n} ") };
        output.line(&format!("limit, written by hand: {rate} tasks/s with {n}{connections}"))?;
    }
    let rows = |record: &ScenarioRecord| {
        record.parts.iter().map(|part| row(record.scenario, part)).collect()
    };
    let rows: Vec<Vec<Cell>> = records.iter().flat_map(|r| -> Vec<_> { rows(r) }).collect();
    output.table(HEADER, &rows)?;
    for (record, part) in records.iter().flat_map(|r| r.parts.iter().map(move |p| (r, p))) {
        if let Some(note) = &part.note {
            output.line(&format!("{}, {}: {note}", record.scenario, part.name))?;
        }
    }
    Ok(())
}

fn row(scenario: &str, part: &Part) -> Vec<Cell> {
    let or_none = |text: Option<String>| text.unwrap_or_default();
    let latency = |read: fn(&Spread) -> u64| or_none(part.latency.as_ref().map(|l| span(read(l))));
    [
        scenario.to_owned(),
        part.name.clone(),
        or_none(part.tasks_per_second.map(count)),
        or_none(part.share_of_limit.map(|share| format!("{:.0} %", share * 100.0))),
        latency(|l| l.p50_micros),
        latency(|l| l.p90_micros),
        latency(|l| l.p99_micros),
        latency(|l| l.max_micros),
        or_none(part.rss_bytes.map(|n| format!("{} MiB", n >> 20))),
        or_none(part.statements_per_task.map(|n| format!("{n:.3}"))),
        or_none(part.transactions_per_task.map(|n| format!("{n:.4}"))),
        or_none(part.written_bytes_per_task.map(|n| format!("{n:.0} B"))),
    ]
    .map(Cell::plain)
    .into()
}

/// A whole number with separators.
pub(super) fn count(n: f64) -> String {
    let digits = format!("{n:.0}");
    let mut text = String::new();
    for (ix, digit) in digits.chars().enumerate() {
        if ix > 0 && (digits.len() - ix).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A span with three digits or so.
pub(super) fn span(micros: u64) -> String {
    let (millis, seconds) = (micros / 1_000, micros / 1_000_000);
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..100_000 => format!("{millis}.{} ms", micros % 1_000 / 100),
        100_000..10_000_000 => format!("{millis} ms"),
        _ => format!("{seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        assert_eq!(count(1_234_567.4), "1,234,567");
        assert_eq!(count(999.0), "999");
        assert_eq!(span(999), "999 µs");
        assert_eq!(span(12_345), "12.3 ms");
        assert_eq!(span(345_678), "345 ms");
        assert_eq!(span(34_567_890), "34 s");
    }
}
