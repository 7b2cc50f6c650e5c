//! Starting runs: inserting those whose ids are free, and comparing the others with what is there.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use stepwell_core::decide::{self, RunSeed};
use stepwell_core::id::{DefinitionId, Queue, RunId, RunKey, Tenant};
use stepwell_core::queue::FairError;
use stepwell_core::run::RunRow;
use stepwell_core::time::Timestamp;
use stepwell_core::workflow::Definition;

use super::super::queue::enqueue_unlimited::UnlimitedTenants;
use super::super::queue::hand_over::IdleWorker;
use super::super::queue::room_for_start::RoomForStarts;
use super::super::rows::read_all;
use super::super::rows::run::{self, FreshRun, FreshRunArrays, RunNames, StoredRun};
use super::super::session::{Conflict, Learned, PgResult};
use super::super::sql::{self, Sql};
use super::RunSet;
use super::write::RunUpdate;
use crate::ports::{
    ClaimRequest, ExistingRun, Payload, StartAnswer, StartRequest, StoredDefinition,
};

const INSERT_NEW_RUNS: Sql = sql::RUN.named("insert_new_runs");
const INSERT_RUNS: Sql = sql::RUN.named("insert_runs");
pub(crate) const FIND_RUNS: Sql = sql::RUN.named("find_runs");

/// The definitions that starts name, as far as they are stored.
pub(crate) type Definitions = BTreeMap<DefinitionId, Arc<StoredDefinition>>;

/// The definition of a start, if the one with its number is the one that it means.
pub(crate) fn definition_of<'d>(
    definitions: &'d Definitions,
    request: &StartRequest,
) -> Option<&'d Arc<StoredDefinition>> {
    let stored = definitions.get(&request.seed.definition)?;
    (stored.mark == request.mark).then_some(stored)
}

/// A start with its tenant's number and its definition.
type Start<'r> = (&'r StartRequest, u32, &'r Arc<StoredDefinition>);

/// Starts that may become runs: the first of each id, if its definition is known.
pub(crate) struct NewRuns<'r> {
    starts: Vec<Start<'r>>,
    tenant_nos: &'r HashMap<Tenant, u32>,
}

/// Runs that were inserted.
pub(crate) struct InsertedRuns {
    pub(crate) keys: HashSet<RunKey>,
    /// Their tenants, if none of them has a limit.
    pub(crate) tenants: Option<UnlimitedTenants>,
    /// Starts that are refused, since their tenant has no position left in a queue.
    pub(crate) without_room: HashSet<RunNames>,
    /// What the next transaction may guess by.
    pub(crate) learned: Learned,
}

/// What is the same for all runs that start from one definition and may take as long.
struct FreshCounters {
    n_open: u32,
    next_event: u64,
    /// How long they may take.
    deadline: Option<Duration>,
}

impl FreshCounters {
    fn of(definition: &Definition, seed: &RunSeed) -> Self {
        let image = decide::start(definition, Timestamp::EPOCH, seed.clone());
        let RunRow { n_open, next_event, deadline, .. } = *image.run();
        let deadline = deadline.map(|deadline| deadline.since(Timestamp::EPOCH));
        Self { n_open, next_event, deadline }
    }
}

impl<'r> NewRuns<'r> {
    pub(crate) fn of(
        requests: &'r [StartRequest],
        tenant_nos: &'r HashMap<Tenant, u32>,
        definitions: &'r Definitions,
    ) -> Self {
        let mut seen: HashSet<(&Tenant, &RunId)> = HashSet::new();
        let start = |request: &'r StartRequest| {
            let stored = definition_of(definitions, request)?;
            let tenant_no = tenant_nos.get(&request.seed.tenant)?;
            let is_first = seen.insert((&request.seed.tenant, &request.seed.id));
            is_first.then_some((request, *tenant_no, stored))
        };
        Self { starts: requests.iter().filter_map(start).collect(), tenant_nos }
    }

    /// Whether this tenant has a number: there are only so many.
    pub(crate) fn has_tenant(&self, tenant: &Tenant) -> bool {
        self.tenant_nos.contains_key(tenant)
    }

    /// The runs that were inserted, with everything that belongs to them.
    pub(crate) fn updates(
        &self,
        now: Timestamp,
        inserted: &HashSet<RunKey>,
    ) -> (Vec<RunUpdate>, Vec<(RunKey, &'r Payload)>) {
        let new = self.starts.iter().filter(|(request, ..)| inserted.contains(&request.seed.key));
        let start = |(request, tenant_no, stored): &Start<'r>| {
            let image = decide::start(&stored.definition, now, request.seed.clone());
            let request: &'r StartRequest = request;
            (RunUpdate::new(image, stored, *tenant_no), (request.seed.key, &request.input))
        };
        new.map(start).unzip()
    }

    /// The tenants of the starts, and the queues of their first tasks.
    fn root_queues(&self) -> Vec<(u32, BTreeSet<Queue>)> {
        let queues = |(_, no, stored): &Start<'_>| (*no, stored.definition.root_queues());
        self.starts.iter().map(queues).collect()
    }

    /// Those that have room, and the names of the others.
    fn with_room(&self, room: &RoomForStarts) -> (Cow<'_, [Start<'r>]>, HashSet<RunNames>) {
        if room.refused.is_empty() {
            return (Cow::Borrowed(&self.starts), HashSet::new());
        }
        let starts = self.starts.iter().enumerate();
        let (refused, new): (Vec<_>, Vec<_>) =
            starts.partition(|(ix, _)| room.refused.contains(ix));
        let names = |(_, (request, ..)): (usize, &Start<'r>)| names_of(request);
        let new = new.into_iter().map(|(_, start)| *start).collect();
        (Cow::Owned(new), refused.into_iter().map(names).collect())
    }
}

fn arrays_of<'r>(new: &[Start<'r>], now: Timestamp) -> FreshRunArrays<'r> {
    let mut counters: BTreeMap<(DefinitionId, Option<Duration>), FreshCounters> = BTreeMap::new();
    FreshRunArrays::of(new.iter().map(|(request, tenant_no, stored)| {
        let request: &'r StartRequest = request;
        let seed = &request.seed;
        let fresh = || FreshCounters::of(&stored.definition, seed);
        let counters = counters.entry((seed.definition, seed.deadline)).or_insert_with(fresh);
        FreshRun {
            key: seed.key,
            tenant_no: *tenant_no,
            id: seed.id.as_str(),
            definition: seed.definition,
            n_open: counters.n_open,
            next_event: counters.next_event,
            deadline: counters.deadline.map(|span| now.after(span)),
            input_digest: &request.input_digest,
        }
    }))
}

fn names_of(request: &StartRequest) -> RunNames {
    (request.seed.tenant.clone(), request.seed.id.clone())
}

impl RunSet<'_> {
    /// Opens the transaction, inserts runs whose ids are free, and looks at their tenants.
    pub(crate) async fn open_and_insert<'o>(
        &self,
        new: &NewRuns<'_>,
        offer: Option<&'o ClaimRequest>,
    ) -> PgResult<(InsertedRuns, Option<IdleWorker<'o>>)> {
        // The first write goes out when it is known that there is a transaction to undo it.
        self.ids.open_serving().await?;
        let mut room = RoomForStarts::default();
        if !self.queues.guesses.is_none_full() {
            room = self.queues.look_for_room(&new.root_queues()).await?;
        }
        let (fresh, without_room) = new.with_room(&room);
        let arrays = arrays_of(&fresh, self.session.now());
        let tenants: BTreeSet<u32> = new.starts.iter().map(|(_, no, _)| *no).collect();
        let (idle, inserted, unlimited) = tokio::join!(
            biased;
            self.queues.find_idle_worker(offer),
            self.insert(&fresh, &arrays),
            self.queues.share_unlimited_tenants(&tenants),
        );
        let (keys, ids_repeat) = inserted?;
        let learned = Learned { ids_repeat, not_full: room.not_full, ..Learned::default() };
        Ok((InsertedRuns { keys, tenants: unlimited?, without_room, learned }, idle?))
    }

    /// Inserts runs and gives the keys of those whose ids were free. As long as all are, the
    /// database need not look for each first.
    async fn insert(
        &self,
        new: &[Start<'_>],
        arrays: &FreshRunArrays<'_>,
    ) -> PgResult<(HashSet<RunKey>, Option<bool>)> {
        let now = self.session.now().as_micros();
        let params = arrays.params(&now);
        if self.queues.guesses.ids_repeat() {
            let rows = self.session.all(INSERT_RUNS, &params).await?;
            let keys = rows.iter().map(run::read_key).collect::<Result<_, _>>()?;
            return Ok((keys, Some(rows.len() < new.len())));
        }
        if self.session.insert(INSERT_NEW_RUNS, &params).await? {
            return Ok((new.iter().map(|(request, ..)| request.seed.key).collect(), None));
        }
        Err(Conflict::RunIdTaken.into())
    }

    /// The runs that stand where requests could not be inserted.
    pub(crate) async fn find_existing(
        &self,
        requests: &[StartRequest],
        inserted: &HashSet<RunKey>,
    ) -> PgResult<ExistingRuns> {
        let met = || requests.iter().filter(|r| !inserted.contains(&r.seed.key)).map(|r| &r.seed);
        let tenants: Vec<&str> = met().map(|seed| seed.tenant.as_str()).collect();
        let ids: Vec<&str> = met().map(|seed| seed.id.as_str()).collect();
        if ids.is_empty() {
            return Ok(ExistingRuns::default());
        }
        let rows = self.session.all(FIND_RUNS, &[&tenants, &ids]).await?;
        let runs = read_all(&rows, run::read)?.into_iter();
        Ok(runs.map(|run| ((run.row.tenant.clone(), run.row.id.clone()), run)).collect())
    }

    /// The id was used before: the same start again, or another one?
    pub(crate) async fn compare_with_existing(
        &self,
        request: &StartRequest,
        stored: &StoredDefinition,
        existing: &ExistingRuns,
        without_room: &HashSet<RunNames>,
    ) -> PgResult<StartAnswer> {
        let names = names_of(request);
        let Some(run) = existing.get(&names) else {
            if without_room.contains(&names) {
                return Ok(StartAnswer::Refused(FairError::OutOfPositions.into()));
            }
            return Err(Conflict::RunGone.into());
        };
        let definition = self.ids.plan_of(&run.row).await?;
        let existing = ExistingRun {
            key: run.row.key,
            workflow: &definition.definition.workflow,
            input_digest: &run.input_digest,
        };
        let answer = request.compare_with(&stored.definition.workflow, existing);
        Ok(answer.unwrap_or_else(StartAnswer::Refused))
    }
}

/// Runs by the names their callers know them by.
pub(crate) type ExistingRuns = HashMap<RunNames, StoredRun>;
