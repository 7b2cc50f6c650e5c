//! What tasks are executed with: the input of their run, what their parents left, and for a failure
//! handler the failure. All that a worker gets of this is put together here.

use std::collections::{BTreeSet, HashMap};

use stepwell_core::id::{DefinitionId, Node, RunKey};
use stepwell_core::run::{AttemptRow, AttemptState, RunFailure, RunRow, TaskState};

use super::super::lookup::IdLookup;
use super::super::rows::queue::Queued;
use super::super::rows::task::{is_failure_handler, read_state};
use super::super::rows::{TaskKeys, corrupt, keys, payload, read_all, run};
use super::super::session::{PgResult, Session};
use super::super::sql::{self, Sql};
use super::load::READ_SOME_TASKS;
use super::write::{Payloads, UpdatesByKey};
use crate::ports::{ClaimRef, ParentInput, Payload, StoredDefinition, TaskInputs};

const READ_INPUTS: Sql = sql::PAYLOAD.named("read_inputs");
const READ_SOME_OUTPUTS: Sql = sql::PAYLOAD.named("read_some_outputs");
const READ_RUNS: Sql = sql::RUN.named("read_runs");

/// States and outputs of tasks.
pub(crate) type ParentResults = HashMap<(RunKey, Node), (TaskState, Option<Payload>)>;

/// A task and its parents.
struct PlannedTask {
    run: RunKey,
    node: Node,
    parents: Vec<Node>,
}

impl PlannedTask {
    fn of(claim: &ClaimRef, stored: &StoredDefinition) -> Self {
        Self { run: claim.run, node: claim.node, parents: parents_of(stored, claim.node) }
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
    failures: HashMap<RunKey, Box<RunFailure>>,
}

impl InputPlan {
    /// A plan for tasks of known definitions.
    pub(crate) fn new<'d>(
        tasks: impl Iterator<Item = (RunKey, Node, Option<&'d StoredDefinition>)>,
    ) -> Self {
        let task = |(run, node, stored): (RunKey, Node, Option<&StoredDefinition>)| PlannedTask {
            run,
            node,
            parents: stored.map(|stored| parents_of(stored, node)).unwrap_or_default(),
        };
        Self { tasks: tasks.map(task).collect(), ..Self::default() }
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
        let stored = |run: &RunKey| updates.get(run).map(|update| &*update.stored);
        let tasks = taken.iter().map(|task| (task.run, task.node, stored(&task.run)));
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
    fn from_cache(ids: &IdLookup<'_>, claims: &[ClaimRef]) -> Option<Self> {
        if claims.iter().any(|claim| is_failure_handler(claim.node)) {
            return None;
        }
        let refs = ids.cache.cached_runs(claims.iter().map(|claim| &claim.run))?;
        let definitions: BTreeSet<DefinitionId> = refs.values().map(|run| run.definition).collect();
        let plans = ids.plans.cached(&definitions);
        let task = |claim: &ClaimRef| {
            let stored = plans.get(&refs.get(&claim.run)?.definition)?;
            Some(PlannedTask::of(claim, stored))
        };
        Some(Self { tasks: claims.iter().map(task).collect::<Option<_>>()?, ..Self::default() })
    }

    /// A plan for claimed tasks whose runs were read.
    async fn from_runs(
        ids: &IdLookup<'_>,
        claims: &[ClaimRef],
        runs: HashMap<RunKey, RunRow>,
    ) -> PgResult<Self> {
        let mut tasks = Vec::with_capacity(claims.len());
        for claim in claims {
            let missing = || corrupt(format!("run {} is missing", claim.run));
            let run = runs.get(&claim.run).ok_or_else(missing)?;
            tasks.push(PlannedTask::of(claim, &*ids.plan_of(run).await?));
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
        let (inputs, earlier) =
            tokio::join!(biased; read_inputs, read_parent_results(session, earlier));
        results.extend(earlier?);
        let inputs = inputs?;
        Ok(InputBatch { tasks, inputs, results, failures })
    }
}

impl InputBatch {
    /// The inputs of the runs.
    pub(crate) fn of_runs(&self) -> &HashMap<RunKey, Payload> {
        &self.inputs
    }

    /// What the task at this place is executed with, unless its run's input is missing.
    pub(crate) fn of_task(&self, ix: usize) -> Option<TaskInputs> {
        let PlannedTask { run, node, parents } = self.tasks.get(ix)?;
        let parent = |node: &Node| {
            let known = self.results.get(&(*run, *node)).cloned();
            let (state, output) = known.unwrap_or((TaskState::Pending, None));
            ParentInput { node: *node, state, output }
        };
        Some(TaskInputs {
            input: self.inputs.get(run)?.clone(),
            parents: parents.iter().map(parent).collect(),
            failure: self.failures.get(run).filter(|_| is_failure_handler(*node)).cloned(),
        })
    }
}

/// Reads what claimed tasks are executed with, in a transaction of its own. If this process
/// remembers the runs, all of that is asked for in one go.
pub(crate) async fn read_inputs(
    ids: &IdLookup<'_>,
    claims: &[ClaimRef],
) -> PgResult<Vec<TaskInputs>> {
    let session = ids.session;
    let batch = if let Some(plan) = InputPlan::from_cache(ids, claims) {
        let (opened, batch, closed) = tokio::join!(
            biased;
            session.open_timeless(),
            plan.read(session),
            session.close(),
        );
        opened.and(closed)?;
        batch?
    } else {
        let runs = keys(claims.iter().map(|claim| &claim.run));
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
        let plan = InputPlan::from_runs(ids, claims, runs.collect()).await?;
        let plan = InputPlan { inputs: Some(inputs), ..plan };
        let (batch, closed) = tokio::join!(biased; plan.read(session), session.close());
        closed?;
        batch?
    };
    let task = |(ix, claim): (usize, &ClaimRef)| {
        let missing = || corrupt(format!("the input of run {} is missing", claim.run));
        Ok(batch.of_task(ix).ok_or_else(missing)?)
    };
    claims.iter().enumerate().map(task).collect()
}

/// The states and outputs of tasks; a completed one without an output has the empty payload.
pub(crate) async fn read_parent_results(
    session: &Session,
    asked: BTreeSet<(RunKey, Node)>,
) -> PgResult<ParentResults> {
    let asked = TaskKeys::of(asked);
    if asked.is_empty() {
        return Ok(ParentResults::new());
    }
    let params = asked.params();
    let (tasks, outputs) = tokio::join!(
        biased;
        session.all(READ_SOME_TASKS, &params),
        session.all(READ_SOME_OUTPUTS, &params),
    );
    let outputs = read_all(&outputs?, payload::read_output)?;
    let mut outputs: HashMap<(RunKey, Node), Payload> = outputs.into_iter().collect();
    let mut results = ParentResults::new();
    for row in tasks? {
        let (task, state) = read_state(&row)?;
        let mut own = || outputs.remove(&task).unwrap_or_else(Payload::empty);
        let output = (state == TaskState::Completed).then(&mut own);
        results.insert(task, (state, output));
    }
    Ok(results)
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

fn parents_of(stored: &StoredDefinition, node: Node) -> Vec<Node> {
    stored.definition.graph.parents(node).iter().map(|edge| edge.node).collect()
}
