//! Tasks, with their place in a queue and with the end of those that completed.

use rusqlite::{Row, params};
use stepwell_core::id::{Node, Queue, RunKey, ServiceId, WorkerId};
use stepwell_core::queue::{OrderKey, Position};
use stepwell_core::run::{Claim, Phase, Resumed, TaskRow, TaskState};
use stepwell_core::time::Timestamp;

use super::cells::{Cells, Rows, int, key, selected, token};
use super::{payload, run};
use crate::outbound::sql::{Column, Table, named};
use crate::outbound::sqlite::file::{File, corrupt};
use crate::ports::{ClaimRef, ParentInput, Payload};

const SQL: &str = include_str!("../sql/task.sql");
const CLAIM_TASK: &str = named(SQL, "claim_task");
const COMPLETE_TASK: &str = named(SQL, "complete_task");
const COUNT_DOWN: &str = named(SQL, "count_down");
const DUMP_TASKS: &str = named(SQL, "dump_tasks");
const INSERT_PENDING: &str = named(SQL, "insert_pending");
const INSERT_TASK: &str = named(SQL, "insert_task");
const MOVE_TASK: &str = named(SQL, "move_task");
const READ_CLAIMS: &str = named(SQL, "read_claims");
const READ_READY: &str = named(SQL, "read_ready");
const READ_RESULT: &str = named(SQL, "read_result");
const READ_RESULTS_BETWEEN: &str = named(SQL, "read_results_between");
const READ_TASK: &str = named(SQL, "read_task");
const READ_TASKS: &str = named(SQL, "read_tasks");
const UPDATE_TASK: &str = named(SQL, "update_task");

pub(super) const TASK: Table = Table {
    name: "task",
    columns: &[
        Column::key("run", "integer"),
        Column::key("node", "integer"),
        Column::changed("state", "integer"),
        Column::changed("n_unmet", "integer"),
        Column::changed("n_skipped", "integer"),
        Column::changed("attempt", "integer"),
        Column::changed("failures", "integer"),
        Column::changed("losses", "integer"),
        Column::changed("queued_logged", "integer"),
        Column::changed("queued_at", "integer"),
        Column::changed("due_at", "integer"),
        Column::changed("started_at", "integer"),
        Column::changed("worker", "integer"),
        Column::changed("token", "blob"),
        Column::changed("resumed_by", "integer"),
        Column::changed("next_memo", "integer"),
        Column::changed("queue", "text"),
        Column::changed("order_key", "integer"),
        Column::changed("number", "integer"),
        Column::changed("position", "integer"),
        Column::changed("service", "integer"),
    ],
};

const fn at(column: &str) -> usize {
    TASK.index(column)
}

/// What a task left to its children.
pub(super) const RESULT: Table = Table {
    name: "result",
    columns: &[
        Column::kept("node", "integer"),
        Column::kept("state", "integer"),
        Column::kept("resumed_by", "integer"),
        Column::kept("output_codec", "text"),
        Column::kept("output", "blob"),
    ],
};

/// Where a task stands that can be claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) queue: Queue,
    pub(crate) order: OrderKey,
    pub(crate) number: u64,
    pub(crate) position: Position,
    pub(crate) service: ServiceId,
}

/// How a task completed: what its row keeps of the attempt, and its output if that is small.
pub(crate) struct TaskEnd {
    pub(crate) ended_at: Timestamp,
    pub(crate) first_event: u64,
    pub(crate) with_queued: bool,
    pub(crate) output: Option<Payload>,
    /// Its output is too large for its row.
    pub(crate) is_large: bool,
}

/// A task as the file has it.
pub(crate) type StoredTask = (TaskRow, Option<Place>);

fn read(row: Cells<'_, '_>) -> Rows<StoredTask> {
    Ok((read_row(row)?, read_place(row)?))
}

fn read_row(row: Cells<'_, '_>) -> Rows<TaskRow> {
    let state = state(row, const { at("state") })?;
    Ok(TaskRow {
        node: row.node(const { at("node") })?,
        phase: read_phase(row, state)?,
        n_unmet: row.count(const { at("n_unmet") })?,
        n_skipped: row.count(const { at("n_skipped") })?,
        attempt: row.count(const { at("attempt") })?,
        failures: row.count(const { at("failures") })?,
        losses: row.count(const { at("losses") })?,
        queued_logged: row.get(const { at("queued_logged") })?,
        resumed: resumed(row, const { at("resumed_by") })?,
        next_memo: row.unsigned(const { at("next_memo") })?,
    })
}

fn resumed(row: Cells<'_, '_>, column: usize) -> Rows<Option<Resumed>> {
    Ok(row.optional_unsigned(column)?.map(Resumed::of_number))
}

fn state(row: Cells<'_, '_>, column: usize) -> Rows<TaskState> {
    row.state(column, TaskState::ALL, |state| state as i64)
}

fn read_phase(row: Cells<'_, '_>, state: TaskState) -> Rows<Phase> {
    let queued_at = || row.time(const { at("queued_at") });
    Ok(match state {
        TaskState::Pending => Phase::Pending,
        TaskState::Queued => {
            let due = row.optional_time(const { at("due_at") })?;
            Phase::Queued { since: queued_at()?, due }
        }
        TaskState::Running => Phase::Running(Claim {
            worker: row.name::<WorkerId>(TASK.columns.len())?,
            token: row.token(const { at("token") })?,
            queued_at: queued_at()?,
            started_at: row.time(const { at("started_at") })?,
        }),
        TaskState::Sleeping => Phase::Sleeping { until: row.time(const { at("due_at") })? },
        TaskState::Waiting => Phase::Waiting { due: row.optional_time(const { at("due_at") })? },
        TaskState::Completed => Phase::Completed,
        TaskState::Failed => Phase::Failed,
        TaskState::Cancelled => Phase::Cancelled,
        TaskState::Skipped => Phase::Skipped,
        _ => return Err(corrupt("a task is in a state this version does not know")),
    })
}

/// A place that is null if the task has none.
fn read_place(row: Cells<'_, '_>) -> Rows<Option<Place>> {
    let queue: Option<String> = row.get(const { at("queue") })?;
    let Some(queue) = queue else { return Ok(None) };
    Ok(Some(Place {
        queue: Queue::new(queue).map_err(|_| corrupt("a stored name is not well formed"))?,
        order: OrderKey(row.unsigned(const { at("order_key") })?),
        number: row.unsigned(const { at("number") })?,
        position: Position(row.unsigned(const { at("position") })?),
        service: ServiceId(row.count(const { at("service") })?),
    }))
}

pub(crate) fn load(file: File<'_, '_>, run_no: i64, node: Node) -> Rows<Option<StoredTask>> {
    file.first(READ_TASK, params![run_no, node.0], |row| read(Cells::of(row)))
}

/// The open tasks of a run, in the order of their nodes.
pub(crate) fn load_open(file: File<'_, '_>, run: RunKey) -> Rows<Vec<StoredTask>> {
    file.all(READ_TASKS, params![key(run), true], |row| read(Cells::of(row)))
}

/// The tasks of a run, in the order of their nodes.
pub(crate) fn of_run(file: File<'_, '_>, run: RunKey) -> Rows<Vec<TaskRow>> {
    file.all(READ_TASKS, params![key(run), false], |row| read_row(Cells::of(row)))
}

/// As [`of_run`], but only open ones.
pub(crate) fn open_of_run(file: File<'_, '_>, run: RunKey) -> Rows<Vec<TaskRow>> {
    file.all(READ_TASKS, params![key(run), true], |row| read_row(Cells::of(row)))
}

pub(crate) fn all(file: File<'_, '_>) -> Rows<Vec<(RunKey, TaskRow)>> {
    file.all(DUMP_TASKS, [], |row| {
        let row = Cells::of(row);
        Ok((row.run_key(TASK.columns.len() + 1)?, read_row(row)?))
    })
}

/// A ready task with its run.
pub(crate) fn load_ready(
    file: File<'_, '_>,
    run: RunKey,
    node: Node,
) -> Rows<Option<(run::StoredRun, StoredTask)>> {
    file.first(READ_READY, params![key(run), node.0], |row| {
        let row = Cells::of(row);
        let task = read(row.after(run::N_COLUMNS))?;
        if task.0.state() != TaskState::Queued {
            return Err(corrupt("a task in a queue is not queued"));
        }
        Ok((run::read(row)?, task))
    })
}

selected! { Held { RunKey, Node, Token, Losses, } }

/// The claims of a worker with the losses of each task so far.
pub(crate) fn claims_of(file: File<'_, '_>, worker_no: i64) -> Rows<Vec<(ClaimRef, u32)>> {
    file.all(READ_CLAIMS, [worker_no], |row| {
        let row = Cells::of(row);
        let (run, node) = (row.run_key(Held::RunKey)?, row.node(Held::Node)?);
        let claim = ClaimRef { run, node, token: row.token(Held::Token)? };
        Ok((claim, row.count(Held::Losses)?))
    })
}

/// What a task left, as far as its own row tells. A completed one that was resumed left what it
/// got.
pub(crate) type TaskResult = (ParentInput, Option<Resumed>);

pub(crate) fn result(file: File<'_, '_>, run: RunKey, node: Node) -> Rows<Option<TaskResult>> {
    file.first(READ_RESULT, params![key(run), node.0], read_result)
}

/// What the tasks from one node to another left, as far as their own rows tell.
pub(crate) fn results_between(
    file: File<'_, '_>,
    run: RunKey,
    first: Node,
    last: Node,
) -> Rows<Vec<TaskResult>> {
    file.all(READ_RESULTS_BETWEEN, params![key(run), first.0, last.0], read_result)
}

fn read_result(row: &Row<'_>) -> Rows<TaskResult> {
    const fn at(column: &str) -> usize {
        RESULT.index(column)
    }
    let row = Cells::of(row);
    let result = ParentInput {
        node: row.node(const { at("node") })?,
        state: state(row, const { at("state") })?,
        output: payload::small(row.after(const { at("output_codec") }))?,
    };
    Ok((result, resumed(row, const { at("resumed_by") })?))
}

/// Since when a task is queued, and when it is due.
fn times(task: &TaskRow) -> (Option<i64>, Option<i64>) {
    let (queued_at, due_at) = match &task.phase {
        Phase::Queued { since, due } => (Some(*since), *due),
        Phase::Running(claim) => (Some(claim.queued_at), None),
        Phase::Sleeping { until } => (None, Some(*until)),
        Phase::Waiting { due } => (None, *due),
        _ => (None, None),
    };
    (queued_at.map(Timestamp::as_micros), due_at.map(Timestamp::as_micros))
}

fn resumed_by(task: &TaskRow) -> Option<i64> {
    task.resumed.map(|resumed| int(resumed.number()))
}

/// A task as it is written: with the numbers by which its row names its run and its worker.
#[derive(Clone, Copy)]
pub(crate) struct TaskWrite<'t> {
    pub(crate) run_no: i64,
    pub(crate) row: &'t TaskRow,
    pub(crate) place: Option<&'t Place>,
    /// The worker that holds it.
    pub(crate) worker_no: Option<i64>,
}

impl TaskWrite<'_> {
    pub(crate) fn insert(self, file: File<'_, '_>) -> Rows<usize> {
        self.write_whole(file, INSERT_TASK)
    }

    /// Inserts a task before anything happened to it.
    pub(crate) fn insert_pending(self, file: File<'_, '_>) -> Rows<usize> {
        file.run_small(INSERT_PENDING, params![self.run_no, self.row.node.0, self.row.n_unmet])
    }

    /// Writes every column that can change.
    pub(crate) fn update(self, file: File<'_, '_>) -> Rows<usize> {
        self.write_whole(file, UPDATE_TASK)
    }

    /// Writes what a parent that is resolved changes.
    pub(crate) fn count_down(self, file: File<'_, '_>) -> Rows<usize> {
        let row = self.row;
        file.run_small(COUNT_DOWN, params![self.run_no, row.node.0, row.n_unmet, row.n_skipped])
    }

    /// Writes what a claim changes in a ready task: the attempt, the phase, and its place goes.
    pub(crate) fn claim(self, file: File<'_, '_>) -> Rows<usize> {
        let (row, claim) = (self.row, self.row.claim());
        file.run_small(
            CLAIM_TASK,
            params![
                self.run_no,
                row.node.0,
                row.attempt,
                claim.map(|claim| claim.started_at.as_micros()),
                self.worker_no,
                claim.map(|claim| token(claim.token)),
            ],
        )
    }

    /// Writes everything but losses, memos and place.
    pub(crate) fn move_on(self, file: File<'_, '_>) -> Rows<usize> {
        let (row, claim, (queued_at, due_at)) = (self.row, self.row.claim(), times(self.row));
        file.run_small(
            MOVE_TASK,
            params![
                self.run_no,
                row.node.0,
                row.state() as i64,
                row.n_unmet,
                row.n_skipped,
                row.attempt,
                row.failures,
                row.queued_logged,
                queued_at,
                due_at,
                claim.map(|claim| claim.started_at.as_micros()),
                self.worker_no,
                claim.map(|claim| token(claim.token)),
                resumed_by(row),
            ],
        )
    }

    /// Writes what the completion of a running task changes, with how it ended. What it was
    /// resumed with goes.
    pub(crate) fn complete(self, file: File<'_, '_>, end: &TaskEnd) -> Rows<usize> {
        let output = end.output.as_ref();
        file.run_small(
            COMPLETE_TASK,
            params![
                self.run_no,
                self.row.node.0,
                end.ended_at.as_micros(),
                int(end.first_event),
                end.with_queued,
                output.map(|output| output.codec.as_ref()),
                output.map(|output| output.bytes.as_ref()),
            ],
        )
    }

    fn write_whole(self, file: File<'_, '_>, sql: &'static str) -> Rows<usize> {
        let (row, place, claim) = (self.row, self.place, self.row.claim());
        let (queued_at, due_at) = times(row);
        file.run_small(
            sql,
            params![
                self.run_no,
                row.node.0,
                row.state() as i64,
                row.n_unmet,
                row.n_skipped,
                row.attempt,
                row.failures,
                row.losses,
                row.queued_logged,
                queued_at,
                due_at,
                claim.map(|claim| claim.started_at.as_micros()),
                self.worker_no,
                claim.map(|claim| token(claim.token)),
                resumed_by(row),
                int(row.next_memo),
                place.map(|place| place.queue.as_str()),
                place.map(|place| int(place.order.0)),
                place.map(|place| int(place.number)),
                place.map(|place| int(place.position.0)),
                place.map(|place| place.service.0),
            ],
        )
    }
}
