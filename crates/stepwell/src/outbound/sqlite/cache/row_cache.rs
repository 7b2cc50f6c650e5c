//! Everything that the writing thread remembers.
//!
//! Rows are changed here while a call works and are written once, when it ends. What was learned
//! holds as long as nobody else commits to the file, which `pragma data_version` tells at the
//! begin of every transaction. Whatever goes wrong, all of it is thrown away.

use stepwell_core::id::{Node, RunKey};
use stepwell_core::queue::TenantNo;

use super::cached_queue::CachedQueues;
use super::cached_run::CachedRuns;
use super::cached_tenant::CachedTenants;
use super::worker_numbers::WorkerNumbers;
use crate::outbound::sqlite::file::File;
use crate::outbound::sqlite::rows::store::{self, Counters};
use crate::ports::{StoreError, TenantSettings};

/// With more than this many rows of a kind, all is forgotten: memory is finite.
const RUNS_MAX: usize = 16_384;
const TASKS_MAX: usize = 131_072;
const TENANTS_MAX: usize = 65_536;

/// Tasks are counted once in so many transactions.
const TRIMS_PER_COUNT: u32 = 16;

/// What is known of the file, and what is still to be written.
#[derive(Default)]
pub(crate) struct RowCache {
    /// The version of the file that this holds for.
    version: Option<i64>,
    counters: Option<Counters>,
    pub(crate) tenants: CachedTenants,
    pub(crate) queues: CachedQueues,
    pub(crate) workers: WorkerNumbers,
    pub(crate) runs: CachedRuns,
    n_trims: u32,
}

impl RowCache {
    /// At the begin of a transaction: forgets everything if anybody else has written.
    pub(crate) fn renew(&mut self, file: File<'_, '_>) -> Result<(), StoreError> {
        let version = store::data_version(file)?;
        if self.version != version || self.counters.is_none() {
            let counters = Some(store::counters(file)?);
            *self = Self { version, counters, ..Self::default() };
        }
        Ok(())
    }

    /// Forgets all but the counters as they were before the call that failed.
    pub(crate) fn fall_back(&mut self, counters: Option<Counters>) {
        *self = Self { version: self.version, counters, ..Self::default() };
    }

    /// The counters, read at the begin of the transaction.
    pub(crate) fn counters(&mut self) -> &mut Counters {
        self.counters.as_mut().expect("a transaction begins with reading them")
    }

    pub(crate) fn counters_now(&self) -> Option<Counters> {
        self.counters
    }

    /// The next number in the order of arrival.
    pub(crate) fn next_number(&mut self) -> u64 {
        let counters = self.counters();
        counters.last_number += 1;
        counters.last_number
    }

    /// The settings that hold for a tenant.
    pub(crate) fn settings(
        &mut self,
        file: File<'_, '_>,
        tenant_no: TenantNo,
    ) -> Result<TenantSettings, StoreError> {
        let defaults = self.counters().defaults;
        Ok(TenantSettings::in_force(self.tenants.load(file, tenant_no)?.row.own, defaults))
    }

    /// How many more tasks of a tenant may be ready or running; `None` without a limit.
    pub(crate) fn room_left(
        &mut self,
        file: File<'_, '_>,
        tenant_no: TenantNo,
    ) -> Result<Option<u64>, StoreError> {
        let settings = self.settings(file, tenant_no)?;
        Ok(settings.room_left(self.tenants.load(file, tenant_no)?.row.n_admitted()))
    }

    /// Reads all open tasks of a run and names them.
    pub(crate) fn load_open(
        &mut self,
        file: File<'_, '_>,
        run: RunKey,
    ) -> Result<Vec<Node>, StoreError> {
        self.write_rows(file)?;
        self.runs.load_open(file, run)
    }

    /// Writes runs and tasks that changed, for statements that look at all of them.
    pub(crate) fn write_rows(&mut self, file: File<'_, '_>) -> Result<(), StoreError> {
        self.runs.write(file, &mut self.workers)
    }

    /// Writes everything that a call has changed.
    pub(crate) fn write(&mut self, file: File<'_, '_>) -> Result<(), StoreError> {
        self.write_rows(file)?;
        self.tenants.write(file)?;
        self.queues.write(file)
    }

    /// After a transaction: keeps memory in bounds. Tasks are counted now and then only.
    pub(crate) fn trim(&mut self) {
        self.n_trims = self.n_trims.wrapping_add(1);
        let counts_tasks = self.n_trims.is_multiple_of(TRIMS_PER_COUNT);
        let is_large = self.runs.len() > RUNS_MAX
            || self.tenants.len() > TENANTS_MAX
            || (counts_tasks && self.runs.n_tasks() > TASKS_MAX);
        if is_large {
            *self = Self::default();
        }
    }
}
