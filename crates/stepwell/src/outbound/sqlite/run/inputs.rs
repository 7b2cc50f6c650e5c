//! What tasks are executed with: the input of their run and what their parents left. It is put
//! together here, be it from rows or from what the writing thread has at hand.

use std::sync::Arc;

use stepwell_core::id::{Node, RunKey};
use stepwell_core::run::{RunFailure, TaskState};

use crate::outbound::sqlite::cache::{CachedRun, DefinitionCache};
use crate::outbound::sqlite::file::{File, corrupt};
use crate::outbound::sqlite::rows;
use crate::outbound::sqlite::writer::Transaction;
use crate::ports::{
    ClaimRef, ClaimedTask, ParentInput, Payload, StoreError, StoredDefinition, TaskInputs,
};

/// Gives tasks that were just claimed their inputs, if those need not be read: the run's input was
/// seen here, and its parents complete in this call.
pub(crate) fn add_at_hand(
    transaction: &mut Transaction<'_, '_>,
    tasks: &mut [ClaimedTask],
) -> Result<(), StoreError> {
    for task in tasks {
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
    Some(TaskInputs { input, parents, failure: None })
}

/// Reads what claimed tasks are executed with.
pub(crate) fn read(
    file: File<'_, '_>,
    definitions: &DefinitionCache,
    claims: &[ClaimRef],
) -> Result<Vec<TaskInputs>, StoreError> {
    let mut inputs = Vec::with_capacity(claims.len());
    let mut last: Option<Siblings> = None;
    for claim in claims {
        let mut siblings = match last.take() {
            Some(siblings) if siblings.run == claim.run => siblings,
            _ => Siblings::of(file, definitions, claim.run)?,
        };
        inputs.push(siblings.inputs(file, claim.node)?);
        last = Some(siblings);
    }
    Ok(inputs)
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
        Ok(TaskInputs { input: self.input.clone(), parents: self.results.clone(), failure })
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
            return found.into_iter().map(|result| with_large(file, run, result)).collect();
        }
    }
    nodes.iter().map(|node| read_result(file, run, *node)).collect()
}

fn read_result(file: File<'_, '_>, run: RunKey, node: Node) -> Result<ParentInput, StoreError> {
    let pending = ParentInput { node, state: TaskState::Pending, output: None };
    let found = rows::task::result(file, run, node)?;
    with_large(file, run, found.unwrap_or(pending))
}

/// A completed task whose output is not in its row has a large one, or else the empty payload.
fn with_large(
    file: File<'_, '_>,
    run: RunKey,
    mut result: ParentInput,
) -> Result<ParentInput, StoreError> {
    if result.state == TaskState::Completed && result.output.is_none() {
        let output = rows::payload::output(file, run, result.node)?;
        result.output = Some(output.unwrap_or_else(Payload::empty));
    }
    Ok(result)
}

/// The output of a completed task.
pub(crate) fn read_output(
    file: File<'_, '_>,
    run: RunKey,
    node: Node,
) -> Result<Option<Payload>, StoreError> {
    Ok(read_result(file, run, node)?.output)
}
