//! The file as a whole: its version and its one row of counters.

use rusqlite::params;
use stepwell_core::queue::TenantNo;
use stepwell_core::store_time::WrittenTime;

use super::cells::{Cells, ONLY, Rows, int};
use crate::outbound::sql::{Column, Table, named};
use crate::outbound::sqlite::file::{File, corrupt};
use crate::ports::TenantSettings;

const SQL: &str = include_str!("../sql/store.sql");
const DATA_VERSION: &str = named(SQL, "data_version");
const READ_COUNTERS: &str = named(SQL, "read_counters");
const DRAW_REVISION: &str = named(SQL, "draw_revision");
const READ_N_WAKES: &str = named(SQL, "read_n_wakes");
const READ_REVISION: &str = named(SQL, "read_revision");
const SET_COUNTERS: &str = named(SQL, "set_counters");
const SET_DEFAULTS: &str = named(SQL, "set_defaults");

pub(super) const COUNTER: Table = Table {
    name: "counter",
    columns: &[
        Column::changed("last_number", "integer"),
        Column::changed("n_claims", "integer"),
        Column::changed("last_epoch", "integer"),
        Column::changed("now", "integer"),
        Column::changed("clock_at", "integer"),
        Column::changed("n_wakes", "integer"),
        Column::kept("default_weight", "integer"),
        Column::kept("default_tasks_max", "integer"),
        Column::kept("settle_from", "integer"),
        Column::kept("revision", "integer"),
    ],
};

const fn at(column: &str) -> usize {
    COUNTER.index(column)
}

/// The one row of counters, with what holds for tenants without settings of their own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counters {
    pub(crate) last_number: u64,
    pub(crate) n_claims: u64,
    pub(crate) last_epoch: u64,
    /// The latest time of a transaction.
    pub(crate) time: WrittenTime,
    /// How many commits woke other processes.
    pub(crate) n_wakes: u64,
    pub(crate) defaults: TenantSettings,
    /// The first tenant to which their limit is still to be applied.
    pub(crate) settle_from: Option<TenantNo>,
    /// Drawn by chance whenever definitions or policies change.
    pub(crate) revision: i64,
}

pub(crate) fn counters(file: File<'_, '_>) -> Rows<Counters> {
    let found = file.first(READ_COUNTERS, [], |row| {
        let row = Cells::of(row);
        let weight = row.count(const { at("default_weight") })?;
        let tasks_max = row.get(const { at("default_tasks_max") })?;
        let settle_from: Option<u32> = row.get(const { at("settle_from") })?;
        Ok(Counters {
            last_number: row.unsigned(const { at("last_number") })?,
            n_claims: row.unsigned(const { at("n_claims") })?,
            last_epoch: row.unsigned(const { at("last_epoch") })?,
            time: WrittenTime {
                now: row.time(const { at("now") })?,
                clock_at: row.time(const { at("clock_at") })?,
            },
            n_wakes: row.unsigned(const { at("n_wakes") })?,
            defaults: TenantSettings { weight, tasks_max },
            settle_from: settle_from.map(TenantNo),
            revision: row.get(const { at("revision") })?,
        })
    })?;
    found.ok_or_else(|| corrupt("the counters are missing"))
}

/// Writes all but the defaults.
pub(crate) fn set_counters(file: File<'_, '_>, counters: &Counters) -> Rows<()> {
    let row = [
        int(counters.last_number),
        int(counters.n_claims),
        int(counters.last_epoch),
        counters.time.now.as_micros(),
        counters.time.clock_at.as_micros(),
        int(counters.n_wakes),
    ];
    file.run(SET_COUNTERS, row).map(drop)
}

/// Writes what holds for tenants without settings of their own, and from which tenant on it is
/// still to be applied.
pub(crate) fn set_defaults(file: File<'_, '_>, counters: &Counters) -> Rows<()> {
    let TenantSettings { weight, tasks_max } = counters.defaults;
    let settle_from = counters.settle_from.map(|no| no.0);
    file.run(SET_DEFAULTS, params![weight, tasks_max, settle_from]).map(drop)
}

/// Definitions or policies have changed: draws their next revision.
pub(crate) fn draw_revision(file: File<'_, '_>) -> Rows<i64> {
    let drawn = file.first(DRAW_REVISION, [], |row| Cells::of(row).get(ONLY))?;
    drawn.ok_or_else(|| corrupt("the counters are missing"))
}

/// The revision of definitions and policies.
pub(crate) fn revision(file: File<'_, '_>) -> Rows<Option<i64>> {
    file.first(READ_REVISION, [], |row| Cells::of(row).get(ONLY))
}

/// How many commits woke other processes.
pub(crate) fn n_wakes(file: File<'_, '_>) -> Rows<Option<i64>> {
    file.first(READ_N_WAKES, [], |row| Cells::of(row).get(ONLY))
}

/// Changes whenever another connection has committed.
pub(crate) fn data_version(file: File<'_, '_>) -> Rows<Option<i64>> {
    file.first(DATA_VERSION, [], |row| Cells::of(row).get(ONLY))
}
