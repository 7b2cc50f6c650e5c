//! The log of a run as a table.

use std::io;

use stepwell_core::time::Timestamp;

use super::words::{detail, printable, tone};
use super::{Cell, Output, Tone};
use crate::api::RunEvent;

/// Writes events as a table for people; `at` gives the words for a moment.
pub fn log_table(
    output: Output,
    events: &[RunEvent],
    at: impl Fn(Timestamp) -> String,
) -> io::Result<()> {
    let row = |event: &RunEvent| {
        let attempt = if event.attempt > 0 { event.attempt.to_string() } else { String::new() };
        vec![
            Cell::new(event.number.map_or_else(String::new, |n| n.to_string()), Tone::Faint),
            Cell::new(at(event.at), Tone::Faint),
            Cell::plain(event.step.as_deref().map(printable).unwrap_or_default()),
            Cell::plain(attempt),
            Cell::new(event.kind.name(), tone(&event.kind)),
            Cell::plain(printable(&detail(event))),
        ]
    };
    let header = ["#", "at", "step", "attempt", "event", "detail"];
    let rows: Vec<_> = events.iter().map(row).collect();
    output.table(&header, &rows)
}
