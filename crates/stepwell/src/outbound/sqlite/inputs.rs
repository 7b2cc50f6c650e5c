//! What claimed tasks are executed with.

use std::sync::Arc;

use rusqlite::{Row, params};
use stepwell_core::id::{DefinitionId, Node, RunKey};
use stepwell_core::run::{RunFailure, TaskState};

use super::error::corrupt;
use super::rows::{self, count, key, node};
use super::statements;
use super::transaction::Transaction;
use crate::ports::{ClaimRef, ParentInput, Payload, StoreError, StoredDefinition, TaskInputs};

/// Reads what claimed tasks are executed with.
pub(super) fn inputs_of(
    transaction: &Transaction<'_, '_>,
    claims: &[ClaimRef],
) -> Result<Vec<TaskInputs>, StoreError> {
    let mut inputs = Vec::with_capacity(claims.len());
    let mut last: Option<Family> = None;
    for claim in claims {
        let mut family = match last.take() {
            Some(family) if family.run == claim.run => family,
            _ => Family::of(transaction, claim.run)?,
        };
        inputs.push(family.inputs(transaction, claim.node)?);
        last = Some(family);
    }
    Ok(inputs)
}

/// What is known of a run. Siblings come one after the other and have the same input and the same
/// parents, so those are read once.
struct Family {
    run: RunKey,
    definition: Arc<StoredDefinition>,
    failure: Option<Box<RunFailure>>,
    input: Payload,
    /// The parents of the last task, and what they left.
    parents: Vec<Node>,
    left: Vec<ParentInput>,
}

impl Family {
    fn of(transaction: &Transaction<'_, '_>, run: RunKey) -> Result<Self, StoreError> {
        let given = transaction.first(statements::READ_GIVEN, [key(run)], |row| {
            let definition = DefinitionId(count(row, 0)?);
            Ok((definition, rows::run_failure(row, 1)?, rows::small_payload(row, 2)?))
        })?;
        let missing = |what: &str| corrupt(format!("the {what} of run {run} is missing"));
        let (definition, failure, input) = given.ok_or_else(|| missing("row"))?;
        let input = if let Some(input) = input {
            input
        } else {
            let read = |row: &Row<'_>| rows::payload(row, 0);
            let input = transaction.first(statements::READ_INPUT, [key(run)], read)?;
            input.ok_or_else(|| missing("input"))?
        };
        let definition = transaction.definition(definition)?;
        Ok(Self { run, definition, failure, input, parents: Vec::new(), left: Vec::new() })
    }

    fn inputs(
        &mut self,
        transaction: &Transaction<'_, '_>,
        node: Node,
    ) -> Result<TaskInputs, StoreError> {
        let parents = self.definition.definition.graph.parents(node).iter().map(|edge| edge.node);
        if !parents.clone().eq(self.parents.iter().copied()) {
            self.parents = parents.collect();
            self.left = all_left(transaction, self.run, &self.parents)?;
        }
        let failure = self.failure.clone().filter(|_| node == Node::ON_FAILURE);
        Ok(TaskInputs { input: self.input.clone(), parents: self.left.clone(), failure })
    }
}

/// What tasks of a run left. Those that are numbered without a gap, such as the sides of a fan,
/// are read by one statement.
fn all_left(
    transaction: &Transaction<'_, '_>,
    run: RunKey,
    nodes: &[Node],
) -> Result<Vec<ParentInput>, StoreError> {
    let is_dense = nodes.windows(2).all(|pair| pair[1].0 == pair[0].0.wrapping_add(1));
    let (Some(first), Some(last), true) = (nodes.first(), nodes.last(), is_dense) else {
        return nodes.iter().map(|node| left(transaction, run, *node)).collect();
    };
    let range = params![key(run), first.0, last.0];
    let found = transaction.all(statements::READ_LEFT_BETWEEN, range, left_by)?;
    if found.len() != nodes.len() {
        return nodes.iter().map(|node| left(transaction, run, *node)).collect();
    }
    found.into_iter().map(|left| with_large(transaction, run, left)).collect()
}

fn left(
    transaction: &Transaction<'_, '_>,
    run: RunKey,
    node: Node,
) -> Result<ParentInput, StoreError> {
    let found = transaction.first(statements::READ_LEFT, params![key(run), node.0], left_by)?;
    let pending = ParentInput { node, state: TaskState::Pending, output: None };
    with_large(transaction, run, found.unwrap_or(pending))
}

/// What a task left, as far as its own row tells.
fn left_by(row: &Row<'_>) -> Result<ParentInput, StoreError> {
    let (node, state) = (node(row, 0)?, rows::task_state(row.get(1)?)?);
    Ok(ParentInput { node, state, output: rows::small_payload(row, 2)? })
}

/// A completed task whose output is not in its row has a large one, or else the empty payload.
fn with_large(
    transaction: &Transaction<'_, '_>,
    run: RunKey,
    mut left: ParentInput,
) -> Result<ParentInput, StoreError> {
    if left.state == TaskState::Completed && left.output.is_none() {
        let row = params![key(run), left.node.0];
        let read = |row: &Row<'_>| rows::payload(row, 0);
        let output = transaction.first(statements::READ_OUTPUT, row, read)?;
        left.output = Some(output.unwrap_or_else(Payload::empty));
    }
    Ok(left)
}

/// The output of a completed task.
pub(super) fn output(
    transaction: &Transaction<'_, '_>,
    run: RunKey,
    node: Node,
) -> Result<Option<Payload>, StoreError> {
    Ok(left(transaction, run, node)?.output)
}
