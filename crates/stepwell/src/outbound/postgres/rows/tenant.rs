//! Rows of `tenant`, with the settings in force.

use stepwell_core::id::{Mark, Tenant};
use stepwell_core::queue::TenantNo;
use tokio_postgres::Row;

use super::Read;
use super::cells::{Cells, only, only_unsigned, selected};
use crate::ports::{TenantSettings, TenantView};

/// What is read of a tenant `t` where `d` is the default.
pub(super) const SETTINGS: &str =
    "t.tenant_no, t.name, t.mark, t.has_own, t.weight, t.tasks_max, d.weight, d.tasks_max";

selected! {
    /// The columns of [`SETTINGS`].
    Col { TenantNo, Name, Mark, HasOwn, Weight, TasksMax, DefaultWeight, DefaultTasksMax, }
}

selected! {
    /// How many tasks of a tenant are where, read with it.
    Joined { Ready, Running, Throttled, Parked, }
}

/// A tenant's number and name.
pub(crate) fn read_name(row: &Row) -> Read<(u32, Tenant)> {
    Ok((read_no(row)?, Cells::of(row).name(Col::Name)?))
}

/// A tenant's number, name and mark.
pub(crate) fn read_marked(row: &Row) -> Read<(u32, Tenant, Mark)> {
    let (no, name) = read_name(row)?;
    Ok((no, name, Mark(Cells::of(row).get(Col::Mark)?)))
}

/// A tenant's number, which a row begins with.
pub(crate) fn read_no(row: &Row) -> Read<u32> {
    Cells::of(row).count(Col::TenantNo)
}

/// How many tenants there are.
pub(crate) fn read_count(row: &Row) -> Read<usize> {
    Ok(usize::try_from(only_unsigned(row)?).unwrap_or(usize::MAX))
}

/// A tenant's number as statements take it.
pub(crate) fn read_int(row: &Row) -> Read<i32> {
    only(row)
}

/// A tenant's number and settings.
pub(crate) fn read_settings(row: &Row) -> Read<(u32, TenantSettings)> {
    let defaults = settings(Cells::of(row), Col::DefaultWeight, Col::DefaultTasksMax)?;
    Ok((read_no(row)?, TenantSettings::in_force(read_own(row)?, defaults)))
}

/// A tenant's own settings.
pub(crate) fn read_own(row: &Row) -> Read<Option<TenantSettings>> {
    let cells = Cells::of(row);
    let own = settings(cells, Col::Weight, Col::TasksMax)?;
    Ok(cells.get::<bool>(Col::HasOwn)?.then_some(own))
}

fn settings(cells: Cells<'_>, weight: Col, tasks_max: Col) -> Read<TenantSettings> {
    let tasks_max: Option<i32> = cells.get(tasks_max)?;
    let tasks_max = tasks_max.map(i32::unsigned_abs);
    Ok(TenantSettings { weight: cells.count(weight)?, tasks_max })
}

/// What holds for tenants without settings of their own.
#[derive(Clone, Copy)]
pub(crate) struct DefaultTenant {
    pub(crate) settings: TenantSettings,
    /// The first tenant to which the limit is still to be applied.
    pub(crate) settle_from: Option<i32>,
}

selected! { Default { Weight, TasksMax, SettleFrom, } }

pub(crate) fn read_default(row: &Row) -> Read<DefaultTenant> {
    let cells = Cells::of(row);
    let tasks_max: Option<i32> = cells.get(Default::TasksMax)?;
    let tasks_max = tasks_max.map(i32::unsigned_abs);
    let settings = TenantSettings { weight: cells.count(Default::Weight)?, tasks_max };
    Ok(DefaultTenant { settings, settle_from: cells.get(Default::SettleFrom)? })
}

/// A tenant and how much of its work waits.
pub(crate) fn read_view(row: &Row) -> Read<TenantView> {
    let (tenant_no, settings) = read_settings(row)?;
    let waiting = Cells::of(row).behind::<Col>();
    Ok(TenantView {
        tenant_no: TenantNo(tenant_no),
        settings,
        n_ready: waiting.size(Joined::Ready)?,
        n_running: waiting.size(Joined::Running)?,
        n_throttled: waiting.size(Joined::Throttled)?,
        n_parked: waiting.size(Joined::Parked)?,
    })
}

selected! { Admitted { Name, N, } }

/// How many tasks of a tenant are ready or running.
pub(crate) fn read_admitted(row: &Row) -> Read<(Tenant, usize)> {
    let cells = Cells::of(row);
    Ok((cells.name(Admitted::Name)?, cells.size(Admitted::N)?))
}
