//! Waits, signals and memos of an image.

use alloc::string::String;

use super::{RunImage, Timer};
use crate::id::Node;
use crate::run::{MemoRow, Phase, SignalRow, WaitRow};
use crate::time::Timestamp;

impl RunImage<'_> {
    /// The signals that were loaded, and those that were stored since.
    pub(crate) fn signals(&self) -> &[SignalRow] {
        self.inbox.as_ref().map_or(&[], |inbox| &inbox.signals)
    }

    /// The waits that were loaded and are still open.
    pub(crate) fn loaded_waits(&self) -> &[WaitRow] {
        self.inbox.as_ref().map_or(&[], |inbox| &inbox.waits)
    }

    /// The open waits: those that were loaded, then those that opened by what was decided on this
    /// image. Nothing that follows from the latter was loaded.
    pub(crate) fn open_waits(&self) -> impl Iterator<Item = &WaitRow> {
        let opened = self.changes.extras.iter().flat_map(|extras| &extras.waits_opened);
        self.loaded_waits().iter().chain(opened)
    }

    /// Adds the wait of a task that goes WAITING.
    pub(crate) fn open_wait(&mut self, wait: WaitRow) {
        self.changes.extras().waits_opened.push(wait);
    }

    /// Stores a signal under the run's next number.
    pub(crate) fn store_signal(&mut self, signal: SignalRow) {
        self.run.n_signals = signal.number;
        self.run.n_unconsumed += 1;
        self.inbox.get_or_insert_default().signals.push(signal.clone());
        self.changes.extras().signals_stored.push(signal);
    }

    /// Marks a signal as consumed by a task.
    pub(crate) fn consume_signal(&mut self, number: u64, node: Node) {
        self.run.n_unconsumed = self.run.n_unconsumed.saturating_sub(1);
        let is_it = |signal: &&mut SignalRow| signal.number == number;
        let known = self.inbox.iter_mut().flat_map(|inbox| &mut inbox.signals);
        if let Some(signal) = known.into_iter().find(is_it) {
            signal.consumed_by = Some(node);
        }
        let extras = self.changes.extras();
        match extras.signals_stored.iter_mut().find(is_it) {
            Some(stored) => stored.consumed_by = Some(node),
            None => extras.signals_consumed.push((number, node)),
        }
    }

    /// Closes all waits of a task.
    pub(crate) fn close_waits(&mut self, node: Node) {
        if let Some(inbox) = &mut self.inbox {
            inbox.waits.retain(|wait| wait.node != node);
        }
        let extras = self.changes.extras();
        extras.waits_opened.retain(|wait| wait.node != node);
        extras.waits_ended.retain(|(of, _)| *of != node);
        if !extras.waits_closed.contains(&node) {
            extras.waits_closed.push(node);
        }
    }

    /// Sets the timer of a task that goes on waiting or sleeping, in the place of one that was to
    /// be set.
    pub(crate) fn set_timer(&mut self, node: Node, due: Option<Timestamp>) {
        let now = self.now;
        if let Some(task) = self.touch(node) {
            task.phase = match (&task.phase, due) {
                (Phase::Sleeping { .. }, Some(until)) => Phase::Sleeping { until },
                _ => Phase::Waiting { due },
            };
            self.changes.timers_cleared.push(node);
            self.changes.timers.retain(|timer| timer.node != node);
            self.changes.timers.extend(due.map(|due| Timer { node, after: due.since(now) }));
        }
    }

    /// The open waits of a task, as far as they were loaded or opened since.
    pub(crate) fn waits_of(&self, node: Node) -> impl Iterator<Item = &WaitRow> {
        self.open_waits().filter(move |wait| wait.node == node)
    }

    /// Closes one wait of a function.
    pub(crate) fn end_wait(&mut self, node: Node, key: &str) {
        let is_other = |wait: &WaitRow| wait.node != node || wait.key != key;
        if let Some(inbox) = &mut self.inbox {
            inbox.waits.retain(is_other);
        }
        let extras = self.changes.extras();
        let n_opened = extras.waits_opened.len();
        extras.waits_opened.retain(is_other);
        if extras.waits_opened.len() == n_opened {
            extras.waits_ended.push((node, String::from(key)));
        }
    }

    /// A function that is running may get a signal: its worker is to look.
    pub(crate) fn tell_listeners(&mut self) {
        self.changes.extras().tells_listeners = true;
    }

    /// Stores a memo in the place of one of the same key.
    pub(crate) fn store_memo(&mut self, memo: MemoRow) {
        self.changes.extras().memos.push(memo);
    }

    /// Forgets all memos of a function.
    pub(crate) fn clear_memos(&mut self, node: Node) {
        self.changes.extras().memos_cleared.push(node);
    }

    /// Forgets one memo of a function.
    pub(crate) fn forget_memo(&mut self, node: Node, key: String) {
        self.changes.extras().memos_forgotten.push((node, key));
    }
}
