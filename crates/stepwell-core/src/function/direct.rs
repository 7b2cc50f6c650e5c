//! Blocking code: it asks for one thing at a time and waits for it on its thread, so it needs no
//! turns.

use super::op::Phase;
use super::{Call, Completion, Journal, OpId, Value};
use crate::run::MemoOutcome;
use crate::time::Timestamp;

/// What blocking code that asks for something is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked<V> {
    /// Go on with this.
    Over(Completion<V>),
    /// Call the code of the step.
    Execute,
    /// Store what is to be stored, and ask again.
    Store,
    /// Stop here: the engine stops, and no step may begin.
    Release,
    /// Stop here: only time or a signal can bring it on. With the moment at which it is due.
    Later(Option<Timestamp>),
}

impl<V: Value> Journal<V> {
    /// Blocking code asks how an operation went.
    pub fn ask(&mut self, id: OpId, now: Timestamp, may_start: bool) -> Asked<V> {
        let Some(op) = self.ops.get_mut(&id) else { return Asked::Later(None) };
        if let Phase::Stored(completion, at) = &op.phase {
            self.heard_at = *at;
            let completion = completion.clone();
            self.ready.retain(|_, ready| *ready != id);
            return Asked::Over(completion);
        }
        if let Some(record) = self.records.get(&op.text) {
            self.heard_at = record.at;
            return Asked::Over(record.completion.clone());
        }
        let is_due = op.due.is_none_or(|due| due <= now);
        if matches!(op.phase, Phase::Called) {
            op.phase = Phase::Awaited;
        }
        match (&op.call, &op.phase) {
            (Call::Step { .. }, Phase::Awaited) if is_due && !may_start => Asked::Release,
            (Call::Step { .. }, Phase::Awaited) if is_due => {
                self.check_n_memos();
                self.start(id, now);
                Asked::Execute
            }
            (Call::Sleep, Phase::Awaited) if is_due => {
                op.phase = Phase::Storing;
                self.draft(id, MemoOutcome::Slept, None, true);
                Asked::Store
            }
            (_, Phase::Storing) => Asked::Store,
            _ => Asked::Later(op.due),
        }
    }

    /// Blocking code stops here, and goes on when this is over.
    pub fn keep(&mut self, id: OpId) {
        if let Some(op) = self.ops.get_mut(&id).filter(|op| op.is_open()) {
            op.is_kept = true;
        }
    }
}
