//! A run as it stood at one moment.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use stepwell_core::id::{Node, Queue, RunKey, WorkerId};
use stepwell_core::run::{Event, Phase, RunLog, RunRow, TaskRow, TaskState, WaitRow, read_log};
use stepwell_core::time::Timestamp;
use stepwell_core::workflow::{Definition, NodeKind};

use crate::api::RunEvent;
use crate::cli::Failure;
use crate::ports::{DynStore, Payload, RunView, StoreError, StoredDefinition, StoredSignal};

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
    /// What it left, if payloads were asked for.
    pub(super) output: Option<Payload>,
}

impl RunPicture {
    /// The log is one snapshot, and holds the tasks that were open. The others had ended by then,
    /// and what has ended does not change any more, so they can be read later.
    pub(super) async fn read(store: &DynStore, found: RunView) -> Result<Self, Failure> {
        let RunView { row, definition } = found;
        let log = store.log(row.key).await?.ok_or_else(|| gone(row.key))?;
        let rows = store.tasks(row.key).await?;
        let events = read_log(&log);
        let tasks = tasks(&log, &events, rows, &definition);
        let name = |node: Node| definition.definition.name(node).to_owned();
        let log_events =
            events.into_iter().map(|event| RunEvent::of(event.node.map(name), event)).collect();
        let waits = store.waits(row.key).await?;
        let mut signals = store.signals(row.key).await?;
        signals.retain(|signal| signal.row.consumed_by.is_none());
        let (log, row) = (log_events, log.run);
        let (has_payloads, input) = (false, None);
        Ok(Self { row, definition, tasks, log, waits, signals, has_payloads, input })
    }

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
    StoreError::Corrupt { what: format!("run {run} has no log") }
}

/// The tasks at the moment of the log: open ones as it has them, ended ones from the rows that
/// were read after it. What the log does not know came later.
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
    let mut known: BTreeMap<Node, TaskRow> = rows
        .into_iter()
        .filter(|row| row.state().is_terminal() && last.contains_key(&row.node))
        .map(|row| (row.node, row))
        .collect();
    known.extend(log.open.iter().map(|row| (row.node, row.clone())));
    let picture = |(node, row): (Node, TaskRow)| {
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
            step: definition.name(node).to_owned(),
            queue: has_queue.then(|| definition.queue(node)),
            output: None,
            row,
        }
    };
    known.into_iter().map(picture).collect()
}

/// Whether a wait stands in a queue first, for a worker to say what it waits for.
fn asks_worker(definition: &Definition, node: Node) -> bool {
    let policy = definition.step_policy(node).and_then(|policy| policy.wait.as_ref());
    policy.is_some_and(|policy| policy.asks_worker)
}

#[cfg(all(test, feature = "testing"))]
mod tests {
    use super::*;
    use crate::api::{StepError, Workflow};
    use crate::ports::Runs;
    use crate::testing::{Gate, TestEngine};

    /// Two steps, of which the second waits at the gate and then fails, and a failure handler.
    fn story(gate: &Gate) -> (TestEngine, RunKey) {
        let mut w = Workflow::define::<(), Gate>("story");
        let first = w.step("first").run(async |_| Ok(()));
        w.step("second").after(first).run(async |ctx, ()| {
            ctx.state().pass().await;
            Err::<(), _>(StepError::permanent("no"))
        });
        w.on_failure(async |_, _| Ok(()));
        let mut builder = TestEngine::builder().state(gate.clone());
        let workflow = builder.workflow(w.no_output());
        let test = builder.start().expect("it starts");
        let key = test.start(&workflow, ()).now().expect("it starts").key();
        test.run_until_idle();
        (test, key)
    }

    #[test]
    fn what_happens_after_the_log_was_read_is_not_in_the_picture() {
        let gate = Gate::new();
        let (test, key) = story(&gate);
        let store = test.store().clone();
        let (log, stored) = test.drive(async move {
            let view = store.run(key).await.expect("it is read").expect("it is there");
            (store.log(key).await.expect("it is read").expect("it is there"), view.definition)
        });
        gate.let_pass(1);
        test.run_to_end();
        let store = test.store().clone();
        let rows = test.drive(async move { store.tasks(key).await.expect("it is read") });
        assert_eq!(rows.len(), 3, "the failure handler has come and gone");
        let picture = tasks(&log, &read_log(&log), rows, &stored);
        let states: Vec<(&str, TaskState)> =
            picture.iter().map(|task| (task.step.as_str(), task.row.state())).collect();
        assert_eq!(states, [("first", TaskState::Completed), ("second", TaskState::Running)]);
    }
}
