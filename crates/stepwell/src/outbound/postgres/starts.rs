use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use stepwell_core::code::Code;
use stepwell_core::decide::{self, RunSeed};
use stepwell_core::id::{DefinitionId, RunId, RunKey, Tenant};
use stepwell_core::time::Timestamp;
use stepwell_core::workflow::Definition;
use uuid::Uuid;

use super::error::{conflict, is_conflict};
use super::hand_over::Hands;
use super::join::Unlimited;
use super::rows::{self, StoredRun, count, int, int32, key, name};
use super::transaction::{Params, Transaction};
use super::write::{Payloads, Written};
use super::{PostgresStore, Role, statements};
use crate::ports::{
    ClaimRequest, KnownRun, Payload, StartAnswer, StartRequest, Started, Starts, StoreError,
    StoredDefinition,
};

#[async_trait]
impl Starts for PostgresStore {
    async fn start_and_claim(
        &self,
        requests: Vec<StartRequest>,
        offer: Option<ClaimRequest>,
    ) -> Result<Started, StoreError> {
        self.with_retries(|| self.start_once(&requests, offer.as_ref())).await
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
        if let Some(known) = self.shared.known().groups(tenants) {
            return Ok(known);
        }
        let transaction = self.begin().await?;
        let mut known = read_groups(&transaction, tenants).await?;
        // The lock on the table keeps others away meanwhile.
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
        self.shared.known().remember_groups(&known);
        Ok(known)
    }

    /// The definitions that starts name, as far as they are stored.
    async fn definitions_of(
        &self,
        requests: &[StartRequest],
    ) -> Result<BTreeMap<DefinitionId, Arc<StoredDefinition>>, StoreError> {
        let ids: BTreeSet<DefinitionId> = requests.iter().map(|r| r.seed.definition).collect();
        let mut definitions = self.shared.known_definitions(&ids);
        if definitions.len() < ids.len() {
            let transaction = self.begin().await?;
            for id in ids {
                let stored = transaction.find_definition(id).await?;
                definitions.extend(stored.map(|stored| (id, stored)));
            }
            self.commit_transaction(transaction).await?;
        }
        Ok(definitions)
    }

    async fn start_once(
        &self,
        requests: &[StartRequest],
        offer: Option<&ClaimRequest>,
    ) -> Result<Started, StoreError> {
        // In the order of their appearance, by which new ones are numbered.
        let mut seen = HashSet::new();
        let tenants = requests.iter().map(|r| &r.seed.tenant).filter(|tenant| seen.insert(*tenant));
        let tenants: Vec<Tenant> = tenants.cloned().collect();
        let groups = self.groups(&tenants).await?;
        let definitions = self.definitions_of(requests).await?;
        let mut transaction = self.take(Role::Work).await?;
        let fresh = Fresh::of(requests, &groups, &definitions);
        let answers = start(&mut transaction, requests, &fresh, &definitions, offer).await;
        if answers.as_ref().is_err_and(is_conflict) {
            self.shared.known().forget_tenants();
        }
        self.conclude(transaction, answers).await
    }
}

/// Inserts runs whose ids are free, and commits them with everything that belongs to them.
async fn start(
    transaction: &mut Transaction,
    requests: &[StartRequest],
    fresh: &Fresh<'_>,
    definitions: &BTreeMap<DefinitionId, Arc<StoredDefinition>>,
    offer: Option<&ClaimRequest>,
) -> Result<Started, StoreError> {
    let (inserted, hands) = fresh.insert(transaction, offer).await?;
    let known = known_runs(transaction, requests, &inserted.keys).await?;
    let mut answers = Vec::with_capacity(requests.len());
    for request in requests {
        answers.push(match definitions.get(&request.seed.definition) {
            None => StartAnswer::Refused(unknown_definition(request)),
            Some(_) if inserted.keys.contains(&request.seed.key) => StartAnswer::Started,
            Some(stored) => meet(transaction, request, stored, &known)
                .await
                .unwrap_or_else(StartAnswer::Refused),
        });
    }
    let (written, inputs) = fresh.written(transaction.now, &inserted.keys);
    let (tenants, payloads) = (inserted.tenants, Payloads::Inputs(&inputs));
    let handed_over =
        transaction.write_and_hand_over(written, tenants, payloads, true, hands).await?;
    Ok(Started { answers, handed_over })
}

async fn read_groups(
    transaction: &Transaction,
    tenants: &[Tenant],
) -> Result<HashMap<Tenant, u32>, StoreError> {
    let names: Vec<&str> = tenants.iter().map(Tenant::as_str).collect();
    let rows = transaction.all(statements::READ_TENANTS_BY_NAME, &[&names]).await?;
    rows.iter().map(|row| Ok((name(row, 1)?, count(row, 0)?))).collect()
}

/// A start with its tenant's group and its definition.
type Start<'r> = (&'r StartRequest, u32, &'r Arc<StoredDefinition>);

/// Starts that may become runs: the first of each id, if its definition is known.
struct Fresh<'r>(Vec<Start<'r>>);

/// Runs that were inserted, and their tenants, if none of them has a limit.
struct Inserted {
    keys: HashSet<RunKey>,
    tenants: Option<Unlimited>,
}

impl<'r> Fresh<'r> {
    fn of(
        requests: &'r [StartRequest],
        groups: &HashMap<Tenant, u32>,
        definitions: &'r BTreeMap<DefinitionId, Arc<StoredDefinition>>,
    ) -> Self {
        let mut seen: HashSet<(&Tenant, &RunId)> = HashSet::new();
        let fresh = |request: &'r StartRequest| {
            let stored = definitions.get(&request.seed.definition)?;
            let group = groups.get(&request.seed.tenant)?;
            let is_first = seen.insert((&request.seed.tenant, &request.seed.id));
            is_first.then_some((request, *group, stored))
        };
        Self(requests.iter().filter_map(fresh).collect())
    }

    /// Opens the transaction, inserts runs whose ids are free, and looks at their tenants.
    async fn insert<'o>(
        &self,
        transaction: &mut Transaction,
        offer: Option<&'o ClaimRequest>,
    ) -> Result<(Inserted, Option<Hands<'o>>), StoreError> {
        let seeds = || self.0.iter().map(|(request, ..)| &request.seed);
        let keys: Vec<Uuid> = seeds().map(|seed| key(seed.key)).collect();
        let group_ids: Vec<i32> = self.0.iter().map(|(_, group, _)| int32(*group)).collect();
        let ids: Vec<&str> = seeds().map(|seed| seed.id.as_str()).collect();
        let numbers: Vec<i32> = seeds().map(|seed| int32(seed.definition.0)).collect();
        let shapes = self.shapes();
        let shapes: Vec<&Shape> = seeds().filter_map(|seed| shapes.get(&seed.definition)).collect();
        let n_open: Vec<i32> = shapes.iter().map(|shape| int32(shape.n_open)).collect();
        let next_event: Vec<i64> = shapes.iter().map(|shape| int(shape.next_event)).collect();
        let digests: Vec<&[u8]> =
            self.0.iter().map(|(request, ..)| request.input_digest.as_slice()).collect();
        let groups: BTreeSet<u32> = self.0.iter().map(|(_, group, _)| *group).collect();
        // The first write goes out when it is known that there is a transaction to undo it.
        transaction.now = transaction.open_in_service().await?;
        let now = transaction.now.as_micros();
        let params: Params<'_> =
            &[&keys, &group_ids, &ids, &numbers, &n_open, &next_event, &digests, &now];
        let (named, hands, inserted, tenants) = tokio::join!(
            biased;
            transaction.read_tenant_names(&groups),
            transaction.idle(offer),
            self.insert_runs(transaction, params),
            transaction.look_if_simple(&groups),
        );
        let named = named?;
        let is_named = |(request, group, _): &Start<'_>| {
            named.get(group).is_some_and(|name| *name == request.seed.tenant)
        };
        if !self.0.iter().all(is_named) {
            // Another database answers than the one they were read from, or one restored.
            return Err(conflict("tenants have other groups by now"));
        }
        Ok((Inserted { keys: inserted?, tenants: tenants? }, hands?))
    }

    /// Inserts runs and gives the keys of those whose ids were free. As long as all are, the
    /// database need not look for each first.
    async fn insert_runs(
        &self,
        transaction: &Transaction,
        params: Params<'_>,
    ) -> Result<HashSet<RunKey>, StoreError> {
        let all = || self.0.iter().map(|(request, ..)| request.seed.key).collect::<HashSet<_>>();
        let repeat = transaction.ids_repeat();
        if repeat.load(Ordering::Acquire) {
            let rows = transaction.all(statements::INSERT_RUNS, params).await?;
            repeat.store(rows.len() < self.0.len(), Ordering::Release);
            return rows.iter().map(|row| rows::run_key(row, 0)).collect();
        }
        if transaction.insert(statements::INSERT_NEW_RUNS, params).await? {
            return Ok(all());
        }
        repeat.store(true, Ordering::Release);
        Err(conflict("an id is taken"))
    }

    /// What a run of each definition begins with.
    fn shapes(&self) -> BTreeMap<DefinitionId, Shape> {
        let mut shapes = BTreeMap::new();
        for (request, _, stored) in &self.0 {
            let shape = || Shape::of(&stored.definition, &request.seed);
            shapes.entry(request.seed.definition).or_insert_with(shape);
        }
        shapes
    }

    /// The runs that were inserted, with everything that belongs to them.
    fn written(
        &self,
        now: Timestamp,
        inserted: &HashSet<RunKey>,
    ) -> (Vec<Written>, Vec<(RunKey, &'r Payload)>) {
        let fresh = self.0.iter().filter(|(request, ..)| inserted.contains(&request.seed.key));
        let start = |(request, group, stored): &Start<'r>| {
            let image = decide::start(&stored.definition, now, request.seed.clone());
            let request: &'r StartRequest = request;
            (Written::new(image, stored, *group), (request.seed.key, &request.input))
        };
        fresh.map(start).unzip()
    }
}

/// What is the same for all runs that start from one definition.
#[derive(Clone, Default)]
struct Shape {
    n_open: u32,
    next_event: u64,
}

impl Shape {
    fn of(definition: &Definition, seed: &RunSeed) -> Self {
        let image = decide::start(definition, Timestamp::EPOCH, seed.clone());
        let (n_open, next_event) = (image.run().n_open, image.run().next_event);
        Self { n_open, next_event }
    }
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
