//! What a process remembers of rows that do not change, so that hot statements need not join them.
//!
//! Nothing here decides anything: what matters is checked in the transaction that acts on it, and
//! what is not remembered is read.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;

use stepwell_core::id::{DefinitionId, RunKey, Tenant, WorkerId};
use tokio_postgres::Row;

use super::rows::{count, int32, name};
use super::statements;
use super::transaction::Transaction;
use crate::ports::{Payload, StoreError};

/// Most entries of each kind. When there are more, all are forgotten.
const ENTRIES_MAX: usize = 100_000;

/// Inputs are remembered up to this size, and up to so many.
const INPUT_BYTES_MAX: usize = 1_024;
const INPUTS_MAX: usize = 10_000;

/// What is remembered.
#[derive(Default)]
pub(super) struct Known {
    groups: HashMap<Tenant, u32>,
    tenants: HashMap<u32, Tenant>,
    workers: HashMap<i64, WorkerId>,
    numbers: HashMap<WorkerId, i64>,
    runs: HashMap<RunKey, RunFacts>,
    inputs: HashMap<RunKey, Payload>,
}

/// What is known of a run before it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RunFacts {
    pub(super) definition: DefinitionId,
    pub(super) group: u32,
}

fn remember<K: Eq + Hash, V>(known: &mut HashMap<K, V>, fresh: impl IntoIterator<Item = (K, V)>) {
    if known.len() >= ENTRIES_MAX {
        known.clear();
    }
    known.extend(fresh);
}

impl Known {
    /// The groups of tenants, if all of them are known.
    pub(super) fn groups(&self, tenants: &[Tenant]) -> Option<HashMap<Tenant, u32>> {
        tenants.iter().map(|tenant| Some((tenant.clone(), *self.groups.get(tenant)?))).collect()
    }

    pub(super) fn remember_groups(&mut self, groups: &HashMap<Tenant, u32>) {
        remember(&mut self.groups, groups.iter().map(|(tenant, group)| (tenant.clone(), *group)));
    }

    /// Tenants are numbered otherwise than it was thought.
    pub(super) fn forget_tenants(&mut self) {
        self.groups.clear();
        self.tenants.clear();
    }

    /// The facts of runs, if all of them are known.
    pub(super) fn runs<'k>(
        &self,
        runs: impl IntoIterator<Item = &'k RunKey>,
    ) -> Option<BTreeMap<RunKey, RunFacts>> {
        runs.into_iter().map(|run| Some((*run, *self.runs.get(run)?))).collect()
    }

    pub(super) fn remember_runs(&mut self, runs: impl IntoIterator<Item = (RunKey, RunFacts)>) {
        remember(&mut self.runs, runs);
    }

    /// The inputs of runs, if all of them are known.
    pub(super) fn inputs<'k>(
        &self,
        runs: impl IntoIterator<Item = &'k RunKey>,
    ) -> Option<HashMap<RunKey, Payload>> {
        runs.into_iter().map(|run| Some((*run, self.inputs.get(run)?.clone()))).collect()
    }

    /// An input never changes; those that are large are read again instead.
    pub(super) fn remember_inputs(&mut self, inputs: &HashMap<RunKey, Payload>) {
        let small = inputs.iter().filter(|(_, input)| input.bytes.len() <= INPUT_BYTES_MAX);
        if self.inputs.len() >= INPUTS_MAX {
            self.inputs.clear();
        }
        self.inputs.extend(small.map(|(run, input)| (*run, input.clone())));
    }

    /// Runs are otherwise than it was thought.
    pub(super) fn forget_runs(&mut self) {
        self.runs.clear();
        self.inputs.clear();
    }
}

impl Transaction {
    /// The names of tenants by group.
    pub(super) async fn tenant_names(
        &self,
        groups: &BTreeSet<u32>,
    ) -> Result<HashMap<u32, Tenant>, StoreError> {
        let find = |group: &u32| Some((*group, self.known().tenants.get(group).cloned()?));
        let mut names: HashMap<u32, Tenant> = groups.iter().filter_map(find).collect();
        if names.len() < groups.len() {
            names = self.read_tenant_names(groups).await?;
            remember(&mut self.known().tenants, names.clone());
        }
        Ok(names)
    }

    /// As [`tenant_names`](Self::tenant_names), but from the database.
    pub(super) async fn read_tenant_names(
        &self,
        groups: &BTreeSet<u32>,
    ) -> Result<HashMap<u32, Tenant>, StoreError> {
        let groups: Vec<i32> = groups.iter().map(|group| int32(*group)).collect();
        let rows = self.all(statements::READ_TENANTS, &[&groups]).await?;
        rows.iter().map(|row| Ok((count(row, 0)?, name(row, 1)?))).collect()
    }

    /// The ids of workers by number.
    pub(super) async fn worker_names(
        &self,
        numbers: &BTreeSet<i64>,
    ) -> Result<HashMap<i64, WorkerId>, StoreError> {
        let find = |no: &i64| Some((*no, self.known().workers.get(no).cloned()?));
        let names: HashMap<i64, WorkerId> = numbers.iter().filter_map(find).collect();
        if names.len() == numbers.len() {
            return Ok(names);
        }
        let numbers: Vec<i64> = numbers.iter().copied().collect();
        let rows = self.all(statements::READ_WORKER_NAMES, &[&numbers]).await?;
        self.remember_workers(&rows)
    }

    /// The numbers of workers by id.
    pub(super) async fn worker_numbers(
        &self,
        names: &BTreeSet<&WorkerId>,
    ) -> Result<HashMap<WorkerId, i64>, StoreError> {
        let find = |id: &&WorkerId| Some(((*id).clone(), *self.known().numbers.get(*id)?));
        let numbers: HashMap<WorkerId, i64> = names.iter().filter_map(find).collect();
        if numbers.len() == names.len() {
            return Ok(numbers);
        }
        let names: Vec<&str> = names.iter().map(|id| id.as_str()).collect();
        let rows = self.all(statements::READ_WORKER_NUMBERS, &[&names]).await?;
        Ok(self.remember_workers(&rows)?.into_iter().map(|(no, id)| (id, no)).collect())
    }

    fn remember_workers(&self, rows: &[Row]) -> Result<HashMap<i64, WorkerId>, StoreError> {
        let names: HashMap<i64, WorkerId> = rows
            .iter()
            .map(|row| Ok((row.try_get(0)?, name(row, 1)?)))
            .collect::<Result<_, StoreError>>()?;
        let mut known = self.known();
        remember(&mut known.workers, names.clone());
        remember(&mut known.numbers, names.iter().map(|(no, id)| (id.clone(), *no)));
        Ok(names)
    }
}
