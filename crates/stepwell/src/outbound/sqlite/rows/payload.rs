//! Inputs and outputs: small ones lie in the rows of runs and tasks, large ones have rows of their
//! own.

use std::borrow::Cow;

use rusqlite::params;
use stepwell_core::id::{Node, RunKey};
use stepwell_core::run::Resumed;

use super::cells::{Cells, Rows, key, selected};
use crate::outbound::sql::named;
use crate::outbound::sqlite::file::{File, corrupt};
use crate::ports::Payload;

const SQL: &str = include_str!("../sql/payload.sql");
const INSERT_INPUT: &str = named(SQL, "insert_input");
const INSERT_OUTPUT: &str = named(SQL, "insert_output");
const READ_INPUT: &str = named(SQL, "read_input");
const READ_OUTPUT: &str = named(SQL, "read_output");
const READ_OUTPUTS: &str = named(SQL, "read_outputs");

/// Payloads up to this size lie in the rows of runs and tasks. Larger ones have rows of their own,
/// because a row is written anew whenever anything in it changes.
const SMALL_BYTES_MAX: usize = 512;

pub(crate) fn is_small(payload: &Payload) -> bool {
    payload.bytes.len() <= SMALL_BYTES_MAX
}

selected! {
    /// A payload, and what may stand behind it.
    Left { Codec, Bytes, Node, ResumedBy, Signal, }
}

/// A payload whose columns are null if it lies elsewhere.
pub(super) fn small(row: Cells<'_, '_>) -> Rows<Option<Payload>> {
    let codec: Option<String> = row.get(Left::Codec)?;
    codec.map(|codec| with_codec(row, codec)).transpose()
}

/// A payload is read as two columns: its codec and its bytes.
pub(super) fn read(row: Cells<'_, '_>) -> Rows<Payload> {
    with_codec(row, row.get(Left::Codec)?)
}

fn with_codec(row: Cells<'_, '_>, codec: String) -> Rows<Payload> {
    let bytes: Vec<u8> = row.get(Left::Bytes)?;
    Ok(Payload::new(Cow::Owned(codec), bytes))
}

pub(crate) fn insert_input(file: File<'_, '_>, run_no: i64, input: &Payload) -> Rows<()> {
    let row = params![run_no, input.codec.as_ref(), input.bytes.as_ref()];
    file.run(INSERT_INPUT, row).map(drop)
}

/// The large input of a run.
pub(crate) fn input(file: File<'_, '_>, run: RunKey) -> Rows<Option<Payload>> {
    file.first(READ_INPUT, [key(run)], |row| read(Cells::of(row)))
}

pub(crate) fn insert_output(
    file: File<'_, '_>,
    run_no: i64,
    node: Node,
    output: &Payload,
) -> Rows<()> {
    let row = params![run_no, node.0, output.codec.as_ref(), output.bytes.as_ref()];
    file.run(INSERT_OUTPUT, row).map(drop)
}

/// The large output of a task.
pub(crate) fn output(file: File<'_, '_>, run: RunKey, node: Node) -> Rows<Option<Payload>> {
    file.first(READ_OUTPUT, params![key(run), node.0], |row| read(Cells::of(row)))
}

/// What the completed tasks of a run left, in the order of their nodes. A wait node left what it
/// got; another one without an output of its own has the empty payload.
pub(crate) fn outputs(file: File<'_, '_>, run: RunKey) -> Rows<Vec<(Node, Payload)>> {
    file.all(READ_OUTPUTS, [key(run)], |row| {
        let row = Cells::of(row);
        let left = match row.optional_unsigned(Left::ResumedBy)?.map(Resumed::of_number) {
            None => small(row)?.unwrap_or_else(Payload::empty),
            Some(Resumed::TimedOut) => Payload::timed_out(),
            Some(Resumed::Signal(_)) => {
                let name: Option<String> = row.get(Left::Signal)?;
                read(row)?.of_signal(&name.ok_or_else(|| corrupt("a signal is missing"))?)
            }
        };
        Ok((row.node(Left::Node)?, left))
    })
}
