//! Signals, with their payloads.

use rusqlite::params;
use stepwell_core::id::{Node, RunKey};
use stepwell_core::run::SignalRow;

use super::cells::{Cells, Rows, int, json, key, selected};
use super::payload;
use crate::outbound::sql::{Column, Table, named};
use crate::outbound::sqlite::file::File;
use crate::ports::{Payload, StoredSignal};

const SQL: &str = include_str!("../sql/signal.sql");
const CONSUME_SIGNAL: &str = named(SQL, "consume_signal");
const DUMP_SIGNALS: &str = named(SQL, "dump_signals");
const FIND_SIGNAL: &str = named(SQL, "find_signal");
const INSERT_SIGNAL: &str = named(SQL, "insert_signal");
const READ_SIGNAL_PAYLOAD: &str = named(SQL, "read_signal_payload");
const READ_SIGNALS: &str = named(SQL, "read_signals");
const READ_UNCONSUMED: &str = named(SQL, "read_unconsumed");

pub(super) const SIGNAL: Table = Table {
    name: "signal",
    columns: &[
        Column::key("run", "integer"),
        Column::key("number", "integer"),
        Column::kept("name", "text"),
        Column::kept("key", "text"),
        Column::kept("attributes", "text"),
        Column::kept("digest", "blob"),
        Column::kept("sent_at", "integer"),
        Column::changed("consumed_by", "integer"),
    ],
};

const fn at(column: &str) -> usize {
    SIGNAL.index(column)
}

fn read(row: Cells<'_, '_>) -> Rows<SignalRow> {
    Ok(SignalRow {
        number: row.unsigned(const { at("number") })?,
        name: row.get(const { at("name") })?,
        key: row.get(const { at("key") })?,
        attributes: row.json("attributes", const { at("attributes") })?,
        digest: row.get(const { at("digest") })?,
        sent_at: row.time(const { at("sent_at") })?,
        consumed_by: row.optional_node(const { at("consumed_by") })?,
    })
}

pub(crate) fn insert(
    file: File<'_, '_>,
    run_no: i64,
    signal: &SignalRow,
    payload: &Payload,
) -> Rows<()> {
    file.run(
        INSERT_SIGNAL,
        params![
            run_no,
            int(signal.number),
            signal.name,
            signal.key,
            json(&signal.attributes)?,
            signal.digest,
            signal.sent_at.as_micros(),
            signal.consumed_by.map(|node| node.0),
            payload.codec.as_ref(),
            payload.bytes.as_ref(),
        ],
    )?;
    Ok(())
}

/// A task got a signal that was stored before.
pub(crate) fn consume(file: File<'_, '_>, run_no: i64, number: u64, by: Node) -> Rows<()> {
    file.run(CONSUME_SIGNAL, params![run_no, int(number), by.0]).map(drop)
}

/// The signal of a run that was stored under a key.
pub(crate) fn find(file: File<'_, '_>, run: RunKey, signal_key: &str) -> Rows<Option<SignalRow>> {
    file.first(FIND_SIGNAL, params![key(run), signal_key], |row| read(Cells::of(row)))
}

/// The signals of a run that nobody got, in the order of their numbers.
pub(crate) fn unconsumed(file: File<'_, '_>, run: RunKey) -> Rows<Vec<SignalRow>> {
    file.all(READ_UNCONSUMED, [key(run)], |row| read(Cells::of(row)))
}

/// Every signal of a run, in the order of their numbers.
pub(crate) fn of_run(file: File<'_, '_>, run: RunKey) -> Rows<Vec<StoredSignal>> {
    file.all(READ_SIGNALS, [key(run)], |row| {
        let row = Cells::of(row);
        let signal = read(row)?;
        let payload = payload::read(row.after(SIGNAL.columns.len()))?.of_signal(&signal.name);
        Ok(StoredSignal { row: signal, payload })
    })
}

selected! {
    #[expect(dead_code, reason = "the payload is read by its own columns, which come first")]
    Brought { Codec, Bytes, Name, }
}

/// The payload of a signal, with its name beside it.
pub(crate) fn payload(file: File<'_, '_>, run: RunKey, number: u64) -> Rows<Option<Payload>> {
    file.first(READ_SIGNAL_PAYLOAD, params![key(run), int(number)], |row| {
        let row = Cells::of(row);
        let name: String = row.get(Brought::Name)?;
        Ok(payload::read(row)?.of_signal(&name))
    })
}

pub(crate) fn all(file: File<'_, '_>) -> Rows<Vec<(RunKey, SignalRow)>> {
    file.all(DUMP_SIGNALS, [], |row| {
        let row = Cells::of(row);
        Ok((row.run_key(SIGNAL.columns.len())?, read(row)?))
    })
}
