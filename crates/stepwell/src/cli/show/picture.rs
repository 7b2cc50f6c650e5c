//! A run as it stood at one moment.

use std::collections::HashMap;
use std::sync::Arc;

use stepwell_core::id::{Node, Queue, RunKey, WorkerId};
use stepwell_core::run::{Event, Phase, RunLog, RunRow, TaskRow, TaskState, WaitRow, read_log};
use stepwell_core::time::Timestamp;
use stepwell_core::workflow::{Definition, NodeKind};

use crate::api::{RunEvent, TaskProgress};
use crate::cli::Failure;
use crate::ports::{
    DynStore, Payload, RunSnapshot, StoreError, StoredDefinition, StoredMemo, StoredSignal,
};

/// A run as it stood at one moment.
pub(super) struct RunPicture {
    pub(super) row: RunRow,
    pub(super) definition: Arc<StoredDefinition>,
    pub(super) tasks: Vec<TaskPicture>,
    pub(super) log: Vec<RunEvent>,
    /// What it waits for, oldest first.
    pub(super) waits: Vec<WaitRow>,
    /// Signals that nobody got yet, in order.
    pub(super) signals: Vec<StoredSignal>,
    /// What its functions have done, in the order in which they heard of it.
    pub(super) memos: Vec<StoredMemo>,
    /// Whether payloads were asked for.
    pub(super) has_payloads: bool,
    /// The run's input, if payloads were asked for.
    pub(super) input: Option<Payload>,
}

/// A task as it stood at that moment.
pub(super) struct TaskPicture {
    pub(super) row: TaskRow,
    pub(super) step: String,
    /// The queue its executions wait in; a sleep has none.
    pub(super) queue: Option<Queue>,
    /// When it came into the state it is in; `None` while it has not begun.
    pub(super) since: Option<Timestamp>,
    /// Who executes it, or did so last.
    pub(super) worker: Option<WorkerId>,
    /// How far its attempt has come.
    pub(super) progress: Option<TaskProgress>,
    /// What it left, if payloads were asked for.
    pub(super) output: Option<Payload>,
}

impl RunPicture {
    pub(super) async fn read(store: &DynStore, run: RunKey) -> Result<Self, Failure> {
        let snapshot = store.snapshot(run).await?.ok_or_else(|| gone(run))?;
        let RunSnapshot { log, definition, tasks: rows, waits, mut signals, mut memos } = snapshot;
        let events = read_log(&log);
        let mut tasks = tasks(&log, &events, rows, &definition);
        let told = store.progress(run).await?;
        for task in &mut tasks {
            task.progress = TaskProgress::of(&task.row, &told);
        }
        let name = |node: Node| definition.definition.name(node).to_owned();
        let log_events =
            events.into_iter().map(|event| RunEvent::of(event.node.map(name), event)).collect();
        signals.retain(|signal| signal.row.consumed_by.is_none());
        memos.sort_by_key(|memo| (memo.row.number == 0, memo.row.number));
        let (log, row) = (log_events, log.run);
        let (has_payloads, input) = (false, None);
        Ok(Self { row, definition, tasks, log, waits, signals, memos, has_payloads, input })
    }

    /// Adds payloads. They are written once, so the moment at which they are read does not matter.
    pub(super) async fn read_payloads(&mut self, store: &DynStore) -> Result<(), Failure> {
        self.has_payloads = true;
        self.input = store.input(self.row.key).await?;
        let mut outputs: HashMap<Node, Payload> =
            store.outputs(self.row.key).await?.into_iter().collect();
        for task in &mut self.tasks {
            // What completed since then is not in the picture.
            let has_completed = task.row.state() == TaskState::Completed;
            task.output = outputs.remove(&task.row.node).filter(|_| has_completed);
        }
        Ok(())
    }
}

fn gone(run: RunKey) -> StoreError {
    StoreError::Corrupt { what: format!("run {run} was there and is gone") }
}

/// The tasks with what the log tells of them.
fn tasks(
    log: &RunLog,
    events: &[Event],
    rows: Vec<TaskRow>,
    stored: &StoredDefinition,
) -> Vec<TaskPicture> {
    let last: HashMap<Node, &Event> =
        events.iter().filter_map(|event| Some((event.node?, event))).collect();
    let workers: HashMap<Node, &WorkerId> =
        log.attempts.iter().map(|attempt| (attempt.node, &attempt.claim.worker)).collect();
    let picture = |row: TaskRow| {
        let node = row.node;
        let worker = row.claim().map(|claim| &claim.worker).or(workers.get(&node).copied());
        let since = match &row.phase {
            Phase::Pending => None,
            Phase::Queued { since, .. } => Some(*since),
            Phase::Running(claim) => Some(claim.started_at),
            _ => last.get(&node).map(|event| event.at),
        };
        let definition = &stored.definition;
        // A timer alone ends a sleep, and a signal a wait.
        let has_queue = match definition.graph.kind(node) {
            NodeKind::Sleep => false,
            NodeKind::Wait => asks_worker(definition, node),
            _ => true,
        };
        TaskPicture {
            since,
            worker: worker.cloned(),
            progress: None,
            step: definition.name(node).to_owned(),
            queue: has_queue.then(|| definition.queue(node)),
            output: None,
            row,
        }
    };
    rows.into_iter().map(picture).collect()
}

/// Whether a wait stands in a queue first, for a worker to say what it waits for.
fn asks_worker(definition: &Definition, node: Node) -> bool {
    let policy = definition.step_policy(node).and_then(|policy| policy.wait.as_ref());
    policy.is_some_and(|policy| policy.asks_worker)
}
