//! Tenants, and how many of their tasks are ready and running.

use std::collections::btree_map::{BTreeMap, Entry};
use std::collections::{BTreeSet, HashMap};

use stepwell_core::id::Tenant;
use stepwell_core::queue::{TenantNo, tenant_no};

use crate::outbound::sqlite::file::{File, corrupt};
use crate::outbound::sqlite::rows::tenant::{self, TenantRow};
use crate::ports::StoreError;

/// A tenant's row, with what was found out about it.
pub(crate) struct CachedTenant {
    pub(crate) row: TenantRow,
    /// Whether tasks of it are throttled; `None` if that was not looked up yet.
    pub(crate) has_throttled: Option<bool>,
}

/// Tenants by number.
#[derive(Default)]
pub(crate) struct CachedTenants {
    by_no: BTreeMap<TenantNo, CachedTenant>,
    numbers: HashMap<Tenant, TenantNo>,
    changed: BTreeSet<TenantNo>,
}

impl CachedTenants {
    pub(crate) fn len(&self) -> usize {
        self.by_no.len()
    }

    /// The number of a tenant, which is stored when it is first seen.
    pub(crate) fn number(
        &mut self,
        file: File<'_, '_>,
        name: &Tenant,
    ) -> Result<TenantNo, StoreError> {
        if let Some(known) = self.numbers.get(name) {
            return Ok(*known);
        }
        let tenant_no = if let Some(found) = tenant::find(file, name)? {
            found.tenant_no
        } else {
            let tenant_no = tenant_no(tenant::n_tenants(file)? as usize)?;
            tenant::insert(file, tenant_no, name)?;
            tenant_no
        };
        self.numbers.insert(name.clone(), tenant_no);
        Ok(tenant_no)
    }

    /// A tenant, which is read if it is not there yet.
    pub(crate) fn load(
        &mut self,
        file: File<'_, '_>,
        tenant_no: TenantNo,
    ) -> Result<&mut CachedTenant, StoreError> {
        match self.by_no.entry(tenant_no) {
            Entry::Occupied(tenant) => Ok(tenant.into_mut()),
            Entry::Vacant(room) => {
                let row = tenant::load(file, tenant_no)?;
                let row =
                    row.ok_or_else(|| corrupt(format!("tenant {} is missing", tenant_no.0)))?;
                Ok(room.insert(CachedTenant { row, has_throttled: None }))
            }
        }
    }

    /// Counts tasks of a tenant that became ready or running, or no longer are.
    pub(crate) fn count_admitted(
        &mut self,
        file: File<'_, '_>,
        tenant_no: TenantNo,
        ready: i32,
        running: i32,
    ) -> Result<(), StoreError> {
        let row = &mut self.load(file, tenant_no)?.row;
        let n_ready = row.n_ready.checked_add_signed(ready);
        let n_running = row.n_running.checked_add_signed(running);
        let counts = n_ready.zip(n_running);
        let below = || corrupt(format!("the tasks of tenant {} count below zero", tenant_no.0));
        (row.n_ready, row.n_running) = counts.ok_or_else(below)?;
        self.changed.insert(tenant_no);
        Ok(())
    }

    /// Writes the counts that changed.
    pub(crate) fn write(&mut self, file: File<'_, '_>) -> Result<(), StoreError> {
        for tenant_no in std::mem::take(&mut self.changed) {
            if let Some(tenant) = self.by_no.get(&tenant_no) {
                tenant::set_admitted(file, &tenant.row)?;
            }
        }
        Ok(())
    }
}
