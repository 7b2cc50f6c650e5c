//! The part of a run that a decision needs, loaded by a store and changed by the rules.
//!
//! A store locks the run, loads the rows named by [`affected`](crate::decide::affected), lets
//! the rules change the image, and writes what [`Changes`] lists. Rules see no store, stores
//! hold no rules.

mod changes;
mod inbox;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use core::time::Duration;

pub use changes::{Changes, Extras, Timer};

use super::{
    AttemptRow, AttemptState, Because, EventKind, EventRow, Inbox, Phase, RetryPlan, RunRow,
    RunTimer, TaskRow, TaskState, Tasks, is_allowed,
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
        let node = timer.node();
        self.changes.timers.retain(|timer| timer.node != node);
        self.changes.timers.push(Timer { node, after });
    }

    pub(crate) fn clear_run_timer(&mut self, timer: RunTimer) {
        let cleared = &mut self.changes.extras().run_timers_cleared;
        if !cleared.contains(&timer) {
            cleared.push(timer);
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
        let may_have_waits = task.may_have_waits();
        if let Some(due) = due {
            self.changes.timers.push(Timer { node, after: due.since(now) });
        }
        if old.in_queue() {
            self.changes.dequeued.push(node);
        }
        if old.due().is_some() {
            self.changes.timers_cleared.push(node);
        }
        let is_waiting = matches!(old, Phase::Waiting { .. });
        if let Phase::Running(claim) = old {
            self.changes.claims_ended.push((node, claim));
        }
        if enters {
            self.changes.enqueued.push(node);
        }
        if to.is_terminal() {
            if is_waiting || may_have_waits {
                self.close_waits(node);
            }
            self.run.n_open = self.run.n_open.saturating_sub(1);
            self.run.n_failed += u32::from(to == TaskState::Failed);
            self.run.n_cancelled += u32::from(to == TaskState::Cancelled);
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
        let Some(task) = self.task(node).filter(|task| !task.queued_logged) else { return };
        // An attempt that ended before gave its number to QUEUED as well.
        let attempt = task.claim().map_or(0, |_| task.attempt);
        let (number, kind) = (self.next_events(1), EventKind::Queued);
        let row = EventRow { number, at: since, node: Some(node), attempt, kind };
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
