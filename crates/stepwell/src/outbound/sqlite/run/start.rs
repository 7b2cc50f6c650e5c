//! Starting runs.

use stepwell_core::decide::{self, RunSeed};
use stepwell_core::queue::TenantNo;
use stepwell_core::run::RunRow;

use super::happen::SignalPayloads;
use super::write::write_changes;
use crate::outbound::sqlite::cache::CachedRun;
use crate::outbound::sqlite::file::corrupt;
use crate::outbound::sqlite::queue::positions;
use crate::outbound::sqlite::rows;
use crate::outbound::sqlite::rows::payload::is_small;
use crate::outbound::sqlite::writer::Transaction;
use crate::ports::{ExistingRun, StartAnswer, StartRequest, StoreError, StoredDefinition};

/// Starts a run, unless its id is known.
pub(crate) fn start(
    transaction: &mut Transaction<'_, '_>,
    request: StartRequest,
) -> Result<StartAnswer, StoreError> {
    let file = transaction.file;
    let stored = transaction.definitions.find(file, request.seed.definition)?;
    let stored = stored.filter(|stored| stored.mark == request.mark);
    let unknown = || StoreError::unknown_definition(request.seed.definition);
    let stored = stored.ok_or_else(unknown)?;
    let tenant_no = transaction.cache.tenants.number(file, &request.seed.tenant)?;
    if let Err(error) = check_room(transaction, tenant_no, &stored) {
        // A run that is there already needs no room.
        return repeated(transaction, &request, &stored)?.ok_or(error);
    }
    let StartRequest { seed, mark, input, input_digest } = request;
    let deadline = seed.deadline;
    let image = decide::start(&stored.definition, transaction.now, seed);
    let small = Some(&input).filter(|input| is_small(input));
    let inserted = rows::run::insert(file, image.run(), tenant_no, &input_digest, small)?;
    let Some(no) = inserted else {
        let RunRow { key, tenant, id, definition, .. } = image.run().clone();
        let seed = RunSeed { key, tenant, id, definition, deadline };
        let request = StartRequest { seed, mark, input, input_digest };
        let known = repeated(transaction, &request, &stored)?;
        return known.ok_or_else(|| corrupt(format!("the key {key} is used")));
    };
    if !is_small(&input) {
        rows::payload::insert_input(file, no, &input)?;
    }
    let (run, tasks, changes) = image.into_parts();
    let (key, input) = (run.key, Some(input).filter(is_small));
    transaction.cache.runs.insert(CachedRun::fresh(run, no, tenant_no, input, tasks));
    write_changes(transaction, key, &stored, &changes, &SignalPayloads::new())?;
    Ok(StartAnswer::Started)
}

/// The answer to a start whose id is known.
fn repeated(
    transaction: &Transaction<'_, '_>,
    request: &StartRequest,
    stored: &StoredDefinition,
) -> Result<Option<StartAnswer>, StoreError> {
    let (file, seed) = (transaction.file, &request.seed);
    let Some(known) = rows::run::find(file, &seed.tenant, &seed.id)? else { return Ok(None) };
    let definition = transaction.definitions.plan_of(file, known.row.definition)?;
    let existing = ExistingRun {
        key: known.row.key,
        workflow: &definition.definition.workflow,
        input_digest: &known.input_digest,
    };
    request.compare_with(&stored.definition.workflow, existing).map(Some)
}

/// Whether the tenant can get a position in the queues of the first steps.
fn check_room(
    transaction: &mut Transaction<'_, '_>,
    tenant_no: TenantNo,
    stored: &StoredDefinition,
) -> Result<(), StoreError> {
    for queue in stored.definition.root_queues() {
        positions::of_tenant(transaction, tenant_no, &queue)?.check()?;
    }
    Ok(())
}
