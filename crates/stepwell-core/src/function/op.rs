//! Operations: what a function has asked for, from the call until it hears how it went.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::task::Waker;
use core::time::Duration;

use super::{Begun, Completion, Journal, Key, STAYS_FOR, Value};
use crate::failure::{Failure, RetryAdvice};
use crate::limits::{MEMO_BYTES_MAX, MEMOS_MAX};
use crate::retry::Retry;
use crate::run::{Attributes, MemoOutcome, MemoRow};
use crate::time::Timestamp;

/// Names an operation within an execution; a later call has a greater one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub u32);

/// What a function asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// A step: when it is tried again, and how long a try may take.
    Step {
        /// When it is tried again.
        retry: Retry,
        /// How long one try may take.
        timeout: Option<Duration>,
    },
    /// A sleep.
    Sleep,
    /// A wait for a signal.
    Wait {
        /// The names of the signals; any of them will do.
        signals: Vec<String>,
        /// Attributes that a signal must carry with the same values.
        matching: Attributes,
    },
}

/// What an operation is to do when it is polled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer<V> {
    /// Nothing.
    Pending,
    /// Its code is to be polled.
    Execute,
    /// Its code has taken too long and is to be dropped.
    Abort,
    /// It is over.
    Ready(Completion<V>),
}

pub(super) struct Op<V> {
    pub(super) key: Key,
    pub(super) text: String,
    /// The poll in which it was called.
    poll: u64,
    pub(super) call: Call,
    /// When a sleep or wait is over, or a step is tried again.
    pub(super) due: Option<Timestamp>,
    /// How often the step was tried.
    pub(super) tries: u32,
    pub(super) began_at: Timestamp,
    pub(super) timer: Option<Timestamp>,
    pub(super) waker: Option<Waker>,
    pub(super) phase: Phase<V>,
    /// Whether it stays although nobody holds it any more, as what blocking code stopped at.
    pub(super) is_kept: bool,
}

pub(super) enum Phase<V> {
    /// Called, not yet awaited.
    Called,
    /// Awaited: a step that may not begin yet, a sleep, a wait.
    Awaited,
    Executing,
    /// Executing for too long.
    Expired,
    /// How it ended is being stored.
    Storing,
    /// How it ended is stored, and the function is to hear of it.
    Stored(Completion<V>, Timestamp),
    Heard(Completion<V>),
}

impl<V> Op<V> {
    pub(super) const fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Called | Phase::Awaited)
    }
}

impl<V: Value> Journal<V> {
    /// A call is made. The time of a sleep, or until a wait times out, runs from here.
    pub fn call(&mut self, key: Key, call: Call, span: Option<Duration>, now: Timestamp) -> OpId {
        self.last_op += 1;
        let id = OpId(self.last_op);
        let text = key.text();
        let begun = self.begun.get(&text).cloned();
        let Begun { due, tries, began_at, .. } =
            begun.unwrap_or(Begun { due: None, tries: 0, began_at: None, has_memo: false });
        let op = Op {
            key,
            text,
            poll: self.names.poll(),
            call,
            due,
            tries,
            began_at: began_at.unwrap_or(now),
            timer: None,
            waker: None,
            phase: Phase::Called,
            is_kept: false,
        };
        self.ops.insert(id, op);
        if let Some(span) = span {
            self.set_due(id, now.after(span));
        }
        id
    }

    /// Says when a sleep or wait is over, unless an earlier execution did.
    pub fn set_due(&mut self, id: OpId, due: Timestamp) {
        let node = self.node;
        let Some(op) = self.ops.get_mut(&id) else { return };
        let begun = self.begun.get(&op.text);
        if begun.is_none() {
            op.due = Some(due);
        }
        if begun.is_some_and(|begun| begun.has_memo) || op.due.is_none() {
            return;
        }
        let (outcome, at) = (MemoOutcome::Begun { due: op.due, failure: None }, op.began_at);
        let (key, began_at) = (op.text.clone(), op.began_at);
        let row = MemoRow { node, key, number: 0, outcome, tries: 0, began_at, at };
        self.staged.insert(id, row);
    }

    /// Changes a call that nobody has awaited yet.
    pub fn amend(&mut self, id: OpId, change: impl FnOnce(&mut Call)) {
        if let Some(op) = self.ops.get_mut(&id) {
            change(&mut op.call);
        }
    }

    /// An operation is given up.
    pub fn forget(&mut self, id: OpId) {
        if self.ops.get(&id).is_none_or(|op| op.is_kept) {
            return;
        }
        self.stop_timer(id);
        let Some(op) = self.ops.remove(&id) else { return };
        match op.phase {
            Phase::Executing | Phase::Expired => self.n_executing -= 1,
            Phase::Awaited => {
                if let Some(record) = self.records.get(&op.text) {
                    self.ready.remove(&record.number);
                }
            }
            Phase::Stored(..) => self.ready.retain(|_, ready| *ready != id),
            Phase::Called | Phase::Storing | Phase::Heard(_) => {}
        }
        self.staged.remove(&id);
        self.held.remove(&id);
        self.signals.remove(&id);
    }

    /// An operation is polled.
    pub fn poll(&mut self, id: OpId, waker: &Waker) -> Answer<V> {
        let Some(op) = self.ops.get_mut(&id) else { return Answer::Pending };
        if let Phase::Heard(completion) = &op.phase {
            return Answer::Ready(completion.clone());
        }
        op.waker = Some(waker.clone());
        match op.phase {
            Phase::Executing => return Answer::Execute,
            Phase::Expired => return Answer::Abort,
            _ => {}
        }
        if matches!(op.phase, Phase::Called) {
            if op.poll == self.names.poll() {
                self.names.awaited(&op.key.name);
            }
            self.await_op(id);
        }
        Answer::Pending
    }

    fn await_op(&mut self, id: OpId) {
        let Some(op) = self.ops.get_mut(&id) else { return };
        op.phase = Phase::Awaited;
        if let Some(record) = self.records.get(&op.text) {
            self.ready.insert(record.number, id);
            return;
        }
        let (due, is_step) = (op.due, matches!(op.call, Call::Step { .. }));
        if op.is_wait() {
            self.signals.insert(id);
        }
        match due {
            Some(due) => self.start_timer(id, due),
            None if is_step => drop(self.held.insert(id)),
            None => {}
        }
        self.check_n_memos();
    }

    pub(super) fn check_n_memos(&mut self) {
        if self.n_memos >= MEMOS_MAX || self.n_bytes >= MEMO_BYTES_MAX {
            let (n, n_bytes) = (self.n_memos, self.n_bytes);
            self.refuse(&format!(
                "the function has {n} memos of {n_bytes} bytes, the limits are {MEMOS_MAX} and \
                 {MEMO_BYTES_MAX}; begin another round by `return ctx.continue_with(input)`, or \
                 give larger pieces to each step"
            ));
        }
    }

    /// The code of a step has ended: how is to be stored, or it is tried again.
    pub fn executed(&mut self, id: OpId, outcome: Result<V, Failure>, now: Timestamp, chance: u32) {
        self.stop_timer(id);
        let Some(op) = self.ops.get_mut(&id) else { return };
        if !matches!(op.phase, Phase::Executing | Phase::Expired) {
            return;
        }
        self.n_executing -= 1;
        op.tries += 1;
        op.phase = Phase::Storing;
        let failure = match outcome {
            Ok(value) => return self.draft(id, MemoOutcome::Given, Some(value), true),
            Err(failure) => failure,
        };
        let Call::Step { retry, .. } = &op.call else { return };
        let failure = failure.of_key(&op.text);
        match retry.delay_after(op.tries, failure.retry, chance) {
            None => self.draft(id, MemoOutcome::Failed(failure), None, true),
            Some(delay) => {
                op.due = Some(now.after(delay));
                // What it asked for was for this try; the next one may ask for something else.
                let failure = Some(failure.with_retry(RetryAdvice::ByPolicy));
                let begun = MemoOutcome::Begun { due: op.due, failure };
                self.draft(id, begun, None, false);
            }
        }
    }

    /// Steps that may begin, and steps that have taken too long.
    pub(super) fn start_and_expire(&mut self, now: Timestamp, may_start: bool) -> Vec<Waker> {
        let due = self.timers.iter().take_while(|(due, _)| *due <= now).map(|(_, id)| *id);
        let mut changed: Vec<OpId> = due.collect();
        if may_start {
            changed.extend(core::mem::take(&mut self.held));
        }
        let mut wakers = Vec::new();
        for id in changed {
            let Some(op) = self.ops.get_mut(&id) else { continue };
            if !matches!(op.call, Call::Step { .. }) {
                continue;
            }
            match op.phase {
                Phase::Executing => op.phase = Phase::Expired,
                Phase::Awaited if may_start => drop(self.start(id, now)),
                _ => continue,
            }
            let Some(op) = self.ops.get_mut(&id) else { continue };
            wakers.extend(op.waker.take());
            if matches!(op.phase, Phase::Expired) {
                self.stop_timer(id);
            }
        }
        wakers
    }

    /// A step begins. Says whether it may.
    pub(super) fn start(&mut self, id: OpId, now: Timestamp) -> bool {
        self.stop_timer(id);
        let Some(op) = self.ops.get_mut(&id) else { return false };
        let Call::Step { timeout, .. } = op.call else { return false };
        op.phase = Phase::Executing;
        self.n_executing += 1;
        if op.tries == 0 {
            op.began_at = now;
        }
        let key = op.key.clone();
        if let Some(timeout) = timeout {
            self.start_timer(id, now.after(timeout));
        }
        self.warn_of_inserted(&key);
        true
    }

    pub(super) fn start_timer(&mut self, id: OpId, due: Timestamp) {
        self.stop_timer(id);
        if let Some(op) = self.ops.get_mut(&id) {
            op.timer = Some(due);
            self.timers.insert((due, id));
        }
    }

    pub(super) fn stop_timer(&mut self, id: OpId) {
        let timer = self.ops.get_mut(&id).and_then(|op| op.timer.take());
        if let Some(due) = timer {
            self.timers.remove(&(due, id));
        }
    }

    /// Whether something is due so soon that it is waited for in place.
    pub(super) fn is_due_soon(&self, now: Timestamp) -> bool {
        self.timers.first().is_some_and(|(due, _)| *due <= now.after(STAYS_FOR))
    }

    /// The code of a step, as the function knows it.
    #[must_use]
    pub fn key_of(&self, id: OpId) -> Option<&str> {
        self.ops.get(&id).map(|op| op.text.as_str())
    }
}
