use std::collections::BTreeSet;

use async_trait::async_trait;
use rusqlite::params;
use stepwell_core::code::Code;
use stepwell_core::decide;
use stepwell_core::fair::{group, next_position, stride};
use stepwell_core::id::{Queue, Tenant};

use super::line::TenantRow;
use super::rows::{self, count, int, key};
use super::transaction::Transaction;
use super::{SqliteStore, statements};
use crate::ports::{KnownRun, StartAnswer, StartRequest, Starts, StoreError};

#[async_trait]
impl Starts for SqliteStore {
    async fn start(&self, requests: Vec<StartRequest>) -> Result<Vec<StartAnswer>, StoreError> {
        self.write(move |transaction| {
            requests.into_iter().map(|request| answer(transaction, request)).collect()
        })
        .await
    }
}

/// A refusal is an answer; anything else fails the whole transaction.
fn answer(
    transaction: &mut Transaction<'_>,
    request: StartRequest,
) -> Result<StartAnswer, StoreError> {
    match start(transaction, request) {
        Err(refused @ StoreError::Refused { .. }) => Ok(StartAnswer::Refused(refused)),
        other => other,
    }
}

fn start(
    transaction: &mut Transaction<'_>,
    request: StartRequest,
) -> Result<StartAnswer, StoreError> {
    let seed = &request.seed;
    let stored = transaction.find_definition(seed.definition)?.ok_or_else(|| {
        let message = format!("definition {} is not stored", seed.definition.0);
        StoreError::Refused { code: Code::UnknownWorkflow, message }
    })?;
    let names = params![seed.tenant.as_str(), seed.id.as_str()];
    if let Some(known) = transaction.first(statements::FIND_RUN, names, rows::run)? {
        let definition = transaction.definition(known.row.definition)?;
        let known = KnownRun {
            key: known.row.key,
            workflow: &definition.definition.workflow,
            input_digest: &known.input_digest,
        };
        return request.meets(&stored.definition.workflow, known);
    }
    let tenant = tenant(transaction, &seed.tenant)?;
    check_room(transaction, &tenant, &stored.definition.root_queues())?;
    let (input, digest) = (request.input, request.input_digest);
    let image = decide::start(&stored.definition, transaction.now, request.seed);
    let run = image.run();
    transaction.run(
        statements::INSERT_RUN,
        params![
            key(run.key),
            tenant.group,
            run.id.as_str(),
            run.definition.0,
            run.status as i64,
            run.n_open,
            0,
            0,
            false,
            None::<String>,
            int(run.next_event),
            None::<i64>,
            run.started_at.as_micros(),
            None::<i64>,
            digest,
        ],
    )?;
    let input_row = params![key(run.key), input.codec.as_ref(), input.bytes.as_ref()];
    transaction.run(statements::INSERT_INPUT, input_row)?;
    transaction.write_run(image, &stored, tenant.group)?;
    Ok(StartAnswer::Started)
}

/// The row of a tenant, made when it is first seen.
pub(super) fn tenant(
    transaction: &Transaction<'_>,
    name: &Tenant,
) -> Result<TenantRow, StoreError> {
    let find = || {
        transaction
            .first(statements::FIND_TENANT, [name.as_str()], |row| transaction.read_tenant_row(row))
    };
    if let Some(tenant) = find()? {
        return Ok(tenant);
    }
    let n_tenants = transaction.first(statements::COUNT_TENANTS, [], |row| count(row, 0))?;
    let group = group(n_tenants.unwrap_or(0) as usize)?;
    transaction.run(statements::INSERT_TENANT, params![group.0, name.as_str()])?;
    transaction.tenant_row(group.0)
}

/// Whether the tenant can get a place in these queues.
fn check_room(
    transaction: &Transaction<'_>,
    tenant: &TenantRow,
    queues: &BTreeSet<Queue>,
) -> Result<(), StoreError> {
    for queue in queues {
        let (last, frontier) =
            (transaction.standing(tenant.group, queue)?, transaction.frontier(queue)?);
        next_position(frontier, last, stride(tenant.settings.weight))?;
    }
    Ok(())
}
