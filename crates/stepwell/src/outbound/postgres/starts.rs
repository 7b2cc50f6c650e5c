use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use stepwell_core::code::Code;
use stepwell_core::decide;
use stepwell_core::id::{DefinitionId, RunId, RunKey, Tenant};
use uuid::Uuid;

use super::rows::{self, StoredRun, count, int, int32, key, name};
use super::transaction::Transaction;
use super::write::Written;
use super::{PostgresStore, statements};
use crate::ports::{KnownRun, StartAnswer, StartRequest, Starts, StoreError, StoredDefinition};

#[async_trait]
impl Starts for PostgresStore {
    async fn start(&self, requests: Vec<StartRequest>) -> Result<Vec<StartAnswer>, StoreError> {
        let tenants: Vec<Tenant> = requests.iter().map(|r| r.seed.tenant.clone()).collect();
        let groups = self.with_retries(|| self.groups(&tenants)).await?;
        self.with_retries(|| self.start_once(&requests, &groups)).await
    }
}

/// A run by the names its caller knows it by.
type RunNames = (Tenant, RunId);

impl PostgresStore {
    /// The groups of tenants. New ones are numbered in a short transaction of its own, so that
    /// nobody waits for a batch of starts.
    pub(super) async fn groups(
        &self,
        tenants: &[Tenant],
    ) -> Result<HashMap<Tenant, u32>, StoreError> {
        let transaction = self.begin().await?;
        let mut known = read_groups(&transaction, tenants).await?;
        // In the order of their appearance, by which tenants are numbered; the lock on the table
        // keeps others away meanwhile.
        let mut fresh: Vec<&Tenant> = Vec::new();
        let mut seen = HashSet::new();
        for tenant in tenants {
            if !known.contains_key(tenant) && seen.insert(tenant) {
                fresh.push(tenant);
            }
        }
        if !fresh.is_empty() {
            transaction.run(statements::LOCK_TENANT_TABLE, &[]).await?;
            for tenant in fresh {
                transaction.run(statements::INSERT_TENANT, &[&tenant.as_str()]).await?;
            }
            known = read_groups(&transaction, tenants).await?;
        }
        self.commit_transaction(transaction).await?;
        Ok(known)
    }

    async fn start_once(
        &self,
        requests: &[StartRequest],
        groups: &HashMap<Tenant, u32>,
    ) -> Result<Vec<StartAnswer>, StoreError> {
        let mut transaction = self.begin().await?;
        transaction.share_service().await?;
        let definitions = definitions(&transaction, requests).await?;
        let fresh = insert_runs(&mut transaction, requests, groups, &definitions).await?;
        let known = known_runs(&transaction, requests, &fresh).await?;
        let mut answers = Vec::with_capacity(requests.len());
        for request in requests {
            answers.push(match definitions.get(&request.seed.definition) {
                None => StartAnswer::Refused(unknown_definition(request)),
                Some(_) if fresh.contains(&request.seed.key) => StartAnswer::Started,
                Some(stored) => meet(&transaction, request, stored, &known)
                    .await
                    .unwrap_or_else(StartAnswer::Refused),
            });
        }
        self.commit_transaction(transaction).await?;
        Ok(answers)
    }
}

async fn read_groups(
    transaction: &Transaction,
    tenants: &[Tenant],
) -> Result<HashMap<Tenant, u32>, StoreError> {
    let names: Vec<&str> = tenants.iter().map(Tenant::as_str).collect();
    let rows = transaction.all(statements::READ_TENANTS_BY_NAME, &[&names]).await?;
    rows.iter().map(|row| Ok((name(row, 1)?, count(row, 0)?))).collect()
}

async fn definitions(
    transaction: &Transaction,
    requests: &[StartRequest],
) -> Result<BTreeMap<DefinitionId, Arc<StoredDefinition>>, StoreError> {
    let ids: HashSet<DefinitionId> = requests.iter().map(|r| r.seed.definition).collect();
    let mut definitions = BTreeMap::new();
    for id in ids {
        definitions.extend(transaction.find_definition(id).await?.map(|stored| (id, stored)));
    }
    Ok(definitions)
}

/// Inserts runs whose ids are free, with everything that belongs to them. Gives their keys.
async fn insert_runs(
    transaction: &mut Transaction,
    requests: &[StartRequest],
    groups: &HashMap<Tenant, u32>,
    definitions: &BTreeMap<DefinitionId, Arc<StoredDefinition>>,
) -> Result<HashSet<RunKey>, StoreError> {
    let (mut keys, mut group_ids, mut ids, mut numbers) = (vec![], vec![], vec![], vec![]);
    let (mut n_open, mut next_event, mut digests) = (vec![], vec![], vec![]);
    let mut written = Vec::new();
    let mut seen: HashSet<RunNames> = HashSet::new();
    for request in requests {
        let seed = &request.seed;
        let Some(stored) = definitions.get(&seed.definition) else { continue };
        let Some(group) = groups.get(&seed.tenant) else { continue };
        if !seen.insert((seed.tenant.clone(), seed.id.clone())) {
            continue;
        }
        let image = decide::start(&stored.definition, transaction.now, seed.clone());
        keys.push(key(seed.key));
        group_ids.push(int32(*group));
        ids.push(seed.id.as_str());
        numbers.push(int32(seed.definition.0));
        n_open.push(int32(image.run().n_open));
        next_event.push(int(image.run().next_event));
        digests.push(request.input_digest.as_slice());
        written.push((seed.key, request, Written::new(image, stored, *group)));
    }
    let now = transaction.now.as_micros();
    let params: super::transaction::Params<'_> =
        &[&keys, &group_ids, &ids, &numbers, &n_open, &next_event, &digests, &now];
    let inserted = transaction.all(statements::INSERT_RUNS, params).await?;
    let inserted: HashSet<RunKey> =
        inserted.iter().map(|row| rows::run_key(row, 0)).collect::<Result<_, _>>()?;
    written.retain(|(key, ..)| inserted.contains(key));
    insert_inputs(transaction, written.iter().map(|(key, request, _)| (*key, *request))).await?;
    transaction.write_fresh(written.into_iter().map(|(.., written)| written).collect()).await?;
    Ok(inserted)
}

async fn insert_inputs(
    transaction: &Transaction,
    requests: impl Iterator<Item = (RunKey, &StartRequest)>,
) -> Result<(), StoreError> {
    let (mut keys, mut codecs, mut bytes): (Vec<Uuid>, Vec<&str>, Vec<&[u8]>) =
        (vec![], vec![], vec![]);
    for (run, request) in requests {
        keys.push(key(run));
        codecs.push(request.input.codec.as_ref());
        bytes.push(request.input.bytes.as_ref());
    }
    if keys.is_empty() {
        return Ok(());
    }
    transaction.run(statements::INSERT_INPUTS, &[&keys, &codecs, &bytes]).await
}

/// Runs that stand where requests could not be inserted.
async fn known_runs(
    transaction: &Transaction,
    requests: &[StartRequest],
    fresh: &HashSet<RunKey>,
) -> Result<HashMap<RunNames, StoredRun>, StoreError> {
    let met = || requests.iter().filter(|r| !fresh.contains(&r.seed.key)).map(|r| &r.seed);
    let tenants: Vec<&str> = met().map(|seed| seed.tenant.as_str()).collect();
    let ids: Vec<&str> = met().map(|seed| seed.id.as_str()).collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = transaction.all(statements::FIND_RUNS, &[&tenants, &ids]).await?;
    let runs = rows::read_all(&rows, rows::run)?;
    Ok(runs.into_iter().map(|run| ((run.row.tenant.clone(), run.row.id.clone()), run)).collect())
}

/// The id was used before: the same start again, or another one?
async fn meet(
    transaction: &Transaction,
    request: &StartRequest,
    stored: &StoredDefinition,
    known: &HashMap<RunNames, StoredRun>,
) -> Result<StartAnswer, StoreError> {
    let names = (request.seed.tenant.clone(), request.seed.id.clone());
    let gone = || super::error::conflict("a run went away");
    let run = known.get(&names).ok_or_else(gone)?;
    let definition = transaction.definition(run.row.definition).await?;
    let known = KnownRun {
        key: run.row.key,
        workflow: &definition.definition.workflow,
        input_digest: &run.input_digest,
    };
    request.meets(&stored.definition.workflow, known)
}

fn unknown_definition(request: &StartRequest) -> StoreError {
    let message = format!("definition {} is not stored", request.seed.definition.0);
    StoreError::Refused { code: Code::UnknownWorkflow, message }
}
