//! Rows of `memo`.

use stepwell_core::failure::Failure;
use stepwell_core::id::{Node, RunKey, Token};
use stepwell_core::run::{MemoOutcome, MemoRow, MemoState, Resumed};
use stepwell_core::time::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use super::cells::{Cells, Columns, columns, selected};
use super::payload::payload;
use super::{Param, Read, corrupt, int, int32, json, key, token};
use crate::ports::{ClaimRef, Payload, StoredMemo};

columns! {
    /// The columns of `memo`, but for its value.
    MEMO: Col = "memo" {
        key Run "run" "uuid",
        key Node "node" "int",
        key Key "key" "text",
        changed Number "number" "bigint",
        changed State "state" "smallint",
        changed Tries "tries" "int",
        changed BeganAt "began_at" "bigint",
        changed At "at" "bigint",
        changed DueAt "due_at" "bigint",
        changed RefersTo "refers_to" "bigint",
        changed Failure "failure" "text",
        changed Token "token" "uuid",
    }
}

/// `{memo_stored}` is what is stored of a memo at the time of the store. Nothing was begun later
/// than that.
pub(super) fn stored_words() -> [(&'static str, String); 1] {
    let value = |column: &Col| match (column, MEMO.columns[column.index()].name) {
        (Col::At, _) => "clock.now".to_owned(),
        (Col::BeganAt, name) => format!("least(m.{name}, clock.now)"),
        (_, name) => format!("m.{name}"),
    };
    [("{memo_stored}", Col::ALL.iter().map(value).collect::<Vec<_>>().join(", "))]
}

/// A memo with its run.
pub(crate) fn read(row: &Row) -> Read<(RunKey, MemoRow)> {
    let cells = Cells::of(row);
    let memo = MemoRow {
        node: cells.node(Col::Node)?,
        key: cells.get(Col::Key)?,
        number: cells.unsigned(Col::Number)?,
        outcome: outcome(cells)?,
        tries: cells.count(Col::Tries)?,
        began_at: cells.time(Col::BeganAt)?,
        at: cells.time(Col::At)?,
    };
    Ok((cells.run_key(Col::Run)?, memo))
}

fn outcome(cells: Cells<'_>) -> Read<MemoOutcome> {
    let state = cells.state(Col::State, MemoState::ALL, |state| state as i16)?;
    let due = cells.optional_time(Col::DueAt)?;
    let failure = cells.optional_json::<Failure>(Col::Failure, "memo failure")?;
    let refers_to: Option<i64> = cells.get(Col::RefersTo)?;
    let refers_to = refers_to.and_then(|number| u64::try_from(number).ok());
    MemoOutcome::of_columns(state, due, failure, refers_to).map_err(corrupt)
}

selected! {
    /// Read with a memo.
    Beside { Codec, Bytes, SignalCodec, SignalBytes, SignalName, }
}

/// A memo with its value, or with what ended its wait, and its run.
pub(crate) fn read_stored(row: &Row) -> Read<(RunKey, StoredMemo)> {
    let (run, memo) = read(row)?;
    let beside = Cells::of(row).behind::<Col>();
    let payload = match memo.outcome {
        MemoOutcome::Ended(Resumed::TimedOut) => Some(Payload::timed_out()),
        MemoOutcome::Ended(Resumed::Signal(_)) => {
            let name: Option<&str> = beside.get(Beside::SignalName)?;
            let name = name.ok_or_else(|| corrupt("the signal of a memo is missing"))?;
            Some(payload(beside, Beside::SignalCodec, Beside::SignalBytes)?.of_signal(name))
        }
        _ => {
            let codec: Option<&str> = beside.get(Beside::Codec)?;
            codec.map(|_| payload(beside, Beside::Codec, Beside::Bytes)).transpose()?
        }
    };
    Ok((run, StoredMemo { row: memo, payload }))
}

selected! { Held { Run, Node, Token, Now, NStored, } }

/// A claim that holds its task, the time of the store, and how many memos were stored in all.
pub(crate) fn read_held(row: &Row) -> Read<(ClaimRef, Timestamp, u64)> {
    let cells = Cells::of(row);
    let (run, node) = (cells.run_key(Held::Run)?, cells.node(Held::Node)?);
    let claim = ClaimRef { run, node, token: cells.token(Held::Token)? };
    Ok((claim, cells.time(Held::Now)?, cells.unsigned(Held::NStored)?))
}

/// A memo that was stored before under a claim.
pub(crate) fn read_found(row: &Row) -> Read<((ClaimRef, String), MemoRow)> {
    let (run, memo) = read(row)?;
    let claim = ClaimRef { run, node: memo.node, token: Cells::of(row).token(Col::Token)? };
    Ok(((claim, memo.key.clone()), memo))
}

/// What is told of earlier executions of a task.
#[derive(Clone, Copy)]
pub(crate) struct Earlier {
    pub(crate) has_suspended: bool,
    pub(crate) has_losses: bool,
    pub(crate) has_signals: bool,
    pub(crate) began_at: Option<Timestamp>,
}

selected! { Told { Run, Node, HasSuspended, HasLosses, HasSignals, BeganAt, } }

pub(crate) fn read_earlier(row: &Row) -> Read<((RunKey, Node), Earlier)> {
    let cells = Cells::of(row);
    let earlier = Earlier {
        has_suspended: cells.get(Told::HasSuspended)?,
        has_losses: cells.get(Told::HasLosses)?,
        has_signals: cells.get(Told::HasSignals)?,
        began_at: cells.optional_time(Told::BeganAt)?,
    };
    Ok(((cells.run_key(Told::Run)?, cells.node(Told::Node)?), earlier))
}

/// Whose memo it is, and the claim it is stored under, unless a decision stores it.
#[derive(Clone, Copy)]
pub(crate) struct MemoOf {
    pub(crate) run: RunKey,
    pub(crate) node: Node,
    pub(crate) claim: Option<Token>,
}

impl From<ClaimRef> for MemoOf {
    fn from(claim: ClaimRef) -> Self {
        Self { run: claim.run, node: claim.node, claim: Some(claim.token) }
    }
}

/// Memos as lists of values.
#[derive(Default)]
pub(crate) struct MemoArrays<'m> {
    run: Vec<Uuid>,
    node: Vec<i32>,
    key: Vec<&'m str>,
    number: Vec<i64>,
    state: Vec<i16>,
    tries: Vec<i32>,
    began_at: Vec<i64>,
    at: Vec<i64>,
    due_at: Vec<Option<i64>>,
    refers_to: Vec<Option<i64>>,
    failure: Vec<Option<String>>,
    token: Vec<Option<Uuid>>,
    codec: Vec<Option<&'m str>>,
    bytes: Vec<Option<&'m [u8]>>,
}

impl<'m> MemoArrays<'m> {
    pub(crate) fn push(
        &mut self,
        of: MemoOf,
        row: &'m MemoRow,
        payload: Option<&'m Payload>,
    ) -> Read<()> {
        let (mut due, mut refers_to, mut failure) = (None, None, None);
        match &row.outcome {
            MemoOutcome::Begun { due: at, failure: why } => {
                (due, failure) = (at.map(Timestamp::as_micros), why.as_ref());
            }
            MemoOutcome::Failed(why) => failure = Some(why),
            MemoOutcome::Ended(Resumed::Signal(number)) => refers_to = Some(int(*number)),
            MemoOutcome::Round(round) => refers_to = Some(i64::from(*round)),
            MemoOutcome::Given | MemoOutcome::Slept | MemoOutcome::Ended(Resumed::TimedOut) => {}
        }
        self.run.push(key(of.run));
        self.node.push(int32(of.node.0));
        self.key.push(&row.key);
        self.number.push(int(row.number));
        self.state.push(row.outcome.state() as i16);
        self.tries.push(int32(row.tries));
        self.began_at.push(row.began_at.as_micros());
        self.at.push(row.at.as_micros());
        self.due_at.push(due);
        self.refers_to.push(refers_to);
        self.failure.push(failure.map(json).transpose()?);
        self.token.push(of.claim.map(token));
        self.codec.push(payload.map(|payload| &*payload.codec));
        self.bytes.push(payload.map(|payload| &*payload.bytes));
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.run.is_empty()
    }

    pub(crate) fn params(&self) -> Vec<Param<'_>> {
        let mut params: Vec<Param<'_>> =
            Col::ALL.iter().map(|column| self.param(*column)).collect();
        params.extend::<[Param<'_>; 2]>([&self.codec, &self.bytes]);
        params
    }

    fn param(&self, column: Col) -> Param<'_> {
        match column {
            Col::Run => &self.run,
            Col::Node => &self.node,
            Col::Key => &self.key,
            Col::Number => &self.number,
            Col::State => &self.state,
            Col::Tries => &self.tries,
            Col::BeganAt => &self.began_at,
            Col::At => &self.at,
            Col::DueAt => &self.due_at,
            Col::RefersTo => &self.refers_to,
            Col::Failure => &self.failure,
            Col::Token => &self.token,
        }
    }
}

/// Claims as lists of values.
#[derive(Default)]
pub(crate) struct ClaimKeys {
    runs: Vec<Uuid>,
    nodes: Vec<i32>,
    tokens: Vec<Uuid>,
}

impl ClaimKeys {
    pub(crate) fn of(claims: impl IntoIterator<Item = ClaimRef>) -> Self {
        let mut keys = Self::default();
        for ClaimRef { run, node, token: of_claim } in claims {
            keys.runs.push(key(run));
            keys.nodes.push(int32(node.0));
            keys.tokens.push(token(of_claim));
        }
        keys
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(crate) fn params(&self) -> [Param<'_>; 3] {
        [&self.runs, &self.nodes, &self.tokens]
    }
}

/// Memos by task and key, and for some questions by the claim they were stored under.
#[derive(Default)]
pub(crate) struct MemoKeys<'m> {
    runs: Vec<Uuid>,
    nodes: Vec<i32>,
    keys: Vec<&'m str>,
    tokens: Vec<Uuid>,
}

impl<'m> MemoKeys<'m> {
    pub(crate) fn of(memos: impl IntoIterator<Item = (RunKey, Node, &'m str)>) -> Self {
        let mut found = Self::default();
        for (run, node, memo_key) in memos {
            found.runs.push(key(run));
            found.nodes.push(int32(node.0));
            found.keys.push(memo_key);
        }
        found
    }

    pub(crate) fn under(memos: impl IntoIterator<Item = (ClaimRef, &'m str)>) -> Self {
        let mut found = Self::default();
        for (claim, memo_key) in memos {
            found.runs.push(key(claim.run));
            found.nodes.push(int32(claim.node.0));
            found.keys.push(memo_key);
            found.tokens.push(token(claim.token));
        }
        found
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(crate) fn params(&self) -> [Param<'_>; 3] {
        [&self.runs, &self.nodes, &self.keys]
    }

    pub(crate) fn params_under(&self) -> [Param<'_>; 4] {
        [&self.runs, &self.nodes, &self.keys, &self.tokens]
    }
}
