//! What a function waits for: sleeps, signals, and pauses before a step is tried again.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::op::{Op, Phase};
use super::{Call, Journal, OpId, Value};
use crate::decide::{Listening, Suspension};
use crate::run::{Attributes, FunctionWait, MemoOutcome, WaitKind};
use crate::time::Timestamp;

/// How long to wait before the store is asked again whether a deadline has passed by its clock.
const ASKS_AGAIN_AFTER: Duration = Duration::from_millis(50);

impl<V> Op<V> {
    pub(super) const fn is_wait(&self) -> bool {
        matches!(self.call, Call::Wait { .. })
    }

    /// What the store is to know of it, if it waits for something.
    fn function_wait(&self, id: OpId) -> Option<FunctionWait> {
        let (key, place, deadline) = (self.text.clone(), id.0, self.due);
        let none = (Vec::new(), Attributes::new());
        let (kind, (signals, matching)) = match (&self.call, &self.phase) {
            (Call::Sleep, Phase::Called | Phase::Awaited) => (WaitKind::Sleep, none),
            (Call::Wait { signals, matching }, Phase::Awaited) => {
                (WaitKind::Signal, (signals.clone(), matching.clone()))
            }
            (Call::Step { .. }, Phase::Awaited) if self.due.is_some() => (WaitKind::Retry, none),
            _ => return None,
        };
        Some(FunctionWait { key, place, kind, signals, matching, deadline })
    }
}

impl<V: Value> Journal<V> {
    fn is_recorded(&self, op: &Op<V>) -> bool {
        self.records.contains_key(&op.text)
    }

    /// Everything that is open.
    fn waits(&self) -> Vec<FunctionWait> {
        let open = self.ops.iter().filter(|(_, op)| !self.is_recorded(op));
        open.filter_map(|(id, op)| op.function_wait(*id)).collect()
    }

    /// Whether the store has to know of other waits, or may have news.
    fn has_to_ask(&self) -> bool {
        if self.listening.is_some() {
            return false;
        }
        let is_news = self.looks_again && !self.signals.is_empty();
        let is_told = |id: &OpId| self.told.contains(&self.ops[id].text);
        is_news || self.signals.len() != self.told.len() || !self.signals.iter().all(is_told)
    }

    /// Whether the store is to be asked before anything else is written.
    pub(super) fn asks_first(&self) -> bool {
        (self.is_executing() || !self.unsent.is_empty()) && self.can_ask() && self.has_to_ask()
    }

    /// What the store gives has to be the next thing that the function hears of: of anything before
    /// it, it might give up the very wait that got a signal. So nothing may be under way that it is
    /// still to hear of.
    fn can_ask(&self) -> bool {
        self.unsettled.is_empty()
    }

    /// Whether writes have to stay back until the store could be asked. Otherwise a function that
    /// always has one under way would never hear of a signal.
    pub(super) fn holds_writes(&self) -> bool {
        !self.can_ask() && self.alone.is_empty() && self.has_to_ask()
    }

    /// The signals that are waited for, by key.
    fn awaited_signals(&self) -> BTreeSet<String> {
        self.signals.iter().map(|id| self.ops[id].text.clone()).collect()
    }

    /// Whether the function waits for something that only time or a signal brings. Asked when no
    /// step is executed, so that no timer is one of a step that may take too long.
    pub(super) fn is_waiting(&self) -> bool {
        !self.signals.is_empty() || !self.timers.is_empty()
    }

    /// Sleeps that are over are to be stored, and waits whose deadline passed are to be looked at.
    pub(super) fn fire(&mut self, now: Timestamp) {
        let due = self.timers.iter().take_while(|(due, _)| *due <= now).map(|(_, id)| *id);
        for id in due.collect::<Vec<OpId>>() {
            let Some(op) = self.ops.get_mut(&id) else { continue };
            match op.call {
                Call::Step { .. } => continue,
                Call::Sleep => {
                    op.phase = Phase::Storing;
                    self.draft(id, MemoOutcome::Slept, None, true);
                }
                Call::Wait { .. } => self.looks_again = true,
            }
            self.stop_timer(id);
        }
    }

    /// What the store is to be asked, if it has to know of other waits or may have news.
    pub(super) fn listen(&mut self) -> Option<Listening> {
        if !self.can_ask() || !self.has_to_ask() {
            return None;
        }
        let awaited = self.awaited_signals();
        self.looks_again = false;
        let next_memo = self.next_number;
        self.next_number += 1;
        self.unsettled.insert(next_memo);
        self.listening = Some((next_memo, awaited));
        self.had_waits = true;
        Some(Listening { waits: self.waits(), next_memo })
    }

    /// The store has answered: it knows what the function waits for, and tells at most one thing.
    pub fn listened(&mut self, heard: Option<(OpId, Option<V>, Timestamp)>, now: Timestamp) {
        let Some((number, told)) = self.listening.take() else { return };
        self.told = told;
        self.unsettled.remove(&number);
        let Some((id, value, at)) = heard else {
            self.rearm(now);
            return;
        };
        // There may be more to hear of.
        self.looks_again = true;
        self.rearm(now);
        let Some(op) = self.ops.get(&id) else { return };
        self.told.remove(&op.text);
        if !matches!(op.phase, Phase::Called | Phase::Awaited)
            || matches!(op.call, Call::Step { .. })
        {
            return;
        }
        self.n_memos += 1;
        self.n_bytes += value.as_ref().map_or(0, Value::n_bytes);
        self.stop_timer(id);
        self.staged.remove(&id);
        self.tally(number, &self.ops[&id].text.clone(), false);
        self.settle(id, number, Some(Ok(value)), at);
    }

    /// Waits whose deadline has passed here but not by the store's clock are looked at again.
    fn rearm(&mut self, now: Timestamp) {
        let unarmed = self.signals.iter().filter(|id| self.ops[id].timer.is_none());
        let due = unarmed.filter_map(|id| Some((*id, self.ops[id].due?)));
        for (id, due) in due.collect::<Vec<(OpId, Timestamp)>>() {
            self.start_timer(id, due.max(now.after(ASKS_AGAIN_AFTER)));
        }
    }

    /// A signal may have come for a wait that the store knows of.
    pub const fn look_again(&mut self) {
        self.looks_again = true;
    }

    /// Whether the store knows of waits of this function, so that hints are for it.
    #[must_use]
    pub fn is_listening(&self) -> bool {
        !self.told.is_empty()
    }

    /// What to tell the store before the function ends: waits that it leaves open must not hold
    /// signals that others wait for.
    pub fn let_go(&mut self) -> Option<Listening> {
        if self.told.is_empty() {
            return None;
        }
        self.told.clear();
        Some(Listening { waits: Vec::new(), next_memo: self.next_number })
    }

    /// What a function that suspends waits for.
    #[must_use]
    pub fn suspension(&self) -> Suspension {
        let (next_memo, had_waits) = (self.next_number, self.had_waits);
        Suspension { waits: self.waits(), next_memo, had_waits }
    }
}
