//! How the rules' changes to a run are written down.

use std::collections::BTreeMap;

use rusqlite::params;
use stepwell_core::decide::{Affected, Happening, affected, decide};
use stepwell_core::id::{Node, RunKey};
use stepwell_core::run::{AttemptRow, Changes, Phase, RunImage, RunRow, TaskRow};
use stepwell_core::time::Timestamp;

use super::error::corrupt;
use super::line::Queued;
use super::rows::{self, int, json, key};
use super::transaction::Transaction;
use super::{rows::StoredRun, statements};
use crate::ports::{Hint, StoreError, StoredDefinition};

impl Transaction<'_> {
    pub(super) fn stored_run(&self, run: RunKey) -> Result<Option<StoredRun>, StoreError> {
        self.first(statements::READ_RUN, [key(run)], rows::run)
    }

    pub(super) fn known_run(&self, run: RunKey) -> Result<StoredRun, StoreError> {
        self.stored_run(run)?.ok_or_else(|| corrupt(format!("run {run} is missing")))
    }

    pub(super) fn task(&self, run: RunKey, node: Node) -> Result<Option<TaskRow>, StoreError> {
        self.first(statements::READ_TASK, params![key(run), node.0], rows::task)
    }

    pub(super) fn tasks(&self, run: RunKey, open_only: bool) -> Result<Vec<TaskRow>, StoreError> {
        self.all(statements::READ_TASKS, params![key(run), open_only], rows::task)
    }

    /// Decides happenings of one run and writes what follows. The caller has checked that each
    /// is current.
    pub(super) fn happen(
        &mut self,
        run: RunKey,
        happenings: Vec<(Node, Happening)>,
    ) -> Result<(), StoreError> {
        let stored_run = self.known_run(run)?;
        let stored = self.definition(stored_run.row.definition)?;
        let needed = affected(&stored.definition, happenings.iter().map(|(n, h)| (*n, h)));
        let tasks = self.load(run, needed)?;
        let mut image = RunImage::new(&stored.definition, self.now, stored_run.row, tasks);
        for (node, happening) in happenings {
            decide(&mut image, node, happening);
        }
        self.write_run(image, &stored, stored_run.group)
    }

    fn load(&self, run: RunKey, needed: Affected) -> Result<Vec<TaskRow>, StoreError> {
        let (mut tasks, nodes) = match needed {
            Affected::Nodes(nodes) => (Vec::new(), nodes),
            Affected::AllOpenAnd(nodes) => (self.tasks(run, true)?, nodes),
        };
        for node in nodes {
            if !tasks.iter().any(|task| task.node == node) {
                tasks.extend(self.task(run, node)?);
            }
        }
        Ok(tasks)
    }

    /// Writes a changed image back: rows first, then slots that came free, then what became
    /// ready, so that a freed slot goes to those who waited longest.
    pub(super) fn write_run(
        &mut self,
        image: RunImage<'_>,
        stored: &StoredDefinition,
        group: u32,
    ) -> Result<(), StoreError> {
        let (run, tasks, changes) = image.into_parts();
        self.update_run(&run)?;
        for node in &changes.touched {
            if let Some(task) = tasks.get(node) {
                self.upsert_task(run.key, task)?;
            }
        }
        self.write_history(run.key, &changes)?;
        self.take_away(run.key, group, &changes)?;
        self.enqueue_all(run.key, group, stored, &tasks, &changes)?;
        for timer in &changes.timers {
            let due = self.now.after(timer.after).as_micros();
            let number = self.next_number()?;
            self.run(statements::SET_TIMER, params![due, int(number), key(run.key), timer.node.0])?;
        }
        self.earn_hints(&changes);
        Ok(())
    }

    fn enqueue_all(
        &mut self,
        run: RunKey,
        group: u32,
        stored: &StoredDefinition,
        tasks: &BTreeMap<Node, TaskRow>,
        changes: &Changes,
    ) -> Result<(), StoreError> {
        for node in &changes.enqueued {
            let losses = tasks.get(node).map_or(0, |task| task.losses);
            let queue = stored.definition.queue(*node);
            let definition = stored.id;
            let number = self.next_number()?;
            self.put(Queued { number, run, node: *node, group, queue, definition, losses })?;
        }
        Ok(())
    }

    fn update_run(&self, run: &RunRow) -> Result<(), StoreError> {
        let failure = run.failure.as_ref().map(json).transpose()?;
        self.run(
            statements::UPDATE_RUN,
            params![
                key(run.key),
                run.status as i64,
                run.n_open,
                run.n_failed,
                run.n_cancelled,
                run.cancelled,
                failure,
                int(run.next_event),
                run.end_event.map(int),
                run.ended_at.map(Timestamp::as_micros),
            ],
        )?;
        Ok(())
    }

    pub(super) fn upsert_task(&self, run: RunKey, task: &TaskRow) -> Result<(), StoreError> {
        let claim = task.claim();
        let (queued_at, due_at) = match &task.phase {
            Phase::Queued { since, due } => (Some(*since), *due),
            Phase::Running(claim) => (Some(claim.queued_at), None),
            Phase::Sleeping { until } => (None, Some(*until)),
            _ => (None, None),
        };
        let worker = match claim {
            Some(claim) => {
                let read = |row: &rusqlite::Row<'_>| Ok(row.get::<_, i64>(0)?);
                self.first(statements::READ_WORKER_NO, [claim.worker.as_str()], read)?
            }
            None => None,
        };
        self.run(
            statements::UPSERT_TASK,
            params![
                key(run),
                task.node.0,
                task.state() as i64,
                task.n_unmet,
                task.n_skipped,
                task.attempt,
                task.failures,
                task.losses,
                task.queued_logged,
                queued_at.map(Timestamp::as_micros),
                due_at.map(Timestamp::as_micros),
                claim.map(|claim| claim.started_at.as_micros()),
                worker,
                claim.map(|claim| rows::token(claim.token)),
            ],
        )?;
        Ok(())
    }

    fn write_history(&self, run: RunKey, changes: &Changes) -> Result<(), StoreError> {
        for attempt in &changes.attempts {
            self.insert_attempt(run, attempt)?;
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

    fn insert_attempt(&self, run: RunKey, attempt: &AttemptRow) -> Result<(), StoreError> {
        let notes = (!attempt.notes.is_empty()).then(|| json(&attempt.notes)).transpose()?;
        self.run(
            statements::INSERT_ATTEMPT,
            params![
                key(run),
                attempt.node.0,
                attempt.attempt,
                attempt.state as i64,
                attempt.claim.worker.as_str(),
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
        for _ in &changes.claims_ended {
            self.free_slot(group)?;
        }
        Ok(())
    }

    fn earn_hints(&mut self, changes: &Changes) {
        // A freed slot may have let a held-back task in.
        if !changes.enqueued.is_empty() || !changes.claims_ended.is_empty() {
            self.earn(Hint::Ready);
        }
        if !changes.timers.is_empty() {
            self.earn(Hint::Timers);
        }
        if changes.run_ended {
            self.earn(Hint::Ended);
        }
    }
}
