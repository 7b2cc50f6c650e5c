//! Runs and tasks under change: taken from the book or read, and written once per call.

use std::collections::btree_map::Entry;
use std::collections::hash_map::Entry as MapEntry;

use rusqlite::params;
use stepwell_core::id::{Node, RunKey, WorkerId};
use stepwell_core::run::{Phase, RunRow, TaskRow, TaskState};
use stepwell_core::time::Timestamp;

use super::book::{End, HeldRun, HeldTask, RunChange, Runs, WorkerNumbers, Written};
use super::error::corrupt;
use super::file::File;
use super::rows::{self, int, json, key};
use super::statements;
use super::transaction::Transaction;
use crate::ports::StoreError;

impl Runs {
    /// A run, which is read if it is not there yet.
    fn hold(
        &mut self,
        file: File<'_, '_>,
        run: RunKey,
    ) -> Result<Option<&mut HeldRun>, StoreError> {
        match self.by_key.entry(run) {
            MapEntry::Occupied(held) => Ok(Some(held.into_mut().as_mut())),
            MapEntry::Vacant(room) => {
                let stored = file.first(statements::READ_RUN, [key(run)], rows::run)?;
                let held = stored.map(|run| HeldRun::of(run.row, run.no, run.group));
                Ok(held.map(|held| room.insert(Box::new(held)).as_mut()))
            }
        }
    }
}

impl HeldRun {
    /// A task, which is read if it is not there yet.
    fn hold(
        &mut self,
        file: File<'_, '_>,
        node: Node,
    ) -> Result<Option<&mut HeldTask>, StoreError> {
        match self.tasks.entry(node) {
            Entry::Occupied(task) => Ok(Some(task.into_mut().as_mut())),
            Entry::Vacant(room) => {
                let row = params![self.no, node.0];
                let task = file.first(statements::READ_TASK, row, rows::held_task)?;
                Ok(task.map(|task| room.insert(Box::new(task)).as_mut()))
            }
        }
    }
}

impl Transaction<'_, '_> {
    /// A run under change, if there is such a run.
    pub(super) fn find_held(&mut self, run: RunKey) -> Result<Option<&mut HeldRun>, StoreError> {
        self.book.runs.hold(self.file, run)
    }

    /// A run under change.
    pub(super) fn held(&mut self, run: RunKey) -> Result<&mut HeldRun, StoreError> {
        self.find_held(run)?.ok_or_else(|| corrupt(format!("run {run} is missing")))
    }

    /// A task under change, if there is such a task.
    pub(super) fn held_task(
        &mut self,
        run: RunKey,
        node: Node,
    ) -> Result<Option<&mut HeldTask>, StoreError> {
        let file = self.file;
        self.find_held(run)?.map_or(Ok(None), |held| held.hold(file, node))
    }

    /// Takes a ready task into the book by one statement, with its run, unless that is there.
    pub(super) fn hold_ready(&mut self, run: RunKey, node: Node) -> Result<(), StoreError> {
        if self.book.runs.by_key.contains_key(&run) {
            return Ok(());
        }
        let row = params![key(run), node.0];
        let found = self.first(statements::READ_READY, row, rows::ready)?;
        if let Some((stored, task)) = found {
            let mut held = HeldRun::of(stored.row, stored.no, stored.group);
            held.tasks.insert(node, Box::new(task));
            self.book.runs.by_key.insert(run, Box::new(held));
        }
        Ok(())
    }

    /// A task that is about to change.
    pub(super) fn change_task(
        &mut self,
        run: RunKey,
        node: Node,
    ) -> Result<&mut HeldTask, StoreError> {
        let file = self.file;
        self.book.runs_changed.push(run);
        let held = self.held(run)?;
        held.tasks_changed.push(node);
        let task = held.hold(file, node)?;
        task.ok_or_else(|| corrupt(format!("task {node:?} of run {run} is missing")))
    }

    /// Takes all open tasks of a run into the book and names them.
    pub(super) fn hold_open(&mut self, run: RunKey) -> Result<Vec<Node>, StoreError> {
        self.write_rows()?;
        let open = self.all(statements::READ_TASKS, params![key(run), true], rows::held_task)?;
        let nodes = open.iter().map(|task| task.row.node).collect();
        let held = self.held(run)?;
        for task in open {
            held.tasks.entry(task.row.node).or_insert_with(|| Box::new(task));
        }
        Ok(nodes)
    }

    /// The number of a worker.
    pub(super) fn worker_no(&mut self, worker: &WorkerId) -> Result<i64, StoreError> {
        number_of(self.file, &mut self.book.workers, worker)
    }

    /// Writes everything that a call has changed.
    pub(super) fn write_down(&mut self) -> Result<(), StoreError> {
        self.write_rows()?;
        self.write_line()
    }

    /// Writes runs and tasks, in the order of their keys.
    pub(super) fn write_rows(&mut self) -> Result<(), StoreError> {
        let mut changed = std::mem::take(&mut self.book.runs_changed);
        changed.sort_unstable();
        changed.dedup();
        for run in changed {
            let has_room = self.book.has_room();
            let Some(held) = self.book.runs.by_key.get_mut(&run) else { continue };
            write_held(self.file, &mut self.book.workers, held)?;
            let is_kept = !std::mem::take(&mut held.is_fresh) || has_room;
            if !is_kept || held.row.status.is_terminal() {
                self.book.runs.by_key.remove(&run);
            }
        }
        Ok(())
    }
}

fn write_held(
    file: File<'_, '_>,
    workers: &mut WorkerNumbers,
    held: &mut HeldRun,
) -> Result<(), StoreError> {
    let mut changed = std::mem::take(&mut held.tasks_changed);
    changed.sort_unstable();
    changed.dedup();
    for node in changed {
        let Some(task) = held.tasks.get_mut(&node) else { continue };
        write_task(file, workers, held.no, task)?;
        task.mark_written();
        if task.row.state().is_terminal() {
            held.tasks.remove(&node);
        }
    }
    match std::mem::take(&mut held.change) {
        RunChange::None => Ok(()),
        RunChange::Counters => {
            let (n_open, next_event) = (held.row.n_open, int(held.row.next_event));
            let row = params![held.no, n_open, next_event];
            file.run_small(statements::ADVANCE_RUN, row).map(drop)
        }
        RunChange::Whole => update_run(file, held.no, &held.row),
    }
}

fn number_of(
    file: File<'_, '_>,
    workers: &mut WorkerNumbers,
    worker: &WorkerId,
) -> Result<i64, StoreError> {
    if let Some(no) = workers.get(worker) {
        return Ok(*no);
    }
    let read = |row: &rusqlite::Row<'_>| Ok(row.get::<_, i64>(0)?);
    let found = file.first(statements::READ_WORKER_NO, [worker.as_str()], read)?;
    let no = found.ok_or_else(|| corrupt(format!("worker {worker} is missing")))?;
    workers.insert(worker.clone(), no);
    Ok(no)
}

/// Writes a task by the statement that touches least.
fn write_task(
    file: File<'_, '_>,
    workers: &mut WorkerNumbers,
    run: i64,
    task: &HeldTask,
) -> Result<(), StoreError> {
    let (row, node) = (&task.row, task.row.node);
    let worker = row.claim().map(|claim| number_of(file, workers, &claim.worker)).transpose()?;
    if let Some(end) = &task.end {
        return complete_task(file, run, node, end);
    }
    let n = match (task.written, row.claim()) {
        (None, _) if row.phase == Phase::Pending && row.n_skipped == 0 => {
            file.run_small(statements::INSERT_PENDING, params![run, node.0, row.n_unmet])?
        }
        (None, _) => write_whole(file, statements::INSERT_TASK, run, task, worker)?,
        (Some(Written { state: TaskState::Pending, .. }), _) if row.phase == Phase::Pending => {
            let counts = params![run, node.0, row.n_unmet, row.n_skipped];
            file.run_small(statements::COUNT_DOWN, counts)?
        }
        (Some(Written { state: TaskState::Queued, is_placed: true, losses }), Some(claim))
            if losses == row.losses =>
        {
            let (token, started_at) = (rows::token(claim.token), claim.started_at.as_micros());
            let claimed = params![run, node.0, row.attempt, started_at, worker, token];
            file.run_small(statements::CLAIM_TASK, claimed)?
        }
        (Some(Written { is_placed: false, losses, .. }), _)
            if losses == row.losses && task.place.is_none() =>
        {
            move_task(file, run, row, worker)?
        }
        (Some(_), _) => write_whole(file, statements::UPDATE_TASK, run, task, worker)?,
    };
    if n == 1 { Ok(()) } else { Err(went_away(run, node)) }
}

fn complete_task(file: File<'_, '_>, run: i64, node: Node, end: &End) -> Result<(), StoreError> {
    let output = end.output.as_ref();
    let n = file.run_small(
        statements::COMPLETE_TASK,
        params![
            run,
            node.0,
            end.ended_at.as_micros(),
            int(end.first_event),
            end.with_queued,
            output.map(|output| output.codec.as_ref()),
            output.map(|output| output.bytes.as_ref()),
        ],
    )?;
    if n == 1 { Ok(()) } else { Err(went_away(run, node)) }
}

fn went_away(run: i64, node: Node) -> StoreError {
    corrupt(format!("task {node:?} of run number {run} went away"))
}

/// Since when a task is queued, and when it is due.
fn times(task: &TaskRow) -> (Option<i64>, Option<i64>) {
    let (queued_at, due_at) = match &task.phase {
        Phase::Queued { since, due } => (Some(*since), *due),
        Phase::Running(claim) => (Some(claim.queued_at), None),
        Phase::Sleeping { until } => (None, Some(*until)),
        _ => (None, None),
    };
    (queued_at.map(Timestamp::as_micros), due_at.map(Timestamp::as_micros))
}

fn move_task(
    file: File<'_, '_>,
    run: i64,
    task: &TaskRow,
    worker: Option<i64>,
) -> Result<usize, StoreError> {
    let (claim, (queued_at, due_at)) = (task.claim(), times(task));
    file.run_small(
        statements::MOVE_TASK,
        params![
            run,
            task.node.0,
            task.state() as i64,
            task.n_unmet,
            task.n_skipped,
            task.attempt,
            task.failures,
            task.queued_logged,
            queued_at,
            due_at,
            claim.map(|claim| claim.started_at.as_micros()),
            worker,
            claim.map(|claim| rows::token(claim.token)),
        ],
    )
}

fn write_whole(
    file: File<'_, '_>,
    sql: &'static str,
    run: i64,
    HeldTask { row: task, place, .. }: &HeldTask,
    worker: Option<i64>,
) -> Result<usize, StoreError> {
    let (claim, place, (queued_at, due_at)) = (task.claim(), place.as_ref(), times(task));
    file.run_small(
        sql,
        params![
            run,
            task.node.0,
            task.state() as i64,
            task.n_unmet,
            task.n_skipped,
            task.attempt,
            task.failures,
            task.losses,
            task.queued_logged,
            queued_at,
            due_at,
            claim.map(|claim| claim.started_at.as_micros()),
            worker,
            claim.map(|claim| rows::token(claim.token)),
            place.map(|place| place.queue.as_str()),
            place.map(|place| int(place.order.0)),
            place.map(|place| int(place.number)),
            place.map(|place| int(place.position.0)),
            place.map(|place| place.definition.0),
        ],
    )
}

fn update_run(file: File<'_, '_>, no: i64, run: &RunRow) -> Result<(), StoreError> {
    let failure = run.failure.as_ref().map(json).transpose()?;
    file.run_small(
        statements::UPDATE_RUN,
        params![
            no,
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
