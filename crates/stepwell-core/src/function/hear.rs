//! Turns: what happens next, now that the function is quiet.

use alloc::vec::Vec;
use core::task::Waker;

use super::op::Phase;
use super::{Journal, MemoWrite, Value};
use crate::decide::{Listening, Suspension};
use crate::time::Timestamp;

/// What is known when a function is quiet.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The store's time, as well as the process can tell.
    pub now: Timestamp,
    /// Whether steps may begin; not while the engine stops.
    pub may_start: bool,
    /// Whether something woke the function, so that it is polled again before it suspends.
    pub is_woken: bool,
}

/// What happens next.
#[derive(Debug)]
pub enum Turn<V> {
    /// The function hears of something, or steps begin or are stopped.
    Wake(Vec<Waker>),
    /// Something is to be stored.
    Store(MemoWrite<V>),
    /// The store is to be told what is waited for, and asked for news.
    Listen(Listening),
    /// Nothing, until something wakes the function or this moment has come.
    Rest {
        /// When something is due.
        until: Option<Timestamp>,
    },
    /// Nothing executes, and only time or a signal can bring it on.
    Suspend(Suspension),
    /// The engine stops, and nothing executes.
    Release,
}

impl<V: Value> Journal<V> {
    /// What happens next, now that the function is quiet.
    pub fn turn(&mut self, moment: Moment) -> Turn<V> {
        let Moment { now, may_start, is_woken } = moment;
        if let Some(wakers) = self.hear() {
            return Turn::Wake(wakers);
        }
        self.fire(now);
        if self.asks_first()
            && let Some(listening) = self.listen()
        {
            return Turn::Listen(listening);
        }
        if !self.holds_writes()
            && let Some(write) = self.take_write()
        {
            return Turn::Store(write);
        }
        let changed = self.start_and_expire(now, may_start);
        if !changed.is_empty() {
            return Turn::Wake(changed);
        }
        let is_busy = is_woken || self.is_executing() || self.awaits_answer();
        if !is_busy && !may_start {
            return Turn::Release;
        }
        if !is_busy && !self.is_due_soon(now) && self.is_waiting() {
            return match self.take_staged_write() {
                Some(write) => Turn::Store(write),
                None => Turn::Suspend(self.suspension()),
            };
        }
        match self.listen() {
            Some(listening) => Turn::Listen(listening),
            None => Turn::Rest { until: self.timers.first().map(|(due, _)| *due) },
        }
    }

    /// Lets the function hear of the next thing. Not as long as one with a smaller number may
    /// still turn out to be recorded.
    fn hear(&mut self) -> Option<Vec<Waker>> {
        let (number, id) = self.ready.first_key_value().map(|(number, id)| (*number, *id))?;
        if self.unsettled.first().is_some_and(|unsettled| *unsettled < number) {
            return None;
        }
        self.ready.remove(&number);
        let op = self.ops.get_mut(&id)?;
        let phase = core::mem::replace(&mut op.phase, Phase::Called);
        let (completion, at) = if let Phase::Stored(completion, at) = phase {
            (completion, at)
        } else {
            let record = self.records.get(&op.text)?;
            (record.completion.clone(), record.at)
        };
        self.heard_at = at;
        op.phase = Phase::Heard(completion);
        let waker = op.waker.take();
        self.stop_timer(id);
        Some(waker.into_iter().collect())
    }
}
