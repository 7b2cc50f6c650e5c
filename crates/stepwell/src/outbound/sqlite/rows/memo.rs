//! What functions have done or begun, with the values of their steps.

use rusqlite::{Row, params};
use stepwell_core::failure::Failure;
use stepwell_core::id::{Node, RunKey, Token};
use stepwell_core::run::{MemoOutcome, MemoRow, MemoState, Resumed};
use stepwell_core::time::Timestamp;

use super::cells::{Cells, Rows, int, json, key, selected, token};
use super::payload;
use crate::outbound::sql::{Column, Table, named};
use crate::outbound::sqlite::file::{File, corrupt};
use crate::ports::{ClaimRef, Payload, StoredMemo};

const SQL: &str = include_str!("../sql/memo.sql");
const CLEAR_MEMOS: &str = named(SQL, "clear_memos");
const DUMP_MEMOS: &str = named(SQL, "dump_memos");
const FIND_MEMO: &str = named(SQL, "find_memo");
const FORGET_MEMO: &str = named(SQL, "forget_memo");
const PUT_MEMO: &str = named(SQL, "put_memo");
const READ_HISTORY: &str = named(SQL, "read_history");
const READ_MEMOS: &str = named(SQL, "read_memos");
const SET_MEMO_PAYLOAD: &str = named(SQL, "set_memo_payload");

pub(super) const MEMO: Table = Table {
    name: "memo",
    columns: &[
        Column::key("run", "integer"),
        Column::key("node", "integer"),
        Column::key("key", "text"),
        Column::changed("number", "integer"),
        Column::changed("state", "integer"),
        Column::changed("tries", "integer"),
        Column::changed("began_at", "integer"),
        Column::changed("at", "integer"),
        Column::changed("due_at", "integer"),
        Column::changed("refers_to", "integer"),
        Column::changed("failure", "text"),
        Column::changed("token", "blob"),
    ],
};

const fn at(column: &str) -> usize {
    MEMO.index(column)
}

fn read(row: Cells<'_, '_>) -> Rows<MemoRow> {
    Ok(MemoRow {
        node: row.node(const { at("node") })?,
        key: row.get(const { at("key") })?,
        number: row.unsigned(const { at("number") })?,
        outcome: outcome(row)?,
        tries: row.count(const { at("tries") })?,
        began_at: row.time(const { at("began_at") })?,
        at: row.time(const { at("at") })?,
    })
}

fn outcome(row: Cells<'_, '_>) -> Rows<MemoOutcome> {
    let state = row.state(const { at("state") }, MemoState::ALL, |state| state as i64)?;
    let due = row.optional_time(const { at("due_at") })?;
    let failure = row.optional_json::<Failure>("memo failure", const { at("failure") })?;
    let refers_to = row.optional_unsigned(const { at("refers_to") })?;
    MemoOutcome::of_columns(state, due, failure, refers_to).map_err(corrupt)
}

selected! {
    #[expect(dead_code, reason = "payloads are read by their own columns, which come together")]
    Beside { Codec, Bytes, SignalCodec, SignalBytes, SignalName, }
}

/// A memo with its value, or with what ended its wait.
fn read_stored(row: &Row<'_>) -> Rows<StoredMemo> {
    let row = Cells::of(row);
    let memo = read(row)?;
    let beside = row.after(MEMO.columns.len());
    let payload = match memo.outcome {
        MemoOutcome::Ended(Resumed::TimedOut) => Some(Payload::timed_out()),
        MemoOutcome::Ended(Resumed::Signal(_)) => {
            let name: Option<String> = beside.get(Beside::SignalName)?;
            let name = name.ok_or_else(|| corrupt("the signal of a memo is missing"))?;
            Some(payload::read(beside.after(Beside::SignalCodec.into()))?.of_signal(&name))
        }
        _ => payload::small(beside)?,
    };
    Ok(StoredMemo { row: memo, payload })
}

/// Stores a memo in the place of one of its key, unless a function may have heard of that one. Says
/// whether it did.
pub(crate) fn put(
    file: File<'_, '_>,
    run_no: i64,
    memo: &MemoRow,
    payload: Option<&Payload>,
    claim: Option<Token>,
) -> Rows<bool> {
    let (mut due, mut refers_to, mut failure) = (None, None, None);
    match &memo.outcome {
        MemoOutcome::Begun { due: at, failure: why } => {
            (due, failure) = (at.map(Timestamp::as_micros), why.as_ref());
        }
        MemoOutcome::Failed(why) => failure = Some(why),
        MemoOutcome::Ended(Resumed::Signal(number)) => refers_to = Some(int(*number)),
        MemoOutcome::Round(round) => refers_to = Some(i64::from(*round)),
        MemoOutcome::Given | MemoOutcome::Slept | MemoOutcome::Ended(Resumed::TimedOut) => {}
    }
    let n_stored = file.run(
        PUT_MEMO,
        params![
            run_no,
            memo.node.0,
            memo.key,
            int(memo.number),
            memo.outcome.state() as i64,
            memo.tries,
            memo.began_at.as_micros(),
            memo.at.as_micros(),
            due,
            refers_to,
            failure.map(json).transpose()?,
            claim.map(token),
            payload.map(|payload| payload.codec.as_ref()),
            payload.map(|payload| payload.bytes.as_ref()),
        ],
    )?;
    Ok(n_stored > 0)
}

/// Gives a memo what lies beside it.
pub(crate) fn set_payload(
    file: File<'_, '_>,
    run_no: i64,
    node: Node,
    memo_key: &str,
    payload: &Payload,
) -> Rows<()> {
    let row = params![run_no, node.0, memo_key, payload.codec.as_ref(), payload.bytes.as_ref()];
    file.run(SET_MEMO_PAYLOAD, row).map(drop)
}

/// The memo of a key that was stored under a claim.
pub(crate) fn under(file: File<'_, '_>, claim: ClaimRef, memo_key: &str) -> Rows<Option<MemoRow>> {
    let params = params![key(claim.run), claim.node.0, memo_key, token(claim.token)];
    file.first(FIND_MEMO, params, |row| read(Cells::of(row)))
}

/// The memos of a task, or of all tasks of a run, in the order of tasks and keys.
pub(crate) fn of_run(file: File<'_, '_>, run: RunKey, node: Option<Node>) -> Rows<Vec<StoredMemo>> {
    file.all(READ_MEMOS, params![key(run), node.map(|node| node.0)], read_stored)
}

/// What is told of earlier executions of a task.
pub(crate) struct Earlier {
    pub(crate) has_suspended: bool,
    pub(crate) has_losses: bool,
    pub(crate) has_signals: bool,
    pub(crate) began_at: Option<Timestamp>,
}

selected! { Told { HasSuspended, HasLosses, HasSignals, BeganAt, } }

pub(crate) fn earlier(file: File<'_, '_>, run: RunKey, node: Node) -> Rows<Option<Earlier>> {
    file.first(READ_HISTORY, params![key(run), node.0], |row| {
        let row = Cells::of(row);
        Ok(Earlier {
            has_suspended: row.get(Told::HasSuspended)?,
            has_losses: row.get(Told::HasLosses)?,
            has_signals: row.get(Told::HasSignals)?,
            began_at: row.optional_time(Told::BeganAt)?,
        })
    })
}

pub(crate) fn forget(file: File<'_, '_>, run_no: i64, node: Node, memo_key: &str) -> Rows<()> {
    file.run(FORGET_MEMO, params![run_no, node.0, memo_key]).map(drop)
}

/// Forgets all memos of a task.
pub(crate) fn clear(file: File<'_, '_>, run_no: i64, node: Node) -> Rows<()> {
    file.run(CLEAR_MEMOS, params![run_no, node.0]).map(drop)
}

pub(crate) fn all(file: File<'_, '_>) -> Rows<Vec<(RunKey, MemoRow)>> {
    file.all(DUMP_MEMOS, [], |row| {
        let row = Cells::of(row);
        Ok((row.run_key(MEMO.columns.len())?, read(row)?))
    })
}
