//! How the rules' changes to a run are written down.

use rusqlite::params;
use stepwell_core::decide::{Affected, Happening, affected, decide};
use stepwell_core::id::{Node, RunKey};
use stepwell_core::run::{AttemptRow, AttemptState, Changes, RunImage, TaskRow, TaskState};

use super::book::End;
use super::line::Queued;
use super::rows::{self, int, json, key};
use super::transaction::Transaction;
use super::{rows::StoredRun, statements};
use crate::ports::{Hint, StoreError, StoredDefinition};

impl Transaction<'_, '_> {
    pub(super) fn stored_run(&self, run: RunKey) -> Result<Option<StoredRun>, StoreError> {
        self.first(statements::READ_RUN, [key(run)], rows::run)
    }

    pub(super) fn tasks(&self, run: RunKey, open_only: bool) -> Result<Vec<TaskRow>, StoreError> {
        self.all(statements::READ_TASKS, params![key(run), open_only], rows::task)
    }

    /// Decides what happened to one task and writes what follows. The caller has checked that it
    /// is current.
    pub(super) fn happen(
        &mut self,
        run: RunKey,
        node: Node,
        happening: Happening,
    ) -> Result<(), StoreError> {
        let stored = self.held(run)?.row.definition;
        let stored = self.definition(stored)?;
        let needed = affected(&stored.definition, [(node, &happening)]);
        let nodes = match needed {
            Affected::Nodes(nodes) => nodes,
            Affected::AllOpenAnd(mut nodes) => {
                nodes.extend(self.hold_open(run)?);
                nodes
            }
        };
        let mut image = self.image(run, &stored, nodes)?;
        decide(&mut image, node, happening);
        self.write_run(image, &stored)
    }

    /// The image of a run with these tasks, as far as they are there.
    pub(super) fn image<'d>(
        &mut self,
        run: RunKey,
        stored: &'d StoredDefinition,
        nodes: impl IntoIterator<Item = Node>,
    ) -> Result<RunImage<'d>, StoreError> {
        let mut tasks = Vec::new();
        for node in nodes {
            tasks.extend(self.held_task(run, node)?.map(|task| task.row.clone()));
        }
        let row = self.held(run)?.row.clone();
        Ok(RunImage::new(&stored.definition, self.now, row, tasks))
    }

    /// Takes a changed image back: rows first, then slots that came free, then what became
    /// ready, so that a freed slot goes to those who waited longest.
    pub(super) fn write_run(
        &mut self,
        image: RunImage<'_>,
        stored: &StoredDefinition,
    ) -> Result<(), StoreError> {
        let (run, tasks, changes) = image.into_parts();
        let key = run.key;
        let held = self.held(key)?;
        let group = held.group;
        held.set_row(run);
        for task in tasks.into_iter().filter(|task| changes.touched.contains(&task.node)) {
            held.set_task(task);
        }
        self.book.runs_changed.push(key);
        self.settle(key, group, stored, &changes)
    }

    /// Writes what follows from changed rows.
    pub(super) fn settle(
        &mut self,
        run: RunKey,
        group: u32,
        stored: &StoredDefinition,
        changes: &Changes,
    ) -> Result<(), StoreError> {
        self.write_history(run, changes)?;
        self.take_away(run, group, changes)?;
        for node in &changes.enqueued {
            let losses = self.held_task(run, *node)?.map_or(0, |task| task.row.losses);
            let (queue, definition) = (stored.definition.queue(*node), stored.id);
            let number = self.next_number();
            self.put(Queued { number, run, node: *node, group, queue, definition, losses })?;
        }
        for timer in &changes.timers {
            let due = self.now.after(timer.after).as_micros();
            let number = self.next_number();
            self.run(statements::SET_TIMER, params![due, int(number), key(run), timer.node.0])?;
        }
        self.earn_hints(changes);
        Ok(())
    }

    fn write_history(&mut self, run: RunKey, changes: &Changes) -> Result<(), StoreError> {
        for attempt in &changes.attempts {
            if !self.keep_end(run, attempt)? {
                self.insert_attempt(run, attempt)?;
            }
        }
        for event in &changes.events {
            self.run(
                statements::INSERT_EVENT,
                params![
                    key(run),
                    int(event.number),
                    event.at.as_micros(),
                    event.node.map(|node| node.0),
                    event.attempt,
                    json(&event.kind)?,
                ],
            )?;
        }
        Ok(())
    }

    /// Lets the row of a task that completed carry its last attempt, unless there is more to tell
    /// than the row has room for.
    fn keep_end(&mut self, run: RunKey, attempt: &AttemptRow) -> Result<bool, StoreError> {
        let is_plain = attempt.state == AttemptState::Completed
            && attempt.notes.is_empty()
            && attempt.failure.is_none()
            && attempt.retry.is_none();
        let task = self.held_task(run, attempt.node)?.filter(|task| {
            is_plain && task.written.is_some_and(|file| file.state == TaskState::Running)
        });
        let Some(task) = task else { return Ok(false) };
        task.end = Some(End {
            ended_at: attempt.ended_at,
            first_event: attempt.first_event,
            with_queued: attempt.with_queued,
            output: None,
            is_large: false,
        });
        Ok(true)
    }

    fn insert_attempt(&mut self, run: RunKey, attempt: &AttemptRow) -> Result<(), StoreError> {
        let worker = self.worker_no(&attempt.claim.worker)?;
        let notes = (!attempt.notes.is_empty()).then(|| json(&attempt.notes)).transpose()?;
        self.run(
            statements::INSERT_ATTEMPT,
            params![
                key(run),
                attempt.node.0,
                attempt.attempt,
                attempt.state as i64,
                worker,
                rows::token(attempt.claim.token),
                attempt.claim.queued_at.as_micros(),
                attempt.claim.started_at.as_micros(),
                attempt.ended_at.as_micros(),
                int(attempt.first_event),
                attempt.with_queued,
                attempt.failure.as_ref().map(json).transpose()?,
                attempt.retry.as_ref().map(json).transpose()?,
                notes,
            ],
        )?;
        Ok(())
    }

    /// Removes queue rows, timers and slots of tasks that moved on.
    fn take_away(&mut self, run: RunKey, group: u32, changes: &Changes) -> Result<(), StoreError> {
        for node in &changes.timers_cleared {
            self.run(statements::CLEAR_TIMER, params![key(run), node.0])?;
        }
        self.cancel_queued(run, group, &changes.dequeued)?;
        if !changes.claims_ended.is_empty() {
            self.free_slots(group, changes.claims_ended.len())?;
        }
        Ok(())
    }

    fn earn_hints(&mut self, changes: &Changes) {
        if !changes.timers.is_empty() {
            self.earn(Hint::Timers);
        }
        if changes.run_ended {
            self.earn(Hint::Ended);
        }
    }
}
