//! Tenants.

use rusqlite::{Row, params};
use stepwell_core::id::Tenant;
use stepwell_core::queue::TenantNo;

use super::cells::{Cells, ONLY, Rows};
use crate::outbound::sql::{Column, Table, named};
use crate::outbound::sqlite::file::File;
use crate::ports::TenantSettings;

const SQL: &str = include_str!("../sql/tenant.sql");
const COUNT_TENANTS: &str = named(SQL, "count_tenants");
const FIND_TENANT: &str = named(SQL, "find_tenant");
const INSERT_TENANT: &str = named(SQL, "insert_tenant");
const READ_TENANT: &str = named(SQL, "read_tenant");
const READ_TENANTS: &str = named(SQL, "read_tenants");
const SET_ADMITTED: &str = named(SQL, "set_admitted");
const SET_TENANT: &str = named(SQL, "set_tenant");
const TENANTS_TO_SETTLE: &str = named(SQL, "tenants_to_settle");

pub(super) const TENANT: Table = Table {
    name: "tenant",
    columns: &[
        Column::key("tenant_no", "integer"),
        Column::kept("name", "text"),
        Column::kept("has_own", "integer"),
        Column::kept("weight", "integer"),
        Column::kept("tasks_max", "integer"),
        Column::changed("n_ready", "integer"),
        Column::changed("n_running", "integer"),
    ],
};

const fn at(column: &str) -> usize {
    TENANT.index(column)
}

/// A tenant's row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TenantRow {
    pub(crate) tenant_no: TenantNo,
    /// Its own settings; without, the defaults hold.
    pub(crate) own: Option<TenantSettings>,
    pub(crate) n_ready: u32,
    pub(crate) n_running: u32,
}

impl TenantRow {
    /// How many of its tasks are ready or running.
    pub(crate) fn n_admitted(&self) -> u64 {
        u64::from(self.n_ready) + u64::from(self.n_running)
    }
}

fn read(row: &Row<'_>) -> Rows<TenantRow> {
    let row = Cells::of(row);
    let has_own: bool = row.get(const { at("has_own") })?;
    let weight = row.count(const { at("weight") })?;
    let settings = TenantSettings { weight, tasks_max: row.get(const { at("tasks_max") })? };
    Ok(TenantRow {
        tenant_no: TenantNo(row.count(const { at("tenant_no") })?),
        own: has_own.then_some(settings),
        n_ready: row.count(const { at("n_ready") })?,
        n_running: row.count(const { at("n_running") })?,
    })
}

pub(crate) fn insert(file: File<'_, '_>, tenant_no: TenantNo, name: &Tenant) -> Rows<()> {
    file.run(INSERT_TENANT, params![tenant_no.0, name.as_str()]).map(drop)
}

/// How many tenants there are.
pub(crate) fn n_tenants(file: File<'_, '_>) -> Rows<u32> {
    Ok(file.first(COUNT_TENANTS, [], |row| Cells::of(row).count(ONLY))?.unwrap_or(0))
}

pub(crate) fn find(file: File<'_, '_>, name: &Tenant) -> Rows<Option<TenantRow>> {
    file.first(FIND_TENANT, [name.as_str()], read)
}

pub(crate) fn load(file: File<'_, '_>, tenant_no: TenantNo) -> Rows<Option<TenantRow>> {
    file.first(READ_TENANT, [tenant_no.0], read)
}

/// All tenants by name, in the order of their numbers.
pub(crate) fn all(file: File<'_, '_>) -> Rows<Vec<(Tenant, TenantRow)>> {
    let name = |row: &Row<'_>| Cells::of(row).name(const { at("name") });
    file.all(READ_TENANTS, [], |row| Ok((name(row)?, read(row)?)))
}

/// The next tenants without settings of their own.
pub(crate) fn to_settle(file: File<'_, '_>, from: TenantNo, n_max: usize) -> Rows<Vec<TenantNo>> {
    let n_max = i64::try_from(n_max).unwrap_or(i64::MAX);
    let read = |row: &Row<'_>| Cells::of(row).count(ONLY).map(TenantNo);
    file.all(TENANTS_TO_SETTLE, params![from.0, n_max], read)
}

/// Gives a tenant settings of its own.
pub(crate) fn set_own(file: File<'_, '_>, tenant_no: TenantNo, own: TenantSettings) -> Rows<()> {
    file.run(SET_TENANT, params![tenant_no.0, own.weight, own.tasks_max]).map(drop)
}

/// Writes how many tasks of a tenant are ready and running.
pub(crate) fn set_admitted(file: File<'_, '_>, tenant: &TenantRow) -> Rows<()> {
    file.run(SET_ADMITTED, [tenant.tenant_no.0, tenant.n_ready, tenant.n_running]).map(drop)
}
