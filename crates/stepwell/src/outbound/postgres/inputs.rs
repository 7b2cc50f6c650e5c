//! What claimed tasks are executed with.

use std::collections::{BTreeSet, HashMap};

use stepwell_core::id::{DefinitionId, Node, RunKey};
use stepwell_core::run::{RunRow, TaskState};
use tokio_postgres::Row;
use uuid::Uuid;

use super::error::corrupt;
use super::rows::{self, int32, key, node, run_key};
use super::statements;
use super::transaction::{Params, Transaction};
use crate::ports::{ClaimRef, ParentInput, Payload, StoreError, StoredDefinition, TaskInputs};

/// Reads what claimed tasks are executed with, and ends the transaction. If this process remembers
/// the runs, all of that is asked for in one go.
pub(super) async fn inputs(
    transaction: &Transaction,
    claims: &[ClaimRef],
) -> Result<Vec<TaskInputs>, StoreError> {
    let keys: Vec<Uuid> = claims.iter().map(|claim| key(claim.run)).collect();
    let params: Params<'_> = &[&keys];
    let inputs = transaction.all(statements::READ_INPUTS, params);
    let (inputs, failures, parents, left) = if let Some(parents) = guess(transaction, claims) {
        let (opened, inputs, left, closed) = tokio::join!(
            biased;
            transaction.open_timeless(),
            inputs,
            left_by(transaction, parents.iter().flatten().copied()),
            transaction.close(),
        );
        opened.and(closed)?;
        (inputs?, HashMap::new(), parents, left?)
    } else {
        let (opened, inputs, runs) = tokio::join!(
            biased;
            transaction.open_timeless(),
            inputs,
            transaction.all(statements::READ_RUNS, params),
        );
        opened?;
        let runs = rows::read_all(&runs?, rows::run)?.into_iter().map(|run| (run.row.key, run.row));
        let runs: HashMap<RunKey, RunRow> = runs.collect();
        let parents = parents_of(transaction, claims, &runs).await?;
        let left = left_by(transaction, parents.iter().flatten().copied());
        let (left, closed) = tokio::join!(biased; left, transaction.close());
        closed?;
        let failures = runs.into_iter().filter_map(|(run, row)| Some((run, row.failure?)));
        (inputs?, failures.collect(), parents, left?)
    };
    let inputs = payloads(&inputs)?;
    let mut found = Vec::with_capacity(claims.len());
    for (claim, parents) in claims.iter().zip(parents) {
        let missing = || corrupt(format!("the input of run {} is missing", claim.run));
        let failure = failures.get(&claim.run).filter(|_| claim.node == Node::ON_FAILURE).cloned();
        let inputs = assemble(&inputs, &left, claim.run, &parents).ok_or_else(missing)?;
        found.push(TaskInputs { failure, ..inputs });
    }
    Ok(found)
}

/// Inputs by run.
pub(super) fn payloads(rows: &[Row]) -> Result<HashMap<RunKey, Payload>, StoreError> {
    let payload = |row: &Row| Ok((run_key(row, 0)?, rows::payload(row, 1)?));
    Ok(rows::read_all(rows, payload)?.into_iter().collect())
}

/// What a task is executed with, unless its run's input is missing.
pub(super) fn assemble(
    inputs: &HashMap<RunKey, Payload>,
    left: &Left,
    run: RunKey,
    parents: &[(RunKey, Node)],
) -> Option<TaskInputs> {
    let parent = |(run, node): &(RunKey, Node)| {
        let known = left.get(&(*run, *node)).cloned();
        let (state, output) = known.unwrap_or((TaskState::Pending, None));
        ParentInput { node: *node, state, output }
    };
    let parents = parents.iter().map(parent).collect();
    Some(TaskInputs { input: inputs.get(&run)?.clone(), parents, failure: None })
}

/// The parents of tasks, if this process remembers the runs. A failure handler is told of the
/// failure, so its run is read.
fn guess(transaction: &Transaction, claims: &[ClaimRef]) -> Option<Vec<Vec<(RunKey, Node)>>> {
    if claims.iter().any(|claim| claim.node == Node::ON_FAILURE) {
        return None;
    }
    let facts = transaction.known().runs(claims.iter().map(|claim| &claim.run))?;
    let ids: BTreeSet<DefinitionId> = facts.values().map(|facts| facts.definition).collect();
    let definitions = transaction.known_definitions(&ids);
    let parents = |claim: &ClaimRef| {
        let stored = definitions.get(&facts.get(&claim.run)?.definition)?;
        Some(parents_in(stored, claim.run, claim.node))
    };
    claims.iter().map(parents).collect()
}

async fn parents_of(
    transaction: &Transaction,
    claims: &[ClaimRef],
    runs: &HashMap<RunKey, RunRow>,
) -> Result<Vec<Vec<(RunKey, Node)>>, StoreError> {
    let mut parents = Vec::with_capacity(claims.len());
    for claim in claims {
        let missing = || corrupt(format!("run {} is missing", claim.run));
        let run = runs.get(&claim.run).ok_or_else(missing)?;
        parents.push(parents_in(
            &*transaction.definition(run.definition).await?,
            claim.run,
            claim.node,
        ));
    }
    Ok(parents)
}

pub(super) fn parents_in(
    stored: &StoredDefinition,
    run: RunKey,
    node: Node,
) -> Vec<(RunKey, Node)> {
    stored.definition.graph.parents(node).iter().map(|edge| (run, edge.node)).collect()
}

/// States and outputs of tasks.
pub(super) type Left = HashMap<(RunKey, Node), (TaskState, Option<Payload>)>;

/// The states and outputs of tasks; a completed one without an output has the empty payload.
pub(super) async fn left_by(
    transaction: &Transaction,
    asked: impl IntoIterator<Item = (RunKey, Node)>,
) -> Result<Left, StoreError> {
    // Many tasks may have the same parent.
    let asked: BTreeSet<(RunKey, Node)> = asked.into_iter().collect();
    if asked.is_empty() {
        return Ok(Left::new());
    }
    let runs: Vec<Uuid> = asked.iter().map(|(run, _)| key(*run)).collect();
    let nodes: Vec<i32> = asked.iter().map(|(_, node)| int32(node.0)).collect();
    let params: Params<'_> = &[&runs, &nodes];
    let (tasks, outputs) = tokio::join!(
        biased;
        transaction.all(statements::READ_SOME_TASKS, params),
        transaction.all(statements::READ_SOME_OUTPUTS, params),
    );
    let output = |row: &Row| Ok(((run_key(row, 0)?, node(row, 1)?), rows::payload(row, 2)?));
    let mut outputs: HashMap<(RunKey, Node), Payload> =
        rows::read_all(&outputs?, output)?.into_iter().collect();
    let mut left = Left::with_capacity(asked.len());
    for row in tasks? {
        let (task, state) = ((run_key(&row, 0)?, node(&row, 1)?), rows::task_state(&row, 2)?);
        let mut own = || outputs.remove(&task).unwrap_or_else(Payload::empty);
        let output = (state == TaskState::Completed).then(&mut own);
        left.insert(task, (state, output));
    }
    Ok(left)
}
