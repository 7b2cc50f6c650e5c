//! The tasks of a run.

use serde::Serialize;
use stepwell_core::id::{Queue, WorkerId};
use stepwell_core::run::{Phase, TaskRow, TaskState};

use super::payload::PayloadRecord;
use super::picture::{RunPicture, TaskPicture};
use crate::cli::words::{clock_millis, moment, printable, state_tone};
use crate::cli::{Cell, Failure, Output, Tone};

/// A task as JSON. Names are those of the views in the databases.
#[derive(Serialize)]
pub(super) struct TaskRecord<'picture> {
    step: &'picture str,
    node: u32,
    state: TaskState,
    attempt: u32,
    failures: u32,
    losses: u32,
    queue: Option<&'picture str>,
    queued_at: Option<String>,
    started_at: Option<String>,
    due_at: Option<String>,
    ended_at: Option<String>,
    worker: Option<&'picture str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<&'picture str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<PayloadRecord<'picture>>,
}

impl<'picture> TaskRecord<'picture> {
    pub(super) fn new(task: &'picture TaskPicture) -> Self {
        let row = &task.row;
        let claim = row.claim();
        let queued_at = match &row.phase {
            Phase::Queued { since, .. } => Some(*since),
            _ => claim.map(|claim| claim.queued_at),
        };
        Self {
            step: &task.step,
            node: row.node.0,
            state: row.state(),
            attempt: row.attempt,
            failures: row.failures,
            losses: row.losses,
            queue: task.queue.as_ref().map(Queue::as_str),
            queued_at: queued_at.map(moment),
            started_at: claim.map(|claim| moment(claim.started_at)),
            due_at: row.phase.due().map(moment),
            ended_at: task.since.filter(|_| row.state().is_terminal()).map(moment),
            worker: task.worker.as_ref().map(WorkerId::as_str),
            progress: progress(task),
            output: task.output.as_ref().map(PayloadRecord::new),
        }
    }
}

pub(super) fn print(picture: &RunPicture, lines_max: usize, output: Output) -> Result<(), Failure> {
    let shown = shown(&picture.tasks, lines_max);
    let n_left_out = picture.tasks.len() - shown.len();
    let mut header = vec!["step", "state", "attempt", "since, due (UTC)", "queue", "worker"];
    // Few steps tell it, so there is a column for it only if it has something to say.
    let is_told = shown.iter().any(|task| task.progress.is_some());
    header.extend(is_told.then_some("progress"));
    let cell =
        |task| is_told.then(|| Cell::plain(progress(task).map(printable).unwrap_or_default()));
    let cells = |task| row(task).into_iter().chain(cell(task)).collect();
    let rows: Vec<Vec<Cell>> = shown.into_iter().map(cells).collect();
    output.line("")?;
    output.line(&output.paint(Tone::Strong, "Tasks"))?;
    output.table(&header, &rows)?;
    if n_left_out > 0 {
        let more = format!("{n_left_out} more tasks; --lines 0 shows all of them");
        output.line(&output.paint(Tone::Faint, &more))?;
    }
    Ok(())
}

/// The tasks that fit, in their order: what is open or failed comes before what went well.
fn shown(tasks: &[TaskPicture], lines_max: usize) -> Vec<&TaskPicture> {
    if lines_max == 0 || tasks.len() <= lines_max {
        return tasks.iter().collect();
    }
    let mut shown: Vec<&TaskPicture> = tasks.iter().collect();
    // Stable, so that among equals the first ones stay.
    shown.sort_by_key(|task| match task.row.state() {
        TaskState::Failed => 0,
        TaskState::Pending => 2,
        state if !state.is_terminal() => 1,
        _ => 3,
    });
    shown.truncate(lines_max);
    shown.sort_by_key(|task| task.row.node);
    shown
}

fn progress(task: &TaskPicture) -> Option<&str> {
    task.progress.as_ref().map(|progress| progress.text.as_str())
}

fn row(task: &TaskPicture) -> Vec<Cell> {
    let state = task.row.state();
    let name = |name: Option<&str>| Cell::plain(name.map(printable).unwrap_or_default());
    vec![
        Cell::plain(printable(&task.step)),
        Cell::new(state.as_str(), state_tone(state)),
        attempts(&task.row),
        Cell::plain(since_and_due(task)),
        name(task.queue.as_ref().map(Queue::as_str)),
        name(task.worker.as_ref().map(WorkerId::as_str)),
    ]
}

/// The number of the current or last attempt, and how many before it came to nothing.
fn attempts(row: &TaskRow) -> Cell {
    let lost = [(row.failures, "failed"), (row.losses, "lost")];
    let lost = lost.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}"));
    let text = std::iter::once(row.attempt.to_string()).chain(lost).collect::<Vec<_>>().join(", ");
    let tone = match row.attempt {
        0 => Tone::Faint,
        _ if row.failures + row.losses > 0 => Tone::Warning,
        _ => Tone::Plain,
    };
    Cell::new(text, tone)
}

fn since_and_due(task: &TaskPicture) -> String {
    let since = task.since.map(clock_millis);
    let due = task.row.phase.due().map(|due| format!("due {}", clock_millis(due)));
    since.into_iter().chain(due).collect::<Vec<_>>().join("\n")
}
