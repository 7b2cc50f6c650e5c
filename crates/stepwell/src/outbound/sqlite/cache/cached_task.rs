//! A task under change, and the statement that writes it.

use stepwell_core::run::{Phase, TaskRow};

use super::worker_numbers::WorkerNumbers;
use crate::outbound::sqlite::file::{File, corrupt};
use crate::outbound::sqlite::rows::task::{Place, StoredTask, TaskEnd, TaskWrite};
use crate::ports::StoreError;

/// A task under change.
pub(crate) struct CachedTask {
    pub(crate) row: TaskRow,
    pub(crate) place: Option<Place>,
    /// How it completed, if that is not in the file yet and has no row of its own.
    pub(crate) end: Option<TaskEnd>,
    /// What the file says; `None` if it does not know of the task yet.
    on_disk: Option<OnDisk>,
}

/// A task's row as it is in the file.
struct OnDisk {
    row: TaskRow,
    is_placed: bool,
}

/// The statements that write a task, each with less to do than the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Statement {
    Insert,
    InsertPending,
    Update,
    MoveOn,
    Claim,
    Complete,
    CountDown,
}

impl CachedTask {
    /// A task that is not in the file yet.
    pub(crate) fn fresh(row: TaskRow) -> Self {
        Self { row, place: None, end: None, on_disk: None }
    }

    /// A task as the file has it.
    pub(crate) fn stored((row, place): StoredTask) -> Self {
        let mut task = Self { row, place, end: None, on_disk: None };
        task.mark_written();
        task
    }

    /// The file has it as it is here.
    pub(crate) fn mark_written(&mut self) {
        let (row, is_placed) = (self.row.clone(), self.place.is_some());
        self.on_disk = Some(OnDisk { row, is_placed });
    }

    /// Lets the row of a task that completed carry its last attempt. Says whether it can: if more
    /// of the row has changed than a completion writes, the attempt needs a row of its own.
    pub(crate) fn keep_end(&mut self, end: TaskEnd) -> bool {
        let is_completion = self.is_completion();
        if is_completion {
            self.end = Some(end);
        }
        is_completion
    }

    /// Writes the task by the statement that touches least.
    pub(crate) fn write(
        &self,
        file: File<'_, '_>,
        run_no: i64,
        workers: &mut WorkerNumbers,
    ) -> Result<(), StoreError> {
        let Self { row, place, end, .. } = self;
        let worker_no = row.claim().map(|claim| workers.load(file, &claim.worker)).transpose()?;
        let write = TaskWrite { run_no, row, place: place.as_ref(), worker_no };
        let n = match (end, self.statement()) {
            (Some(end), Statement::Complete) => write.complete(file, end)?,
            (Some(_), _) => {
                return Err(corrupt(format!("task {:?} changed as it ended", row.node)));
            }
            (None, Statement::Insert) => write.insert(file)?,
            (None, Statement::InsertPending) => write.insert_pending(file)?,
            (None, Statement::CountDown) => write.count_down(file)?,
            (None, Statement::Claim) => write.claim(file)?,
            (None, Statement::MoveOn) => write.move_on(file)?,
            (None, Statement::Update | Statement::Complete) => write.update(file)?,
        };
        let missing = || corrupt(format!("task {:?} of run number {run_no} is missing", row.node));
        if n == 1 { Ok(()) } else { Err(missing()) }
    }

    /// The narrowest statement after which the file has the row as it is here. What a statement
    /// writes is taken over into the row on disk, and then whole rows are compared: a column that
    /// no narrow statement knows of leads to the update of all.
    fn statement(&self) -> Statement {
        let row = &self.row;
        let Some(disk) = &self.on_disk else {
            return if self.is_fresh() { Statement::InsertPending } else { Statement::Insert };
        };
        if self.end.is_some() && self.is_completion() {
            return Statement::Complete;
        }
        if self.place.is_some() {
            return Statement::Update;
        }
        if disk.is_placed {
            return if self.is_claim(&disk.row) { Statement::Claim } else { Statement::Update };
        }
        let (n_unmet, n_skipped) = (row.n_unmet, row.n_skipped);
        let counted_down = TaskRow { n_unmet, n_skipped, ..disk.row.clone() };
        if counted_down == *row {
            return Statement::CountDown;
        }
        let moved = TaskRow {
            phase: row.phase.clone(),
            n_unmet,
            n_skipped,
            attempt: row.attempt,
            failures: row.failures,
            queued_logged: row.queued_logged,
            resumed: row.resumed,
            ..disk.row.clone()
        };
        if moved == *row { Statement::MoveOn } else { Statement::Update }
    }

    /// Whether nothing has happened yet to a task that waits for its parents.
    fn is_fresh(&self) -> bool {
        let fresh = TaskRow {
            node: self.row.node,
            phase: Phase::Pending,
            n_unmet: self.row.n_unmet,
            n_skipped: 0,
            attempt: 0,
            failures: 0,
            losses: 0,
            queued_logged: false,
            resumed: None,
            next_memo: 0,
        };
        fresh == self.row && self.place.is_none()
    }

    /// Whether a ready task was claimed, and nothing else.
    fn is_claim(&self, disk: &TaskRow) -> bool {
        let row = &self.row;
        let Phase::Running(claim) = &row.phase else { return false };
        let was_ready = disk.phase == Phase::Queued { since: claim.queued_at, due: None };
        let (phase, attempt) = (row.phase.clone(), row.attempt);
        was_ready && TaskRow { phase, attempt, ..disk.clone() } == *row
    }

    /// Whether a running task completed, and nothing else. What it was resumed with goes.
    fn is_completion(&self) -> bool {
        let Some(disk) = &self.on_disk else { return false };
        let was_running = matches!(disk.row.phase, Phase::Running(_)) && !disk.is_placed;
        let (phase, queued_logged, resumed) = (Phase::Completed, true, None);
        was_running && TaskRow { phase, queued_logged, resumed, ..disk.row.clone() } == self.row
    }
}

#[cfg(test)]
mod tests {
    use stepwell_core::id::{Node, Queue, ServiceId, Token, WorkerId};
    use stepwell_core::queue::{OrderKey, Position};
    use stepwell_core::run::{Claim, Resumed};
    use stepwell_core::time::Timestamp;

    use super::*;
    use crate::outbound::sqlite::cache::one_field_changed;

    const QUEUED_AT: Timestamp = Timestamp::from_micros(1);

    fn row(phase: Phase) -> TaskRow {
        TaskRow {
            node: Node(0),
            phase,
            n_unmet: 2,
            n_skipped: 0,
            attempt: 0,
            failures: 0,
            losses: 0,
            queued_logged: false,
            resumed: None,
            next_memo: 0,
        }
    }

    /// A row that differs in every field.
    fn other(row: &TaskRow) -> TaskRow {
        TaskRow {
            node: Node(1),
            phase: Phase::Sleeping { until: Timestamp::from_micros(9) },
            n_unmet: 7,
            n_skipped: 7,
            attempt: 7,
            failures: 7,
            losses: 7,
            queued_logged: !row.queued_logged,
            resumed: Some(Resumed::Signal(7)),
            next_memo: 7,
        }
    }

    fn running() -> Phase {
        let (worker, token) = (WorkerId::new("w").unwrap(), Token(1));
        let started_at = Timestamp::from_micros(2);
        Phase::Running(Claim { worker, token, queued_at: QUEUED_AT, started_at })
    }

    fn place() -> Place {
        Place {
            queue: Queue::default_queue(),
            order: OrderKey(1),
            number: 1,
            position: Position(1),
            service: ServiceId(0),
        }
    }

    fn end() -> TaskEnd {
        let ended_at = Timestamp::from_micros(3);
        TaskEnd { ended_at, first_event: 2, with_queued: true, output: None, is_large: false }
    }

    /// What a statement writes of a row.
    fn writes(statement: Statement, field: &str) -> bool {
        match statement {
            Statement::Insert | Statement::Update => true,
            Statement::InsertPending => ["node", "n_unmet"].contains(&field),
            Statement::MoveOn => {
                let counts = ["n_unmet", "n_skipped", "attempt", "failures"];
                let others = ["phase", "queued_logged", "resumed"];
                counts.contains(&field) || others.contains(&field)
            }
            Statement::Claim => ["phase", "attempt"].contains(&field),
            Statement::Complete => ["phase", "queued_logged"].contains(&field),
            Statement::CountDown => ["n_unmet", "n_skipped"].contains(&field),
        }
    }

    /// Checks that a task is written by a statement, and by one that writes it should any other
    /// field change as well.
    fn check(expected: Statement, mut task: CachedTask, changed: TaskRow) {
        task.row = changed;
        task.end = (expected == Statement::Complete).then(end);
        assert_eq!(task.statement(), expected);
        let changed = task.row.clone();
        for (field, more) in one_field_changed(&changed, &other(&changed)) {
            task.row = more;
            let statement = task.statement();
            // A row is never moved to another node, so nothing says what writes that.
            let is_written = writes(statement, &field) || field == "node";
            assert!(is_written, "{field} by {statement:?} instead of {expected:?}");
        }
    }

    #[test]
    fn whatever_changes_in_a_task_is_written() {
        let ready = || Phase::Queued { since: QUEUED_AT, due: None };
        let stored = |phase| CachedTask::stored((row(phase), None));
        let placed = || {
            let mut task = CachedTask::stored((row(ready()), Some(place())));
            task.place = None;
            task
        };
        let fresh = || CachedTask::fresh(row(Phase::Pending));
        check(Statement::InsertPending, fresh(), row(Phase::Pending));
        check(Statement::Insert, fresh(), row(ready()));
        check(
            Statement::CountDown,
            stored(Phase::Pending),
            TaskRow { n_unmet: 1, ..row(Phase::Pending) },
        );
        check(Statement::Claim, placed(), TaskRow { attempt: 1, ..row(running()) });
        check(Statement::MoveOn, stored(running()), TaskRow { failures: 1, ..row(ready()) });
        check(
            Statement::Complete,
            stored(running()),
            TaskRow { queued_logged: true, ..row(Phase::Completed) },
        );
        check(Statement::Update, placed(), row(Phase::Cancelled));
    }

    #[test]
    fn a_place_is_written_by_the_update_of_all() {
        let mut task = CachedTask::stored((row(Phase::Pending), None));
        task.place = Some(place());
        assert_eq!(task.statement(), Statement::Update);
    }

    #[test]
    fn an_end_is_kept_only_by_a_task_that_completed_and_did_nothing_else() {
        let completed = TaskRow { queued_logged: true, ..row(Phase::Completed) };
        let mut task = CachedTask::stored((row(running()), None));
        task.row = TaskRow { losses: 1, ..completed.clone() };
        assert!(!task.keep_end(end()) && task.end.is_none());
        task.row = completed;
        assert!(task.keep_end(end()) && task.end.is_some());
    }

    #[test]
    fn a_task_that_was_resumed_completes_like_any_other() {
        let resumed = Some(Resumed::Signal(1));
        let held = TaskRow { resumed, ..row(running()) };
        let mut task = CachedTask::stored((held, None));
        task.row = TaskRow { queued_logged: true, resumed: None, ..row(Phase::Completed) };
        assert!(task.keep_end(end()));
        assert_eq!(task.statement(), Statement::Complete);
        // Only what a wait got stays with it, and that has no end of its own.
        task.row.resumed = resumed;
        assert_eq!(task.statement(), Statement::MoveOn);
    }
}
