//! The part of a run that a decision needs, loaded by a store and changed by the rules.
//!
//! A store locks the run, loads the rows named by [`affected`](crate::decide::affected), lets
//! the rules change the image, and writes what [`Changes`] lists. Rules see no store, stores
//! hold no rules.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::time::Duration;

use super::{
    AttemptRow, AttemptState, Because, Claim, EventKind, EventRow, Inbox, Phase, RetryPlan, RunRow,
    RunTimer, SignalRow, TaskRow, TaskState, Tasks, WaitRow, is_allowed,
};
use crate::failure::Failure;
use crate::id::Node;
use crate::time::Timestamp;
use crate::workflow::Definition;

/// The loaded part of a run, under change.
#[derive(Debug)]
pub struct RunImage<'d> {
    pub(crate) definition: &'d Definition,
    pub(crate) now: Timestamp,
    pub(crate) run: RunRow,
    pub(crate) tasks: Tasks,
    inbox: Option<Box<Inbox>>,
    changes: Changes,
}

/// What a store has to write after the rules have worked on an image.
#[derive(Debug, Default)]
pub struct Changes {
    /// Tasks whose rows changed.
    pub touched: BTreeSet<Node>,
    /// Tasks that enter their queue now, in order.
    pub enqueued: Vec<Node>,
    /// Tasks that leave their queue, or the line before it, without being claimed.
    pub dequeued: Vec<Node>,
    /// Timers to set.
    pub timers: Vec<Timer>,
    /// Tasks whose timer goes.
    pub timers_cleared: Vec<Node>,
    /// Claims that ended.
    pub claims_ended: Vec<(Node, Claim)>,
    /// Attempts that ended.
    pub attempts: Vec<AttemptRow>,
    /// Irregular events.
    pub events: Vec<EventRow>,
    /// Whether the run ended.
    pub run_ended: bool,
    /// What few decisions bring; the others pay a null pointer for it.
    pub extras: Option<Box<Extras>>,
}

/// What few decisions bring.
#[derive(Debug, Default)]
pub struct Extras {
    /// Tasks that were not there from the start: the run inserted them itself.
    pub inserted: Vec<Node>,
    /// The run's own timers that go.
    pub run_timers_cleared: Vec<RunTimer>,
    /// Waits that open. One of a task whose wait closes takes its place.
    pub waits_opened: Vec<WaitRow>,
    /// Tasks whose wait closes.
    pub waits_closed: Vec<Node>,
    /// Signals to store, in order. Some may have been consumed at once.
    pub signals_stored: Vec<SignalRow>,
    /// Signals that were stored before and are consumed now, with the task that gets each.
    pub signals_consumed: Vec<(u64, Node)>,
}

impl Changes {
    /// Whether the run itself inserted this task just now.
    #[must_use]
    pub fn is_inserted(&self, node: Node) -> bool {
        self.extras.as_ref().is_some_and(|extras| extras.inserted.contains(&node))
    }

    /// Timers that go: of tasks that moved on, and of the run.
    pub fn all_timers_cleared(&self) -> impl Iterator<Item = Node> {
        let of_run = self.extras.iter().flat_map(|extras| &extras.run_timers_cleared);
        self.timers_cleared.iter().copied().chain(of_run.map(|timer| timer.node()))
    }

    fn extras(&mut self) -> &mut Extras {
        self.extras.get_or_insert_default()
    }
}

/// A timer to set for a task; the store adds the span to its own time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    /// The task.
    pub node: Node,
    /// When it fires, counted from now.
    pub after: Duration,
}

impl<'d> RunImage<'d> {
    /// An image of a run at the store's time `now`, with the tasks that were loaded.
    #[must_use]
    pub fn new(
        definition: &'d Definition,
        now: Timestamp,
        run: RunRow,
        tasks: impl IntoIterator<Item = TaskRow>,
    ) -> Self {
        let tasks = tasks.into_iter().collect();
        Self { definition, now, run, tasks, inbox: None, changes: Changes::default() }
    }

    /// The same image with waits and signals of the run.
    #[must_use]
    pub fn with_inbox(mut self, inbox: Inbox) -> Self {
        self.inbox = Some(Box::new(inbox));
        self
    }

    /// An image of a run that starts, with all its tasks.
    pub(crate) fn fresh(
        definition: &'d Definition,
        now: Timestamp,
        run: RunRow,
        tasks: impl IntoIterator<Item = TaskRow>,
    ) -> Self {
        let mut image = Self::new(definition, now, run, tasks);
        image.changes.touched = image.tasks.iter().map(|task| task.node).collect();
        image.run.n_open = u32::try_from(image.changes.touched.len()).unwrap_or(u32::MAX);
        image
    }

    /// The run as it stands.
    #[must_use]
    pub const fn run(&self) -> &RunRow {
        &self.run
    }

    /// A task as it stands, if it was loaded.
    #[must_use]
    pub fn task(&self, node: Node) -> Option<&TaskRow> {
        self.tasks.get(node)
    }

    /// The rows and what became of them. A task that entered its queue and left it again within
    /// this image never appears in the queue.
    #[must_use]
    pub fn into_parts(self) -> (RunRow, Tasks, Changes) {
        let Self { run, tasks, mut changes, .. } = self;
        let phase = |node: &Node| tasks.get(*node).map(|task| &task.phase);
        changes.enqueued.retain(|node| phase(node).is_some_and(Phase::in_queue));
        let stands = |timer: &Timer| match RunTimer::at(timer.node) {
            Some(_) => !run.status.is_terminal(),
            None => phase(&timer.node).and_then(Phase::due).is_some(),
        };
        changes.timers.retain(stands);
        (run, tasks, changes)
    }

    /// The state of a loaded task.
    pub(crate) fn state(&self, node: Node) -> Option<TaskState> {
        self.task(node).map(TaskRow::state)
    }

    /// Marks a row as changed and hands it out.
    pub(crate) fn touch(&mut self, node: Node) -> Option<&mut TaskRow> {
        let task = self.tasks.get_mut(node)?;
        self.changes.touched.insert(node);
        Some(task)
    }

    /// Adds a task that was not there from the start.
    pub(crate) fn insert(&mut self, task: TaskRow) {
        self.changes.touched.insert(task.node);
        self.changes.extras().inserted.push(task.node);
        self.run.n_open += 1;
        self.tasks.insert(task);
    }

    pub(crate) fn set_run_timer(&mut self, timer: RunTimer, after: Duration) {
        self.changes.timers.push(Timer { node: timer.node(), after });
    }

    pub(crate) fn clear_run_timer(&mut self, timer: RunTimer) {
        let cleared = &mut self.changes.extras().run_timers_cleared;
        if !cleared.contains(&timer) {
            cleared.push(timer);
        }
    }

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

    /// Moves a task to another phase and keeps the run's counters. Queue and timer rows that
    /// belonged to the old phase go with it.
    pub(crate) fn move_to(&mut self, node: Node, phase: Phase, because: Because) {
        let now = self.now;
        let Some(task) = self.touch(node) else {
            debug_assert!(false, "task {node:?} was not loaded");
            return;
        };
        let (from, to) = (task.state(), phase.state());
        debug_assert!(is_allowed(from, to, because), "{from} -> {to} because {because:?}");
        let old = core::mem::replace(&mut task.phase, phase);
        let (due, enters) = (task.phase.due(), task.phase.in_queue());
        if let Some(due) = due {
            self.changes.timers.push(Timer { node, after: due.since(now) });
        }
        if old.in_queue() {
            self.changes.dequeued.push(node);
        }
        if old.due().is_some() {
            self.changes.timers_cleared.push(node);
        }
        match old {
            Phase::Running(claim) => self.changes.claims_ended.push((node, claim)),
            Phase::Waiting { .. } => self.close_wait(node),
            _ => {}
        }
        if enters {
            self.changes.enqueued.push(node);
        }
        if to.is_terminal() {
            self.run.n_open = self.run.n_open.saturating_sub(1);
            self.run.n_failed += u32::from(to == TaskState::Failed);
            self.run.n_cancelled += u32::from(to == TaskState::Cancelled);
        }
    }

    fn close_wait(&mut self, node: Node) {
        if let Some(inbox) = &mut self.inbox {
            inbox.waits.retain(|wait| wait.node != node);
        }
        let extras = self.changes.extras();
        extras.waits_opened.retain(|wait| wait.node != node);
        extras.waits_closed.push(node);
    }

    /// Sets the timer of a task that goes on waiting, in the place of one that was to be set.
    pub(crate) fn set_wait_timer(&mut self, node: Node, due: Option<Timestamp>) {
        let now = self.now;
        if let Some(task) = self.touch(node) {
            task.phase = Phase::Waiting { due };
            self.changes.timers_cleared.push(node);
            self.changes.timers.retain(|timer| timer.node != node);
            self.changes.timers.extend(due.map(|due| Timer { node, after: due.since(now) }));
        }
    }

    /// Lets a delayed task into its queue: it stays QUEUED and is stamped anew.
    pub(crate) fn release_delayed(&mut self, node: Node) {
        let now = self.now;
        if let Some(task) = self.touch(node) {
            task.phase = Phase::Queued { since: now, due: None };
            self.changes.timers_cleared.push(node);
            self.changes.enqueued.push(node);
        }
    }

    /// Writes an irregular event under the run's next number.
    pub(crate) fn record(&mut self, node: Option<Node>, attempt: u32, kind: EventKind) {
        let (number, at) = (self.next_events(1), self.now);
        self.changes.events.push(EventRow { number, at, node, attempt, kind });
    }

    /// Writes QUEUED of a task that leaves its queue without an attempt, unless it was logged.
    pub(crate) fn record_queued(&mut self, node: Node) {
        if let Some(TaskRow { phase: Phase::Queued { since, .. }, .. }) = self.task(node) {
            self.record_queued_since(node, *since);
        }
    }

    /// Writes that a task was queued at `since`, unless it was logged.
    pub(crate) fn record_queued_since(&mut self, node: Node, since: Timestamp) {
        if self.task(node).is_none_or(|task| task.queued_logged) {
            return;
        }
        let (number, kind) = (self.next_events(1), EventKind::Queued);
        let row = EventRow { number, at: since, node: Some(node), attempt: 0, kind };
        self.changes.events.push(row);
        if let Some(task) = self.touch(node) {
            task.queued_logged = true;
        }
    }

    /// Writes the attempt of a RUNNING task that is about to leave that state, and reserves its
    /// block of events.
    pub(crate) fn end_attempt(&mut self, node: Node, ended: EndedAttempt) {
        let Some((claim, attempt, with_queued)) = self
            .task(node)
            .and_then(|task| Some((task.claim()?.clone(), task.attempt, !task.queued_logged)))
        else {
            return;
        };
        let first_event = self.next_events(if with_queued { 3 } else { 2 });
        if let Some(task) = self.touch(node) {
            task.queued_logged = true;
        }
        // The time of a transaction is that of its begin. One that waited for a lock, such as that
        // of a reaper, may be older than the claim it ends.
        let ended_at = self.now.max(claim.started_at);
        self.changes.attempts.push(AttemptRow {
            node,
            attempt,
            state: ended.state,
            claim,
            ended_at,
            first_event,
            with_queued,
            failure: ended.failure,
            retry: ended.retry,
            notes: ended.notes,
        });
    }

    /// Reserves `n` event numbers and gives the first.
    pub(crate) fn next_events(&mut self, n: u64) -> u64 {
        let first = self.run.next_event;
        self.run.next_event += n;
        first
    }

    pub(crate) fn mark_run_ended(&mut self) {
        self.changes.run_ended = true;
    }
}

/// How an attempt ended, for [`RunImage::end_attempt`].
#[derive(Debug)]
pub(crate) struct EndedAttempt {
    pub(crate) state: AttemptState,
    pub(crate) failure: Option<Failure>,
    pub(crate) retry: Option<RetryPlan>,
    pub(crate) notes: BTreeMap<alloc::string::String, alloc::string::String>,
}

impl EndedAttempt {
    pub(crate) fn plain(state: AttemptState) -> Self {
        Self { state, failure: None, retry: None, notes: BTreeMap::new() }
    }
}
