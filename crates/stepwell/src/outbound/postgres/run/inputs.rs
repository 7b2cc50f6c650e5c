//! What tasks are executed with: the input of their run, what their parents left, what ended their
//! last wait, what earlier executions left, and for a failure handler the failure. All that a
//! worker gets of this is put together here. Signals are read only where a task or a parent has
//! waited for one.

use std::collections::{BTreeSet, HashMap};

use stepwell_core::id::{DefinitionId, Node, RunKey};
use stepwell_core::run::{AttemptRow, AttemptState, Resumed, RunFailure, RunRow, TaskState};
use stepwell_core::workflow::NodeKind;

use super::super::lookup::IdLookup;
use super::super::rows::queue::Queued;
use super::super::rows::signal::{SignalNumbers, read_brought};
use super::super::rows::task::{TaskEnd, is_failure_handler, read_end};
use super::super::rows::{TaskKeys, corrupt, keys, payload, read_all, run};
use super::super::session::{PgResult, Session};
use super::super::sql::{self, Sql};
use super::history::{Histories, read_histories};
use super::load::READ_SOME_TASKS;
use super::write::{Payloads, UpdatesByKey};
use crate::ports::{InputsOf, ParentInput, Payload, StoredDefinition, TaskInputs};

pub(crate) const READ_INPUTS: Sql = sql::PAYLOAD.named("read_inputs");
const READ_SOME_OUTPUTS: Sql = sql::PAYLOAD.named("read_some_outputs");
const READ_RUNS: Sql = sql::RUN.named("read_runs");
pub(crate) const READ_BROUGHT: Sql = sql::SIGNAL.named("read_brought");
const READ_RECEIVED: Sql = sql::SIGNAL.named("read_received");

/// States and outputs of tasks.
type ParentResults = HashMap<(RunKey, Node), (TaskState, Option<Payload>)>;

/// What signals brought, by run and number.
type Brought = HashMap<(RunKey, u64), Payload>;

/// A task that is to be executed.
pub(crate) struct ReadyTask<'d> {
    pub(crate) run: RunKey,
    pub(crate) node: Node,
    /// The number of the attempt that begins.
    pub(crate) attempt: u32,
    /// What ended its last wait.
    pub(crate) resumed: Option<Resumed>,
    pub(crate) stored: Option<&'d StoredDefinition>,
}

/// A task and its parents.
struct PlannedTask {
    run: RunKey,
    node: Node,
    attempt: u32,
    resumed: Option<Resumed>,
    parents: Vec<Node>,
    /// Parents that left what they got.
    waits: Vec<Node>,
}

impl PlannedTask {
    fn of(task: &ReadyTask<'_>) -> Self {
        let ReadyTask { run, node, attempt, resumed, .. } = *task;
        let (parents, waits) = (Vec::new(), Vec::new());
        let mut planned = Self { run, node, attempt, resumed, parents, waits };
        if let Some(graph) = task.stored.map(|stored| &stored.definition.graph) {
            planned.parents = graph.parents(node).iter().map(|edge| edge.node).collect();
            let is_wait = |parent: &&Node| graph.kind(**parent) == NodeKind::Wait;
            planned.waits = planned.parents.iter().filter(is_wait).copied().collect();
        }
        planned
    }

    fn of_claim(task: &InputsOf, stored: &StoredDefinition) -> Self {
        let InputsOf { claim, attempt, resumed } = *task;
        let stored = Some(stored);
        Self::of(&ReadyTask { run: claim.run, node: claim.node, attempt, resumed, stored })
    }

    /// Whether there may be something of earlier executions to read.
    const fn has_history(&self) -> bool {
        self.attempt > 1
    }

    /// The signal that ended its last wait.
    fn resumed_by(&self) -> Option<(RunKey, u64)> {
        match self.resumed? {
            Resumed::Signal(number) => Some((self.run, number)),
            Resumed::TimedOut => None,
        }
    }
}

/// What is to be read for tasks, and what is at hand.
#[derive(Default)]
pub(crate) struct InputPlan {
    tasks: Vec<PlannedTask>,
    /// The inputs of all their runs, if they are at hand.
    inputs: Option<HashMap<RunKey, Payload>>,
    /// What some of their parents left.
    results: ParentResults,
    failures: HashMap<RunKey, Box<RunFailure>>,
}

/// What tasks are executed with.
pub(crate) struct InputBatch {
    tasks: Vec<PlannedTask>,
    inputs: HashMap<RunKey, Payload>,
    results: ParentResults,
    brought: Brought,
    histories: Histories,
    failures: HashMap<RunKey, Box<RunFailure>>,
}

impl InputPlan {
    /// A plan for tasks of known definitions.
    pub(crate) fn new<'d>(tasks: impl Iterator<Item = ReadyTask<'d>>) -> Self {
        let tasks = tasks.map(|task| PlannedTask::of(&task)).collect();
        Self { tasks, ..Self::default() }
    }

    /// A plan for tasks that are handed over by the transaction that made them ready. Those of runs
    /// that just started have nothing but their runs' inputs, which are at hand.
    pub(super) fn for_handed_over(
        ids: &IdLookup<'_>,
        taken: &[Queued],
        updates: &UpdatesByKey<'_>,
        given: Payloads<'_>,
    ) -> Self {
        if taken.is_empty() {
            return Self::default();
        }
        let tasks = taken.iter().map(|task| {
            let (run, node, update) = (task.run, task.node, updates.get(&task.run));
            let row = update.and_then(|update| update.tasks.get(node));
            let (attempt, resumed) = row.map_or((1, None), |row| (row.attempt, row.resumed));
            let stored = update.map(|update| &*update.stored);
            ReadyTask { run, node, attempt, resumed, stored }
        });
        let inputs = match given {
            Payloads::Inputs(inputs) => {
                Some(inputs.iter().map(|(run, input)| (*run, (*input).clone())).collect())
            }
            _ => ids.cache.cached_inputs(taken.iter().map(|task| &task.run)),
        };
        Self { inputs, results: completed_now(updates, given), ..Self::new(tasks) }
    }

    /// A plan for claimed tasks, if this process remembers their runs. A failure handler is told of
    /// the failure, so its run is read.
    fn from_cache(ids: &IdLookup<'_>, asked: &[InputsOf]) -> Option<Self> {
        if asked.iter().any(|task| is_failure_handler(task.claim.node)) {
            return None;
        }
        let refs = ids.cache.cached_runs(asked.iter().map(|task| &task.claim.run))?;
        let definitions: BTreeSet<DefinitionId> = refs.values().map(|run| run.definition).collect();
        let plans = ids.plans.cached(&definitions);
        let task = |task: &InputsOf| {
            let stored = plans.get(&refs.get(&task.claim.run)?.definition)?;
            Some(PlannedTask::of_claim(task, stored))
        };
        Some(Self { tasks: asked.iter().map(task).collect::<Option<_>>()?, ..Self::default() })
    }

    /// A plan for claimed tasks whose runs were read.
    async fn from_runs(
        ids: &IdLookup<'_>,
        asked: &[InputsOf],
        runs: HashMap<RunKey, RunRow>,
    ) -> PgResult<Self> {
        let mut tasks = Vec::with_capacity(asked.len());
        for task in asked {
            let missing = || corrupt(format!("run {} is missing", task.claim.run));
            let run = runs.get(&task.claim.run).ok_or_else(missing)?;
            tasks.push(PlannedTask::of_claim(task, &*ids.plan_of(run).await?));
        }
        let failures = runs.into_iter().filter_map(|(run, row)| Some((run, row.failure?)));
        Ok(Self { tasks, failures: failures.collect(), ..Self::default() })
    }

    /// Reads what is not at hand.
    pub(crate) async fn read(self, session: &Session) -> PgResult<InputBatch> {
        let Self { tasks, inputs, mut results, failures } = self;
        let read_inputs = async {
            match inputs {
                Some(inputs) => Ok(inputs),
                None if tasks.is_empty() => Ok(HashMap::new()),
                None => {
                    let runs = keys(tasks.iter().map(|task| &task.run));
                    let rows = session.all(READ_INPUTS, &[&runs]).await?;
                    PgResult::Ok(payload::read_inputs(&rows)?)
                }
            }
        };
        let parents = tasks.iter().flat_map(|task| task.parents.iter().map(|p| (task.run, *p)));
        let earlier: BTreeSet<(RunKey, Node)> =
            parents.filter(|parent| !results.contains_key(parent)).collect();
        let executed = tasks.iter().filter(|task| task.has_history());
        let executed: Vec<_> = executed.map(|task| (task.run, task.node)).collect();
        let (inputs, brought, ends, histories) = tokio::join!(
            biased;
            read_inputs,
            read_signals(session, &tasks),
            read_ends(session, earlier),
            read_histories(session, executed),
        );
        let (inputs, brought, histories) = (inputs?, brought?, histories?);
        results.extend(ends?.into_results(&brought));
        Ok(InputBatch { tasks, inputs, results, brought, histories, failures })
    }
}

impl InputBatch {
    /// The inputs of the runs.
    pub(crate) fn of_runs(&self) -> &HashMap<RunKey, Payload> {
        &self.inputs
    }

    /// What the task at this place is executed with, unless its run's input or the signal that it
    /// got is missing.
    pub(crate) fn of_task(&self, ix: usize) -> Option<TaskInputs> {
        let task = self.tasks.get(ix)?;
        let PlannedTask { run, node, resumed, parents, .. } = task;
        let parent = |node: &Node| {
            let known = self.results.get(&(*run, *node)).cloned();
            let (state, output) = known.unwrap_or((TaskState::Pending, None));
            ParentInput { node: *node, state, output }
        };
        let resumed = match resumed {
            Some(resumed) => Some(received(&self.brought, *run, *resumed)?),
            None => None,
        };
        Some(TaskInputs {
            input: self.inputs.get(run)?.clone(),
            parents: parents.iter().map(parent).collect(),
            failure: self.failures.get(run).filter(|_| is_failure_handler(*node)).cloned(),
            resumed,
            history: if task.has_history() {
                Some(Box::new(self.histories.get(&(*run, *node))?.clone()))
            } else {
                None
            },
        })
    }
}

/// Reads what claimed tasks are executed with, in a transaction of its own. If this process
/// remembers the runs, all of that is asked for in one go.
pub(crate) async fn read_inputs(
    ids: &IdLookup<'_>,
    asked: &[InputsOf],
) -> PgResult<Vec<TaskInputs>> {
    let session = ids.session;
    let batch = if let Some(plan) = InputPlan::from_cache(ids, asked) {
        let (opened, batch, closed) = tokio::join!(
            biased;
            session.open_timeless(),
            plan.read(session),
            session.close(),
        );
        opened.and(closed)?;
        batch?
    } else {
        let runs = keys(asked.iter().map(|task| &task.claim.run));
        let params: [super::super::rows::Param<'_>; 1] = [&runs];
        let (opened, inputs, runs) = tokio::join!(
            biased;
            session.open_timeless(),
            session.all(READ_INPUTS, &params),
            session.all(READ_RUNS, &params),
        );
        opened?;
        let inputs = payload::read_inputs(&inputs?)?;
        let runs = read_all(&runs?, run::read)?.into_iter().map(|run| (run.row.key, run.row));
        let plan = InputPlan::from_runs(ids, asked, runs.collect()).await?;
        let plan = InputPlan { inputs: Some(inputs), ..plan };
        let (batch, closed) = tokio::join!(biased; plan.read(session), session.close());
        closed?;
        batch?
    };
    let task = |(ix, task): (usize, &InputsOf)| {
        let missing = || corrupt(format!("an input of run {} is missing", task.claim.run));
        Ok(batch.of_task(ix).ok_or_else(missing)?)
    };
    asked.iter().enumerate().map(task).collect()
}

/// What signals brought that ended the waits of tasks, and those of their parents.
async fn read_signals(session: &Session, tasks: &[PlannedTask]) -> PgResult<Brought> {
    let own = SignalNumbers::of(tasks.iter().filter_map(PlannedTask::resumed_by));
    let parents = tasks.iter().flat_map(|task| task.waits.iter().map(|wait| (task.run, *wait)));
    let parents = TaskKeys::of(parents.collect::<BTreeSet<_>>());
    let read_own = async {
        if own.is_empty() { Ok(Vec::new()) } else { session.all(READ_BROUGHT, &own.params()).await }
    };
    let read_of_parents = async {
        if parents.is_empty() {
            return Ok(Vec::new());
        }
        session.all(READ_RECEIVED, &parents.params()).await
    };
    let (own, of_parents) = tokio::join!(biased; read_own, read_of_parents);
    let mut brought: Brought = read_all(&own?, read_brought)?.into_iter().collect();
    brought.extend(read_all(&of_parents?, read_brought)?);
    Ok(brought)
}

/// Where tasks stand, and the outputs of those that have one.
#[derive(Default)]
struct TaskEnds {
    ends: Vec<((RunKey, Node), TaskEnd)>,
    outputs: HashMap<(RunKey, Node), Payload>,
}

async fn read_ends(session: &Session, asked: BTreeSet<(RunKey, Node)>) -> PgResult<TaskEnds> {
    let asked = TaskKeys::of(asked);
    if asked.is_empty() {
        return Ok(TaskEnds::default());
    }
    let params = asked.params();
    let (tasks, outputs) = tokio::join!(
        biased;
        session.all(READ_SOME_TASKS, &params),
        session.all(READ_SOME_OUTPUTS, &params),
    );
    let outputs = read_all(&outputs?, payload::read_output)?.into_iter().collect();
    Ok(TaskEnds { ends: read_all(&tasks?, read_end)?, outputs })
}

impl TaskEnds {
    /// The states and outputs of tasks. A completed one without an output of its own has what it
    /// got, or the empty payload.
    fn into_results(mut self, brought: &Brought) -> ParentResults {
        let mut results = ParentResults::new();
        for (task, TaskEnd { state, resumed }) in self.ends {
            let got = || resumed.and_then(|resumed| received(brought, task.0, resumed));
            let own = self.outputs.remove(&task).or_else(got);
            let output =
                (state == TaskState::Completed).then(|| own.unwrap_or_else(Payload::empty));
            results.insert(task, (state, output));
        }
        results
    }
}

/// What ended the wait of a task of a run.
fn received(brought: &Brought, run: RunKey, resumed: Resumed) -> Option<Payload> {
    match resumed {
        Resumed::TimedOut => Some(Payload::timed_out()),
        Resumed::Signal(number) => brought.get(&(run, number)).cloned(),
    }
}

/// What tasks left that complete in this transaction.
fn completed_now(updates: &UpdatesByKey<'_>, given: Payloads<'_>) -> ParentResults {
    let Payloads::Outputs(outputs) = given else { return ParentResults::new() };
    let mut results = ParentResults::new();
    for (run, update) in updates {
        let completed = |attempt: &&AttemptRow| attempt.state == AttemptState::Completed;
        for attempt in update.changes.attempts.iter().filter(completed) {
            results.insert((*run, attempt.node), (TaskState::Completed, Some(Payload::empty())));
        }
    }
    for (run, node, output) in outputs {
        results.insert((*run, *node), (TaskState::Completed, Some((*output).clone())));
    }
    results
}
