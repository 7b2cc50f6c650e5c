//! What a function has done so far, and the rule by which it hears of it.
//!
//! Completions are numbered when they are written. A function hears of them one at a time, in the
//! order of their numbers, live as on replay: it runs until it is quiet before it hears of the
//! next, and no step begins while there is still something to hear. So the order in which a
//! function makes its calls follows from what is recorded, whatever it is made of.
//!
//! Two things no record can fix, and they are refused where a name is used again: calls made by two
//! futures in one and the same poll, and calls made in a poll that something outside of the
//! function caused.

mod derive;
mod direct;
mod hear;
mod keys;
mod op;
mod store;
mod wait;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crate::failure::{Failure, FailureKind, RetryAdvice};
use crate::id::Node;
use crate::run::{MemoOutcome, MemoRow, ROUND_KEY, WaitKind, WaitRow};
use crate::time::Timestamp;

pub use derive::derived;
pub use direct::Asked;
pub use hear::{Moment, Turn};
pub use keys::Key;
pub use op::{Answer, Call, OpId};
pub use store::{MemoWrite, WriteId};

use keys::Names;
use op::Op;
use store::Draft;

/// A due time that is nearer than this is waited for in place.
pub const STAYS_FOR: Duration = Duration::from_secs(1);

/// A recorded value. Rules never look into it.
pub trait Value: Clone {
    /// How large it is.
    fn n_bytes(&self) -> usize;
}

/// What something that a function asked for came to: a value, or nothing for a sleep.
pub type Completion<V> = Result<Option<V>, Failure>;

/// What is known of a function when an execution begins.
#[derive(Clone, Debug)]
pub struct Past<V> {
    /// The task of the function.
    pub node: Node,
    /// When its first execution began.
    pub began_at: Timestamp,
    /// What it has done or begun.
    pub memos: Vec<(MemoRow, Option<V>)>,
    /// What it waits for.
    pub waits: Vec<WaitRow>,
    /// Whether signals lie there that nobody got.
    pub has_signals: bool,
}

/// What is recorded under a key.
struct Record<V> {
    number: u64,
    at: Timestamp,
    completion: Completion<V>,
    is_called: bool,
}

/// What was begun under a key: a sleep or a wait with its end, or a step that is tried again.
#[derive(Clone, Debug)]
struct Begun {
    due: Option<Timestamp>,
    tries: u32,
    began_at: Option<Timestamp>,
    /// Whether a memo says so, or only an open wait.
    has_memo: bool,
}

/// What a function has done, what it is doing, and what it is to hear of next.
pub struct Journal<V> {
    node: Node,
    round: u32,
    names: Names,
    records: BTreeMap<String, Record<V>>,
    begun: BTreeMap<String, Begun>,
    ops: BTreeMap<OpId, Op<V>>,
    last_op: u32,
    /// Completions that the function asked for and has not heard of, by number.
    ready: BTreeMap<u64, OpId>,
    next_number: u64,
    /// Numbers that may be recorded or not: the answer is still to come.
    unsettled: BTreeSet<u64>,
    /// Steps that begin when there is nothing to hear.
    held: BTreeSet<OpId>,
    timers: BTreeSet<(Timestamp, OpId)>,
    /// Waits for signals that the function awaits.
    signals: BTreeSet<OpId>,
    n_executing: usize,
    /// Due times that nobody knows of yet; they go with the next write.
    staged: BTreeMap<OpId, MemoRow>,
    unsent: Vec<Draft<V>>,
    /// Writes that travel alone, since they were refused together.
    alone: VecDeque<Draft<V>>,
    sent: BTreeMap<WriteId, Vec<Draft<V>>>,
    last_write: u64,
    /// Waits for signals that the store knows of, by key.
    told: BTreeSet<String>,
    /// Whether the store may have waits of the function at all.
    had_waits: bool,
    /// What the store is asked for right now: the number that it may record, and the waits.
    listening: Option<(u64, BTreeSet<String>)>,
    looks_again: bool,
    heard_at: Timestamp,
    n_memos: usize,
    n_bytes: usize,
    last_success: u64,
    errors: Vec<(u64, String)>,
    warnings: Vec<String>,
    refusal: Option<Failure>,
}

impl<V: Value> Journal<V> {
    /// A journal at the beginning of an execution.
    #[must_use]
    pub fn new(past: Past<V>) -> Self {
        let Past { node, began_at, memos, waits, has_signals } = past;
        let told = waits.iter().filter(|wait| wait.kind == WaitKind::Signal);
        let mut journal = Self {
            node,
            round: 0,
            names: Names::default(),
            records: BTreeMap::new(),
            begun: BTreeMap::new(),
            ops: BTreeMap::new(),
            last_op: 0,
            ready: BTreeMap::new(),
            next_number: 1,
            unsettled: BTreeSet::new(),
            held: BTreeSet::new(),
            timers: BTreeSet::new(),
            signals: BTreeSet::new(),
            n_executing: 0,
            staged: BTreeMap::new(),
            unsent: Vec::new(),
            alone: VecDeque::new(),
            sent: BTreeMap::new(),
            last_write: 0,
            told: told.map(|wait| wait.key.clone()).collect(),
            had_waits: !waits.is_empty(),
            listening: None,
            looks_again: has_signals,
            heard_at: began_at,
            n_memos: 0,
            n_bytes: 0,
            last_success: 0,
            errors: Vec::new(),
            warnings: Vec::new(),
            refusal: None,
        };
        for wait in waits.into_iter().filter(|wait| wait.kind != WaitKind::Retry) {
            let (due, began_at) = (wait.deadline, Some(wait.opened_at));
            let begun = Begun { due, tries: 0, began_at, has_memo: false };
            journal.begun.insert(wait.key, begun);
        }
        for (row, value) in memos {
            journal.recall(row, value);
        }
        journal
    }

    /// Takes up one memo of an earlier execution.
    fn recall(&mut self, row: MemoRow, value: Option<V>) {
        let MemoRow { key, number, outcome, tries, began_at, at, .. } = row;
        self.n_memos += 1;
        self.n_bytes += value.as_ref().map_or(0, Value::n_bytes);
        self.next_number = self.next_number.max(number + 1);
        let completion = match outcome {
            MemoOutcome::Round(round) => {
                debug_assert_eq!(key, ROUND_KEY, "a round has a key of its own");
                // What was done before belongs to another round.
                (self.round, self.heard_at, self.n_memos) = (round, at, self.n_memos - 1);
                return;
            }
            MemoOutcome::Begun { due, .. } => {
                let begun = Begun { due, tries, began_at: Some(began_at), has_memo: true };
                self.begun.insert(key, begun);
                return;
            }
            MemoOutcome::Failed(failure) => Err(failure),
            MemoOutcome::Given | MemoOutcome::Ended(_) | MemoOutcome::Slept => Ok(value),
        };
        self.tally(number, &key, completion.is_err());
        self.records.insert(key, Record { number, at, completion, is_called: false });
    }

    /// Counts something recorded among errors and successes.
    fn tally(&mut self, number: u64, key: &str, is_error: bool) {
        if is_error {
            self.errors.push((number, key.into()));
        } else {
            self.last_success = self.last_success.max(number);
        }
    }

    /// The round that the function is in: 0, and one more with each input that it went on with.
    #[must_use]
    pub const fn round(&self) -> u32 {
        self.round
    }

    /// The time at which the function last heard of something, the same on every replay.
    #[must_use]
    pub const fn heard_at(&self) -> Timestamp {
        self.heard_at
    }

    /// Says that the function did something that no replay could repeat. It fails with the first
    /// such thing, and trying again would end the same way.
    pub fn refuse(&mut self, message: &str) {
        let failure = Failure::new(FailureKind::Error, "", message).with_retry(RetryAdvice::Never);
        self.refusal.get_or_insert(failure);
    }

    /// What the function did that it may not do.
    #[must_use]
    pub const fn refusal(&self) -> Option<&Failure> {
        self.refusal.as_ref()
    }

    /// Things that its author may want to know, each told once.
    pub fn take_warnings(&mut self) -> Vec<String> {
        core::mem::take(&mut self.warnings)
    }

    /// Recorded keys that the code did not ask for.
    #[must_use]
    pub fn drift(&self) -> Vec<String> {
        let unasked = self.records.iter().filter(|(_, record)| !record.is_called);
        unasked.map(|(key, _)| key.clone()).collect()
    }

    /// The errors that are forgotten when the function is tried again: those after the last thing
    /// that went well.
    #[must_use]
    pub fn forgets(&self) -> Vec<String> {
        let last = self.errors.iter().filter(|(number, _)| *number > self.last_success);
        last.map(|(_, key)| key.clone()).collect()
    }

    /// Whether any step of the function is being executed.
    #[must_use]
    pub const fn is_executing(&self) -> bool {
        self.n_executing > 0
    }

    /// Whether the store still has to answer something.
    #[must_use]
    pub fn awaits_answer(&self) -> bool {
        !self.sent.is_empty() || self.listening.is_some()
    }
}
