use async_trait::async_trait;
use rusqlite::params;
use stepwell_core::code::Code;
use stepwell_core::decide::{self, RunSeed};
use stepwell_core::fair::{next_position, stride};
use stepwell_core::run::RunRow;

use super::book::{HeldRun, HeldTask};
use super::error::corrupt;
use super::rows::{self, int, is_small, key};
use super::transaction::Transaction;
use super::{SqliteStore, statements};
use crate::ports::{
    ClaimRequest, KnownRun, Payload, StartAnswer, StartRequest, Started, Starts, StoreError,
    StoredDefinition,
};

#[async_trait]
impl Starts for SqliteStore {
    async fn start_and_claim(
        &self,
        requests: Vec<StartRequest>,
        offer: Option<ClaimRequest>,
    ) -> Result<Started, StoreError> {
        self.write(move |transaction| {
            let (answers, handed_over) = transaction.hand_over(offer.as_ref(), |transaction| {
                requests.into_iter().map(|request| answer(transaction, request)).collect()
            })?;
            Ok(Started { answers, handed_over })
        })
        .await
    }
}

/// A refusal is an answer; anything else fails the whole transaction.
fn answer(
    transaction: &mut Transaction<'_, '_>,
    request: StartRequest,
) -> Result<StartAnswer, StoreError> {
    match start(transaction, request) {
        Err(refused @ StoreError::Refused { .. }) => Ok(StartAnswer::Refused(refused)),
        other => other,
    }
}

fn start(
    transaction: &mut Transaction<'_, '_>,
    request: StartRequest,
) -> Result<StartAnswer, StoreError> {
    let stored = transaction.find_definition(request.seed.definition)?.ok_or_else(|| {
        let message = format!("definition {} is not stored", request.seed.definition.0);
        StoreError::Refused { code: Code::UnknownWorkflow, message }
    })?;
    let group = transaction.group(&request.seed.tenant)?;
    if let Err(error) = check_room(transaction, group, &stored) {
        // A run that is there already needs no room.
        return repeated(transaction, &request, &stored)?.ok_or(error);
    }
    let StartRequest { seed, input, input_digest } = request;
    let image = decide::start(&stored.definition, transaction.now, seed);
    let inserted = insert_run(transaction, group, image.run(), &input, &input_digest)?;
    let Some(no) = inserted else {
        let RunRow { key, tenant, id, definition, .. } = image.run().clone();
        let seed = RunSeed { key, tenant, id, definition };
        let request = StartRequest { seed, input, input_digest };
        let known = repeated(transaction, &request, &stored)?;
        return known.ok_or_else(|| corrupt(format!("the key {key} is used")));
    };
    if !is_small(&input) {
        let row = params![key(image.run().key), input.codec.as_ref(), input.bytes.as_ref()];
        transaction.run(statements::INSERT_INPUT, row)?;
    }
    let (run, tasks, changes) = image.into_parts();
    let run_key = run.key;
    let held = HeldRun {
        is_fresh: true,
        input: Some(input).filter(is_small),
        tasks_changed: tasks.iter().map(|task| task.node).collect(),
        tasks: tasks.into_iter().map(|row| (row.node, Box::new(HeldTask::fresh(row)))).collect(),
        ..HeldRun::of(run, no, group)
    };
    transaction.book.runs.by_key.insert(run_key, Box::new(held));
    transaction.book.runs_changed.push(run_key);
    transaction.settle(run_key, group, &stored, &changes)?;
    Ok(StartAnswer::Started)
}

/// The answer to a start whose id is known.
fn repeated(
    transaction: &Transaction<'_, '_>,
    request: &StartRequest,
    stored: &StoredDefinition,
) -> Result<Option<StartAnswer>, StoreError> {
    let names = params![request.seed.tenant.as_str(), request.seed.id.as_str()];
    let Some(known) = transaction.first(statements::FIND_RUN, names, rows::run)? else {
        return Ok(None);
    };
    let definition = transaction.definition(known.row.definition)?;
    let known = KnownRun {
        key: known.row.key,
        workflow: &definition.definition.workflow,
        input_digest: &known.input_digest,
    };
    request.meets(&stored.definition.workflow, known).map(Some)
}

/// Stores a run unless its id is known, and gives its number.
fn insert_run(
    transaction: &Transaction<'_, '_>,
    group: u32,
    run: &RunRow,
    input: &Payload,
    digest: &[u8; 32],
) -> Result<Option<i64>, StoreError> {
    let input = Some(input).filter(|input| is_small(input));
    let n = transaction.file.run_small(
        statements::INSERT_RUN,
        params![
            key(run.key),
            group,
            run.id.as_str(),
            run.definition.0,
            run.status as i64,
            run.n_open,
            int(run.next_event),
            run.started_at.as_micros(),
            digest,
            input.map(|input| input.codec.as_ref()),
            input.map(|input| input.bytes.as_ref()),
        ],
    )?;
    let connection = transaction.file.statements.connection;
    Ok((n == 1).then(|| connection.last_insert_rowid()))
}

/// Whether the tenant can get a place in the queues of the first steps.
fn check_room(
    transaction: &mut Transaction<'_, '_>,
    group: u32,
    stored: &StoredDefinition,
) -> Result<(), StoreError> {
    let weight = transaction.settings(group)?.weight;
    for queue in stored.definition.root_queues() {
        let last = transaction.standing(group, &queue)?;
        let frontier = transaction.frontier(&queue)?;
        next_position(frontier, last, stride(weight))?;
    }
    Ok(())
}
