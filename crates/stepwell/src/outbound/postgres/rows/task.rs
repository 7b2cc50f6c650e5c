//! Rows of `task`.

use std::collections::HashMap;

use stepwell_core::id::{Node, RunKey, WorkerId};
use stepwell_core::run::{Claim, Phase, Resumed, TaskRow, TaskState};
use stepwell_core::time::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use super::cells::{Cells, Columns, columns, selected};
use super::{Param, Read, corrupt, int, int32, key, token};

columns! {
    /// The columns of `task`.
    TASK: Col = "task" {
        key Run "run" "uuid",
        key Node "node" "int",
        changed State "state" "smallint",
        changed NUnmet "n_unmet" "int",
        changed NSkipped "n_skipped" "int",
        changed Attempt "attempt" "int",
        changed Failures "failures" "int",
        changed Losses "losses" "int",
        changed QueuedLogged "queued_logged" "bool",
        changed QueuedAt "queued_at" "bigint",
        changed DueAt "due_at" "bigint",
        changed StartedAt "started_at" "bigint",
        changed Worker "worker" "bigint",
        changed Token "token" "uuid",
        changed ResumedBy "resumed_by" "bigint",
        changed NextMemo "next_memo" "bigint",
    }
}

selected! {
    /// Read with a task.
    Joined { WorkerName, }
}

/// Whether a task is the handler of its run's failure, with which it is executed.
pub(crate) fn is_failure_handler(node: Node) -> bool {
    node == Node::ON_FAILURE
}

/// A task with its run, and with the name of the worker that holds it.
pub(crate) fn read(row: &Row) -> Read<(RunKey, TaskRow)> {
    let cells = Cells::of(row);
    read_by(cells, || cells.behind::<Col>().name(Joined::WorkerName))
}

/// A task with its run; the names of workers are known.
pub(crate) fn read_of(row: &Row, workers: &HashMap<i64, WorkerId>) -> Read<(RunKey, TaskRow)> {
    read_by(Cells::of(row), || {
        let worker = read_worker_no(row)?.and_then(|no| workers.get(&no).cloned());
        worker.ok_or_else(|| corrupt("a worker is missing"))
    })
}

selected! {
    /// Read with a task that is locked.
    Locked { At, }
}

/// When a task was locked, in microseconds.
pub(crate) fn read_locked_at(row: &Row) -> Read<i64> {
    Cells::of(row).behind::<Col>().moment(Locked::At)
}

/// The number of the worker that holds a task.
pub(crate) fn read_worker_no(row: &Row) -> Read<Option<i64>> {
    Cells::of(row).get(Col::Worker)
}

/// Where a task stands, and what ended its last wait.
pub(crate) struct TaskEnd {
    pub(crate) state: TaskState,
    pub(crate) resumed: Option<Resumed>,
}

/// A task by run and node, and where it stands.
pub(crate) fn read_end(row: &Row) -> Read<((RunKey, Node), TaskEnd)> {
    let cells = Cells::of(row);
    let end = TaskEnd { state: state(cells)?, resumed: cells.resumed(Col::ResumedBy)? };
    Ok(((cells.run_key(Col::Run)?, cells.node(Col::Node)?), end))
}

selected! { Place { Run, Node, } }

/// A task by run and node, which a row begins with.
pub(crate) fn read_key(row: &Row) -> Read<(RunKey, Node)> {
    let cells = Cells::of(row);
    Ok((cells.run_key(Place::Run)?, cells.node(Place::Node)?))
}

fn read_by(cells: Cells<'_>, worker: impl FnOnce() -> Read<WorkerId>) -> Read<(RunKey, TaskRow)> {
    let task = TaskRow {
        node: cells.node(Col::Node)?,
        phase: phase(cells, worker)?,
        n_unmet: cells.count(Col::NUnmet)?,
        n_skipped: cells.count(Col::NSkipped)?,
        attempt: cells.count(Col::Attempt)?,
        failures: cells.count(Col::Failures)?,
        losses: cells.count(Col::Losses)?,
        queued_logged: cells.get(Col::QueuedLogged)?,
        resumed: cells.resumed(Col::ResumedBy)?,
        next_memo: cells.unsigned(Col::NextMemo)?,
    };
    Ok((cells.run_key(Col::Run)?, task))
}

fn state(cells: Cells<'_>) -> Read<TaskState> {
    cells.state(Col::State, TaskState::ALL, |state| state as i16)
}

fn phase(cells: Cells<'_>, worker: impl FnOnce() -> Read<WorkerId>) -> Read<Phase> {
    Ok(match state(cells)? {
        TaskState::Pending => Phase::Pending,
        TaskState::Queued => Phase::Queued {
            since: cells.time(Col::QueuedAt)?,
            due: cells.optional_time(Col::DueAt)?,
        },
        TaskState::Running => Phase::Running(Claim {
            worker: worker()?,
            token: cells.token(Col::Token)?,
            queued_at: cells.time(Col::QueuedAt)?,
            started_at: cells.time(Col::StartedAt)?,
        }),
        TaskState::Sleeping => Phase::Sleeping { until: cells.time(Col::DueAt)? },
        TaskState::Waiting => Phase::Waiting { due: cells.optional_time(Col::DueAt)? },
        TaskState::Completed => Phase::Completed,
        TaskState::Failed => Phase::Failed,
        TaskState::Cancelled => Phase::Cancelled,
        TaskState::Skipped => Phase::Skipped,
        _ => return Err(corrupt("a task is in a state this version does not know")),
    })
}

/// Tasks as lists of values. A task that is running carries its own claim, any other none.
#[derive(Default)]
pub(crate) struct TaskArrays {
    run: Vec<Uuid>,
    node: Vec<i32>,
    state: Vec<i16>,
    n_unmet: Vec<i32>,
    n_skipped: Vec<i32>,
    attempt: Vec<i32>,
    failures: Vec<i32>,
    losses: Vec<i32>,
    queued_logged: Vec<bool>,
    queued_at: Vec<Option<i64>>,
    due_at: Vec<Option<i64>>,
    started_at: Vec<Option<i64>>,
    worker: Vec<Option<i64>>,
    token: Vec<Option<Uuid>>,
    resumed_by: Vec<Option<i64>>,
    next_memo: Vec<i64>,
}

impl TaskArrays {
    /// Tasks with their runs; the numbers of workers that hold some of them are known.
    pub(crate) fn of(tasks: &[(RunKey, &TaskRow)], workers: &HashMap<WorkerId, i64>) -> Read<Self> {
        let mut arrays = Self::default();
        for (run, task) in tasks {
            arrays.run.push(key(*run));
            arrays.node.push(int32(task.node.0));
            arrays.state.push(task.state() as i16);
            arrays.n_unmet.push(int32(task.n_unmet));
            arrays.n_skipped.push(int32(task.n_skipped));
            arrays.attempt.push(int32(task.attempt));
            arrays.failures.push(int32(task.failures));
            arrays.losses.push(int32(task.losses));
            arrays.queued_logged.push(task.queued_logged);
            let (queued_at, due_at) = times(task);
            arrays.queued_at.push(queued_at);
            arrays.due_at.push(due_at);
            let claim = task.claim().map(|claim| ClaimColumns::of(claim, workers)).transpose()?;
            arrays.started_at.push(claim.map(|claim| claim.started_at));
            arrays.worker.push(claim.map(|claim| claim.worker));
            arrays.token.push(claim.map(|claim| claim.token));
            arrays.resumed_by.push(task.resumed.map(|resumed| int(resumed.number())));
            arrays.next_memo.push(int(task.next_memo));
        }
        Ok(arrays)
    }

    pub(crate) fn params(&self) -> Vec<Param<'_>> {
        Col::ALL.iter().map(|column| self.param(*column)).collect()
    }

    fn param(&self, column: Col) -> Param<'_> {
        match column {
            Col::Run => &self.run,
            Col::Node => &self.node,
            Col::State => &self.state,
            Col::NUnmet => &self.n_unmet,
            Col::NSkipped => &self.n_skipped,
            Col::Attempt => &self.attempt,
            Col::Failures => &self.failures,
            Col::Losses => &self.losses,
            Col::QueuedLogged => &self.queued_logged,
            Col::QueuedAt => &self.queued_at,
            Col::DueAt => &self.due_at,
            Col::StartedAt => &self.started_at,
            Col::Worker => &self.worker,
            Col::Token => &self.token,
            Col::ResumedBy => &self.resumed_by,
            Col::NextMemo => &self.next_memo,
        }
    }
}

/// What the row of a running task says of its claim.
#[derive(Clone, Copy)]
struct ClaimColumns {
    worker: i64,
    token: Uuid,
    started_at: i64,
}

impl ClaimColumns {
    fn of(claim: &Claim, workers: &HashMap<WorkerId, i64>) -> Read<Self> {
        let worker = workers.get(&claim.worker).copied();
        Ok(Self {
            worker: worker.ok_or_else(|| corrupt("a worker is missing"))?,
            token: token(claim.token),
            started_at: claim.started_at.as_micros(),
        })
    }
}

/// When a task was queued, and when it is due.
fn times(task: &TaskRow) -> (Option<i64>, Option<i64>) {
    let queued_at = match &task.phase {
        Phase::Queued { since, .. } => Some(*since),
        Phase::Running(claim) => Some(claim.queued_at),
        _ => None,
    };
    let micros = |at: Option<Timestamp>| at.map(Timestamp::as_micros);
    (micros(queued_at), micros(task.phase.due()))
}

#[cfg(test)]
mod tests {
    use stepwell_core::id::Token;

    use super::*;

    fn task(node: u32, phase: Phase) -> TaskRow {
        let (n_unmet, n_skipped, attempt, failures, losses) = (0, 0, 1, 0, 0);
        let (node, queued_logged, resumed) = (Node(node), false, None);
        TaskRow {
            node,
            phase,
            n_unmet,
            n_skipped,
            attempt,
            failures,
            losses,
            queued_logged,
            resumed,
            next_memo: 0,
        }
    }

    fn running(worker: &str, token: u128) -> Phase {
        let worker = WorkerId::new(worker).expect("it is a name");
        let (queued_at, started_at) = (Timestamp::EPOCH, Timestamp::from_micros(5));
        Phase::Running(Claim { worker, token: Token(token), queued_at, started_at })
    }

    #[test]
    fn each_running_task_is_written_with_its_own_claim() {
        let (one, other) = (task(0, running("one", 1)), task(1, running("other", 2)));
        let done = task(2, Phase::Completed);
        let rows = [&one, &other, &done].map(|task| (RunKey(9), task));
        let workers = ["one", "other"].into_iter().flat_map(WorkerId::new);
        let workers = workers.zip([7, 8]).collect();
        let arrays = TaskArrays::of(&rows, &workers).expect("the workers are known");
        assert_eq!(arrays.worker, [Some(7), Some(8), None]);
        assert_eq!(arrays.token, [Some(Uuid::from_u128(1)), Some(Uuid::from_u128(2)), None]);
        assert_eq!(arrays.started_at, [Some(5), Some(5), None]);
        assert!(TaskArrays::of(&rows, &HashMap::new()).is_err(), "a claim has its worker");
    }
}
