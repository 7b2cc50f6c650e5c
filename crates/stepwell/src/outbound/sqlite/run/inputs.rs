//! What tasks are executed with: the input of their run and what their parents left. It is put
//! together here, be it from rows or from what the writing thread has at hand.

use std::sync::Arc;

use stepwell_core::id::{Node, RunKey};
use stepwell_core::run::{Resumed, RunFailure, TaskState};

use crate::outbound::sqlite::cache::{CachedRun, DefinitionCache};
use crate::outbound::sqlite::file::{File, corrupt};
use crate::outbound::sqlite::rows;
use crate::outbound::sqlite::rows::memo::Earlier;
use crate::outbound::sqlite::rows::task::TaskResult;
use crate::outbound::sqlite::writer::Transaction;
use crate::ports::{
    ClaimRef, ClaimedTask, History, InputsOf, ParentInput, Payload, StoreError, StoredDefinition,
    TaskInputs,
};

/// Gives tasks that were just claimed their inputs, if those need not be read: the run's input was
/// seen here, and its parents complete in this call. A task that was executed before has to read
/// what it left.
pub(crate) fn add_at_hand(
    transaction: &mut Transaction<'_, '_>,
    tasks: &mut [ClaimedTask],
) -> Result<(), StoreError> {
    for task in tasks.iter_mut().filter(|task| !task.inputs_of().has_history()) {
        let run = transaction.cache.runs.load(transaction.file, task.claim.run)?;
        task.inputs = at_hand(run, &task.definition, task.claim.node);
    }
    Ok(())
}

fn at_hand(run: &CachedRun, stored: &StoredDefinition, node: Node) -> Option<TaskInputs> {
    let input = run.input.clone().filter(|_| node != Node::ON_FAILURE)?;
    let result = |parent: Node| {
        let end = run.tasks.get(&parent)?.end.as_ref().filter(|end| !end.is_large)?;
        let output = end.output.clone().unwrap_or_else(Payload::empty);
        Some(ParentInput { node: parent, state: TaskState::Completed, output: Some(output) })
    };
    let parents = stored.definition.graph.parents(node).iter().map(|edge| result(edge.node));
    let parents = parents.collect::<Option<Vec<ParentInput>>>()?;
    Some(TaskInputs { input, parents, failure: None, resumed: None, history: None })
}

/// Reads what claimed tasks are executed with.
pub(crate) fn read(
    file: File<'_, '_>,
    definitions: &DefinitionCache,
    tasks: &[InputsOf],
) -> Result<Vec<TaskInputs>, StoreError> {
    let mut inputs = Vec::with_capacity(tasks.len());
    let mut last: Option<Siblings> = None;
    for task in tasks {
        let InputsOf { claim, resumed, .. } = task;
        let mut siblings = match last.take() {
            Some(siblings) if siblings.run == claim.run => siblings,
            _ => Siblings::of(file, definitions, claim.run)?,
        };
        let resumed = resumed.map(|resumed| resumed_with(file, claim.run, resumed)).transpose()?;
        let history = if task.has_history() { read_history(file, claim)? } else { None };
        inputs.push(TaskInputs { resumed, history, ..siblings.inputs(file, claim.node)? });
        last = Some(siblings);
    }
    Ok(inputs)
}

/// What an execution finds of those before it.
fn read_history(file: File<'_, '_>, claim: &ClaimRef) -> Result<Option<Box<History>>, StoreError> {
    let ClaimRef { run, node, .. } = *claim;
    let Some(earlier) = rows::memo::earlier(file, run, node)? else { return Ok(None) };
    let Earlier { has_suspended, has_losses, has_signals, began_at } = earlier;
    let memos = rows::memo::of_run(file, run, Some(node))?;
    let mut waits = Vec::new();
    if has_suspended {
        waits = rows::wait::of_run(file, run)?;
        waits.retain(|wait| wait.node == node);
    }
    let began_at = began_at.unwrap_or_default();
    let history = History { began_at, memos, waits, has_suspended, has_losses, has_signals };
    Ok(Some(Box::new(history)))
}

/// What the tasks of one run share. Siblings come one after the other and have the same input and
/// the same parents, so those are read once.
struct Siblings {
    run: RunKey,
    definition: Arc<StoredDefinition>,
    failure: Option<Box<RunFailure>>,
    input: Payload,
    /// The parents of the last task, and what they left.
    parents: Vec<Node>,
    results: Vec<ParentInput>,
}

impl Siblings {
    fn of(
        file: File<'_, '_>,
        definitions: &DefinitionCache,
        run: RunKey,
    ) -> Result<Self, StoreError> {
        let missing = |what: &str| corrupt(format!("the {what} of run {run} is missing"));
        let given = rows::run::given(file, run)?.ok_or_else(|| missing("row"))?;
        let input = match given.input {
            Some(input) => input,
            None => rows::payload::input(file, run)?.ok_or_else(|| missing("input"))?,
        };
        let definition = definitions.plan_of(file, given.definition)?;
        let (parents, results) = (Vec::new(), Vec::new());
        Ok(Self { run, definition, failure: given.failure, input, parents, results })
    }

    fn inputs(&mut self, file: File<'_, '_>, node: Node) -> Result<TaskInputs, StoreError> {
        let parents = self.definition.definition.graph.parents(node).iter().map(|edge| edge.node);
        if !parents.clone().eq(self.parents.iter().copied()) {
            self.parents = parents.collect();
            self.results = read_parent_results(file, self.run, &self.parents)?;
        }
        let failure = self.failure.clone().filter(|_| node == Node::ON_FAILURE);
        let (input, parents) = (self.input.clone(), self.results.clone());
        Ok(TaskInputs { input, parents, failure, resumed: None, history: None })
    }
}

/// What parents left. Those that are numbered without a gap, such as the sides of a fan, are read
/// by one statement.
fn read_parent_results(
    file: File<'_, '_>,
    run: RunKey,
    nodes: &[Node],
) -> Result<Vec<ParentInput>, StoreError> {
    let is_dense = nodes.windows(2).all(|pair| pair[1].0 == pair[0].0.wrapping_add(1));
    if let (Some(first), Some(last), true) = (nodes.first(), nodes.last(), is_dense) {
        let found = rows::task::results_between(file, run, *first, *last)?;
        if found.len() == nodes.len() {
            return found.into_iter().map(|result| completed(file, run, result)).collect();
        }
    }
    nodes.iter().map(|node| read_result(file, run, *node)).collect()
}

fn read_result(file: File<'_, '_>, run: RunKey, node: Node) -> Result<ParentInput, StoreError> {
    let pending = ParentInput { node, state: TaskState::Pending, output: None };
    let found = rows::task::result(file, run, node)?;
    completed(file, run, found.unwrap_or((pending, None)))
}

/// A completed task whose output is not in its row left what a wait got, or has a large one, or
/// else the empty payload.
fn completed(
    file: File<'_, '_>,
    run: RunKey,
    (mut result, resumed): TaskResult,
) -> Result<ParentInput, StoreError> {
    if result.state == TaskState::Completed && result.output.is_none() {
        let left = match resumed {
            Some(resumed) => Some(resumed_with(file, run, resumed)?),
            None => rows::payload::output(file, run, result.node)?,
        };
        result.output = Some(left.unwrap_or_else(Payload::empty));
    }
    Ok(result)
}

/// What ended a wait, as it is read.
pub(crate) fn resumed_with(
    file: File<'_, '_>,
    run: RunKey,
    resumed: Resumed,
) -> Result<Payload, StoreError> {
    let Resumed::Signal(number) = resumed else { return Ok(Payload::timed_out()) };
    let payload = rows::signal::payload(file, run, number)?;
    payload.ok_or_else(|| corrupt(format!("signal {number} of run {run} is missing")))
}

/// The output of a completed task.
pub(crate) fn read_output(
    file: File<'_, '_>,
    run: RunKey,
    node: Node,
) -> Result<Option<Payload>, StoreError> {
    Ok(read_result(file, run, node)?.output)
}

/// The input of a run, be it in its row or, if it is large, in one of its own.
pub(crate) fn read_input(file: File<'_, '_>, run: RunKey) -> Result<Option<Payload>, StoreError> {
    match rows::run::given(file, run)? {
        Some(given) if given.input.is_none() => rows::payload::input(file, run),
        given => Ok(given.and_then(|given| given.input)),
    }
}
