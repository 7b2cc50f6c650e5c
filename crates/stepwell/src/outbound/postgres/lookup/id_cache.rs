//! Names and numbers of rows that do not change, so that hot statements need not join them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard};

use stepwell_core::id::{Mark, RunKey, Tenant, WorkerId};
use tokio_postgres::Row;

use super::super::rows::run::RunRef;
use super::super::rows::{int32, tenant, worker};
use super::super::session::{PgResult, Session};
use super::super::sql::{self, Sql};
use super::{Beliefs, PlanCache};
use crate::ports::Payload;

pub(crate) const READ_TENANTS: Sql = sql::TENANT.named("read_tenants");
const READ_WORKER_NAMES: Sql = sql::WORKER.named("read_worker_names");
const READ_WORKER_NUMBERS: Sql = sql::WORKER.named("read_worker_numbers");

/// Most entries of each kind. When there are more, all are forgotten.
const ENTRIES_MAX: usize = 100_000;

/// Inputs are remembered up to this size, and up to so many.
const INPUT_BYTES_MAX: usize = 1_024;
const INPUTS_MAX: usize = 10_000;

/// What is remembered.
#[derive(Default)]
pub(crate) struct IdCache(Mutex<Ids>);

#[derive(Default)]
struct Ids {
    tenant_nos: HashMap<Tenant, u32>,
    tenants: HashMap<u32, Tenant>,
    /// The greatest number of those tenants, and the mark that it was read with.
    last_tenant: Option<(u32, Mark)>,
    /// No number is ever given to two workers.
    workers: HashMap<i64, WorkerId>,
    worker_nos: HashMap<WorkerId, i64>,
    runs: HashMap<RunKey, RunRef>,
    inputs: HashMap<RunKey, Payload>,
}

fn remember<K: Eq + Hash, V>(known: &mut HashMap<K, V>, fresh: impl IntoIterator<Item = (K, V)>) {
    if known.len() >= ENTRIES_MAX {
        known.clear();
    }
    known.extend(fresh);
}

impl IdCache {
    /// The numbers of tenants, if all of them are known.
    pub(crate) fn cached_tenant_nos(&self, tenants: &[Tenant]) -> Option<HashMap<Tenant, u32>> {
        let ids = self.ids();
        tenants.iter().map(|tenant| Some((tenant.clone(), *ids.tenant_nos.get(tenant)?))).collect()
    }

    /// The last tenant that is remembered: there is none behind it, and who finds it in a database
    /// finds all before it there.
    pub(crate) fn last_tenant(&self) -> Option<(u32, Mark)> {
        self.ids().last_tenant
    }

    /// Forgets everything: another database answers.
    pub(crate) fn forget(&self) {
        *self.ids() = Ids::default();
    }

    /// What never changes of runs, if all of them are known.
    pub(crate) fn cached_runs<'k>(
        &self,
        runs: impl IntoIterator<Item = &'k RunKey>,
    ) -> Option<BTreeMap<RunKey, RunRef>> {
        let ids = self.ids();
        runs.into_iter().map(|run| Some((*run, *ids.runs.get(run)?))).collect()
    }

    pub(crate) fn remember_runs(&self, runs: impl IntoIterator<Item = (RunKey, RunRef)>) {
        remember(&mut self.ids().runs, runs);
    }

    /// The inputs of runs, if all of them are known.
    pub(crate) fn cached_inputs<'k>(
        &self,
        runs: impl IntoIterator<Item = &'k RunKey>,
    ) -> Option<HashMap<RunKey, Payload>> {
        let ids = self.ids();
        runs.into_iter().map(|run| Some((*run, ids.inputs.get(run)?.clone()))).collect()
    }

    /// An input never changes; those that are large are read again instead.
    pub(crate) fn remember_inputs(&self, inputs: &HashMap<RunKey, Payload>) {
        let small = inputs.iter().filter(|(_, input)| input.bytes.len() <= INPUT_BYTES_MAX);
        let mut ids = self.ids();
        if ids.inputs.len() >= INPUTS_MAX {
            ids.inputs.clear();
        }
        ids.inputs.extend(small.map(|(run, input)| (*run, input.clone())));
    }

    /// Runs are otherwise than it was thought.
    pub(crate) fn forget_runs(&self) {
        let mut ids = self.ids();
        ids.runs.clear();
        ids.inputs.clear();
    }

    fn ids(&self) -> MutexGuard<'_, Ids> {
        self.0.lock().expect("no holder of the lock panics")
    }
}

/// Names, numbers and plans, looked up within a transaction where this process does not know them.
#[derive(Clone, Copy)]
pub(crate) struct IdLookup<'s> {
    pub(crate) session: &'s Session,
    pub(crate) cache: &'s IdCache,
    pub(crate) plans: &'s PlanCache,
    pub(crate) beliefs: Beliefs,
}

impl IdLookup<'_> {
    /// The names of tenants by number.
    pub(crate) async fn tenant_names(
        &self,
        numbers: &BTreeSet<u32>,
    ) -> PgResult<HashMap<u32, Tenant>> {
        if self.is_trusted() {
            let find = |no: &u32| Some((*no, self.cache.ids().tenants.get(no).cloned()?));
            let names: HashMap<u32, Tenant> = numbers.iter().filter_map(find).collect();
            if names.len() == numbers.len() {
                return Ok(names);
            }
        }
        let numbers: Vec<i32> = numbers.iter().map(|no| int32(*no)).collect();
        let rows = self.session.all(READ_TENANTS, &[&numbers]).await?;
        let tenants = self.remember_tenants(&rows)?;
        Ok(tenants.into_iter().map(|(tenant, no)| (no, tenant)).collect())
    }

    /// Tenants that were read in this transaction, by name.
    pub(super) fn remember_tenants(&self, rows: &[Row]) -> PgResult<HashMap<Tenant, u32>> {
        let read: Vec<(u32, Tenant, Mark)> =
            rows.iter().map(tenant::read_marked).collect::<Result<_, _>>()?;
        let mut ids = self.cache.ids();
        // Asked with the lock held: whoever forgets all does so behind this.
        if self.is_trusted() {
            remember(&mut ids.tenants, read.iter().map(|(no, name, _)| (*no, name.clone())));
            remember(&mut ids.tenant_nos, read.iter().map(|(no, name, _)| (name.clone(), *no)));
            let tenants = read.iter().map(|(no, _, mark)| (*no, *mark)).chain(ids.last_tenant);
            ids.last_tenant = tenants.max_by_key(|(no, _)| *no);
        }
        Ok(read.into_iter().map(|(no, name, _)| (name, no)).collect())
    }

    /// The ids of workers by number.
    pub(crate) async fn worker_names(
        &self,
        numbers: &BTreeSet<i64>,
    ) -> PgResult<HashMap<i64, WorkerId>> {
        let find = |no: &i64| Some((*no, self.cache.ids().workers.get(no).cloned()?));
        let names: HashMap<i64, WorkerId> = numbers.iter().filter_map(find).collect();
        if names.len() == numbers.len() {
            return Ok(names);
        }
        let numbers: Vec<i64> = numbers.iter().copied().collect();
        let rows = self.session.all(READ_WORKER_NAMES, &[&numbers]).await?;
        self.remember_workers(&rows)
    }

    /// The numbers of workers by id.
    pub(crate) async fn worker_nos(
        &self,
        names: &BTreeSet<&WorkerId>,
    ) -> PgResult<HashMap<WorkerId, i64>> {
        let find = |id: &&WorkerId| Some(((*id).clone(), *self.cache.ids().worker_nos.get(*id)?));
        let numbers: HashMap<WorkerId, i64> = names.iter().filter_map(find).collect();
        if numbers.len() == names.len() {
            return Ok(numbers);
        }
        let names: Vec<&str> = names.iter().map(|id| id.as_str()).collect();
        let rows = self.session.all(READ_WORKER_NUMBERS, &[&names]).await?;
        Ok(self.remember_workers(&rows)?.into_iter().map(|(no, id)| (id, no)).collect())
    }

    fn remember_workers(&self, rows: &[Row]) -> PgResult<HashMap<i64, WorkerId>> {
        let names: HashMap<i64, WorkerId> =
            rows.iter().map(worker::read_name).collect::<Result<_, _>>()?;
        let mut ids = self.cache.ids();
        remember(&mut ids.workers, names.clone());
        remember(&mut ids.worker_nos, names.iter().map(|(no, id)| (id.clone(), *no)));
        Ok(names)
    }
}
