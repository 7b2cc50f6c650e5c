//! What a run waits for, and signals that nobody got yet.

use std::collections::BTreeMap;

use serde::Serialize;
use stepwell_core::id::Node;
use stepwell_core::run::{WaitKind, WaitRow};

use super::payload::PayloadRecord;
use super::picture::RunPicture;
use crate::cli::words::{clock_millis, moment, printable};
use crate::cli::{Cell, Failure, Output, Tone};
use crate::ports::StoredSignal;

/// An open wait as JSON.
#[derive(Serialize)]
pub(super) struct WaitRecord<'picture> {
    step: &'picture str,
    /// The call of a function that waits.
    #[serde(skip_serializing_if = "str::is_empty")]
    key: &'picture str,
    signals: &'picture [String],
    matching: &'picture BTreeMap<String, String>,
    opened_at: String,
    deadline: Option<String>,
}

/// A signal that nobody got yet as JSON.
#[derive(Serialize)]
pub(super) struct SignalRecord<'picture> {
    number: u64,
    name: &'picture str,
    key: &'picture str,
    attributes: &'picture BTreeMap<String, String>,
    sent_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<PayloadRecord<'picture>>,
}

impl<'picture> WaitRecord<'picture> {
    fn new(picture: &'picture RunPicture, wait: &'picture WaitRow) -> Self {
        Self {
            step: step(picture, wait.node),
            key: &wait.key,
            signals: &wait.signals,
            matching: &wait.matching,
            opened_at: moment(wait.opened_at),
            deadline: wait.deadline.map(moment),
        }
    }

    /// All waits that are open.
    pub(super) fn all(picture: &'picture RunPicture) -> Vec<Self> {
        picture.waits.iter().map(|wait| Self::new(picture, wait)).collect()
    }
}

impl<'picture> SignalRecord<'picture> {
    fn new(signal: &'picture StoredSignal, has_payloads: bool) -> Self {
        let row = &signal.row;
        Self {
            number: row.number,
            name: &row.name,
            key: &row.key,
            attributes: &row.attributes,
            sent_at: moment(row.sent_at),
            payload: has_payloads.then(|| PayloadRecord::new(&signal.payload)),
        }
    }

    /// All signals that nobody got.
    pub(super) fn all(picture: &'picture RunPicture) -> Vec<Self> {
        let has_payloads = picture.has_payloads;
        picture.signals.iter().map(|signal| Self::new(signal, has_payloads)).collect()
    }
}

/// Both tables, each only if there is something in it.
pub(super) fn print(picture: &RunPicture, lines_max: usize, output: Output) -> Result<(), Failure> {
    let waits: Vec<Vec<Cell>> = picture.waits.iter().map(|wait| wait_row(picture, wait)).collect();
    let header = ["step", "signals", "with", "since, until (UTC)"];
    print_table(("Waits", "open waits"), &header, waits, lines_max, output)?;
    let signals = picture.signals.iter().map(signal_row).collect();
    let header = ["signal", "number", "key", "with", "sent (UTC)"];
    print_table(("Signals that nobody got", "signals"), &header, signals, lines_max, output)
}

pub(super) fn print_table(
    (title, what): (&str, &str),
    header: &[&str],
    mut rows: Vec<Vec<Cell>>,
    lines_max: usize,
    output: Output,
) -> Result<(), Failure> {
    if rows.is_empty() {
        return Ok(());
    }
    let n_rows = rows.len();
    if lines_max > 0 {
        rows.truncate(lines_max);
    }
    output.line("")?;
    output.line(&output.paint(Tone::Strong, title))?;
    output.table(header, &rows)?;
    let n_left_out = n_rows - rows.len();
    if n_left_out > 0 {
        let more = format!("{n_left_out} more {what}; --lines 0 shows all of them");
        output.line(&output.paint(Tone::Faint, &more))?;
    }
    Ok(())
}

fn wait_row(picture: &RunPicture, wait: &WaitRow) -> Vec<Cell> {
    let until = wait.deadline.map(|deadline| format!("until {}", clock_millis(deadline)));
    let times = std::iter::once(clock_millis(wait.opened_at)).chain(until);
    vec![
        Cell::plain(printable(&name(picture, wait))),
        Cell::plain(waits_for(wait)),
        Cell::plain(attributes(&wait.matching)),
        Cell::plain(times.collect::<Vec<_>>().join("\n")),
    ]
}

/// The step that waits, and the call of its function, if it is one.
fn name(picture: &RunPicture, wait: &WaitRow) -> String {
    let step = step(picture, wait.node);
    if wait.key.is_empty() { step.to_owned() } else { format!("{step} / {}", wait.key) }
}

fn waits_for(wait: &WaitRow) -> String {
    match wait.kind {
        WaitKind::Signal => printable(&wait.signals.join(" or ")),
        WaitKind::Sleep => "(sleeps)".to_owned(),
        WaitKind::Retry => "(tries again)".to_owned(),
    }
}

fn signal_row(signal: &StoredSignal) -> Vec<Cell> {
    let row = &signal.row;
    vec![
        Cell::plain(printable(&row.name)),
        Cell::plain(row.number.to_string()),
        Cell::plain(printable(&row.key)),
        Cell::plain(attributes(&row.attributes)),
        Cell::plain(clock_millis(row.sent_at)),
    ]
}

fn attributes(attributes: &BTreeMap<String, String>) -> String {
    let pairs: Vec<String> =
        attributes.iter().map(|(name, value)| format!("{name}={value}")).collect();
    printable(&pairs.join(", "))
}

pub(super) fn step(picture: &RunPicture, node: Node) -> &str {
    picture.definition.definition.name(node)
}
