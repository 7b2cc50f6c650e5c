//! Writes: what is to be stored of a function before it hears of it.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use super::op::Phase;
use super::{Completion, Journal, OpId, Value};
use crate::failure::{Failure, RetryAdvice};
use crate::run::{MemoOutcome, MemoRow};
use crate::time::Timestamp;

/// Names a write that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WriteId(u64);

/// Memos that are stored together.
#[derive(Clone, Debug)]
pub struct MemoWrite<V> {
    /// To tell how it went.
    pub id: WriteId,
    /// The memos, with their values.
    pub memos: Vec<(MemoRow, Option<V>)>,
}

/// A memo that is to be stored, and the operation that it is of.
#[derive(Clone)]
pub(super) struct Draft<V> {
    op: OpId,
    row: MemoRow,
    value: Option<V>,
    /// Whether the function is to hear of it, and so gets a number when it is sent.
    is_heard: bool,
}

impl<V: Clone> Draft<V> {
    /// What the function hears once it is stored, if it hears of it.
    fn completion(&self) -> Option<Completion<V>> {
        match &self.row.outcome {
            MemoOutcome::Given | MemoOutcome::Slept | MemoOutcome::Ended(_) => {
                Some(Ok(self.value.clone()))
            }
            MemoOutcome::Failed(failure) => Some(Err(failure.clone())),
            MemoOutcome::Begun { .. } | MemoOutcome::Round(_) => None,
        }
    }
}

impl<V: Value> Journal<V> {
    /// Something is to be stored of an operation, and the function is to hear of it or not.
    pub(super) fn draft(
        &mut self,
        id: OpId,
        outcome: MemoOutcome,
        value: Option<V>,
        is_heard: bool,
    ) {
        self.staged.remove(&id);
        let Some(op) = self.ops.get(&id) else { return };
        let (node, key, tries, began_at) = (self.node, op.text.clone(), op.tries, op.began_at);
        let at = began_at;
        self.n_bytes += value.as_ref().map_or(0, Value::n_bytes);
        self.n_memos += usize::from(is_heard);
        let row = MemoRow { node, key, number: 0, outcome, tries, began_at, at };
        self.unsent.push(Draft { op: id, row, value, is_heard });
    }

    /// The next write, if there is something to store. Due times that nobody knows of go with it.
    pub fn take_write(&mut self) -> Option<MemoWrite<V>> {
        if let Some(draft) = self.alone.pop_front() {
            return Some(self.send(vec![draft]));
        }
        if self.unsent.is_empty() {
            return None;
        }
        let mut drafts = core::mem::take(&mut self.unsent);
        drafts.extend(self.take_staged());
        Some(self.send(drafts))
    }

    /// Due times of what nobody awaits yet; a suspension does not keep those of waits.
    pub(super) fn take_staged_write(&mut self) -> Option<MemoWrite<V>> {
        let ops = &self.ops;
        self.staged.retain(|id, _| {
            let op = ops.get(id);
            op.is_some_and(|op| matches!(op.phase, Phase::Called) && op.is_wait())
        });
        let drafts: Vec<Draft<V>> = self.take_staged().collect();
        (!drafts.is_empty()).then(|| self.send(drafts))
    }

    fn take_staged(&mut self) -> impl Iterator<Item = Draft<V>> + use<V> {
        let staged: BTreeMap<OpId, MemoRow> = core::mem::take(&mut self.staged);
        staged.into_iter().map(|(op, row)| Draft { op, row, value: None, is_heard: false })
    }

    fn send(&mut self, mut drafts: Vec<Draft<V>>) -> MemoWrite<V> {
        for draft in drafts.iter_mut().filter(|draft| draft.is_heard && draft.row.number == 0) {
            draft.row.number = self.next_number;
            self.unsettled.insert(self.next_number);
            self.next_number += 1;
        }
        self.last_write += 1;
        let id = WriteId(self.last_write);
        let memos = drafts.iter().map(|draft| (draft.row.clone(), draft.value.clone())).collect();
        self.sent.insert(id, drafts);
        MemoWrite { id, memos }
    }

    /// A write is stored, since this moment.
    pub fn stored(&mut self, id: WriteId, at: Timestamp) {
        for draft in self.sent.remove(&id).unwrap_or_default() {
            let number = draft.row.number;
            self.unsettled.remove(&number);
            let completion = draft.completion();
            if let Some(completion) = &completion {
                self.tally(number, &draft.row.key, completion.is_err());
            }
            self.settle(draft.op, number, completion, at);
        }
    }

    /// How an operation ended is known, or that its step is tried again.
    pub(super) fn settle(
        &mut self,
        id: OpId,
        number: u64,
        completion: Option<Completion<V>>,
        at: Timestamp,
    ) {
        let Some(op) = self.ops.get_mut(&id) else { return };
        match completion {
            Some(completion) => {
                op.phase = Phase::Stored(completion, at);
                self.signals.remove(&id);
                self.ready.insert(number, id);
            }
            None if matches!(op.phase, Phase::Storing) => {
                op.phase = Phase::Awaited;
                if let Some(due) = op.due {
                    self.start_timer(id, due);
                }
            }
            None => {}
        }
    }

    /// The store refused a write for what is in it. Memos that travelled together are tried one by
    /// one; the step whose memo is refused alone has failed with this, for good.
    pub fn refused(&mut self, id: WriteId, failure: &Failure) {
        let drafts = self.sent.remove(&id).unwrap_or_default();
        if drafts.len() > 1 {
            self.alone.extend(drafts);
            return;
        }
        for mut draft in drafts {
            let can_fail = matches!(draft.row.outcome, MemoOutcome::Given);
            if can_fail {
                let failure = failure.clone().of_key(&draft.row.key);
                let failure = failure.with_retry(RetryAdvice::Never);
                draft.row.outcome = MemoOutcome::Failed(failure);
                draft.value = None;
                self.alone.push_back(draft);
            } else {
                // Even the bare fact cannot be stored, so the function cannot go on.
                self.refusal.get_or_insert_with(|| {
                    failure.clone().of_key(&draft.row.key).with_retry(RetryAdvice::Never)
                });
            }
        }
    }
}
