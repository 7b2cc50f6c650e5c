//! Rows of `run`.

use stepwell_core::id::{DefinitionId, RunId, RunKey, ServiceId, Tenant};
use stepwell_core::run::{RunRow, RunStatus};
use stepwell_core::time::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use super::cells::{Cells, Columns, columns, selected};
use super::payload;
use super::{Param, Read, corrupt, int, int32, json, key};
use crate::outbound::sql::{Column, arrays};
use crate::ports::{EndOutput, RunEnd};

columns! {
    /// The columns of `run`.
    RUN: Col = "run" {
        key Key "key" "uuid",
        kept TenantNo "tenant_no" "int",
        kept Id "id" "text",
        kept Definition "definition" "int",
        changed Status "status" "smallint",
        changed NOpen "n_open" "int",
        changed NFailed "n_failed" "int",
        changed NCancelled "n_cancelled" "int",
        changed Cancelled "cancelled" "bool",
        changed NSignals "n_signals" "bigint",
        changed NUnconsumed "n_unconsumed" "int",
        changed Failure "failure" "text",
        changed NextEvent "next_event" "bigint",
        changed EndEvent "end_event" "bigint",
        kept StartedAt "started_at" "bigint",
        kept Deadline "deadline" "bigint",
        changed EndedAt "ended_at" "bigint",
        kept InputDigest "input_digest" "bytea",
    }
}

selected! {
    /// Read with a run.
    Joined { TenantName, }
}

/// A run with its tenant's number and the digest of its input.
pub(crate) struct StoredRun {
    pub(crate) row: RunRow,
    pub(crate) tenant_no: u32,
    pub(crate) input_digest: [u8; 32],
}

/// What of a run never changes and is needed before it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunRef {
    pub(crate) definition: DefinitionId,
    pub(crate) tenant_no: u32,
}

impl RunRef {
    /// What is known of a run by its row in a queue: today every run is decided on the plan whose
    /// code its tasks need, so that plan and service have the same number.
    pub(crate) const fn of_service(service: ServiceId, tenant_no: u32) -> Self {
        Self { definition: DefinitionId(service.0), tenant_no }
    }
}

impl StoredRun {
    /// What may be remembered of it.
    pub(crate) fn reference(&self) -> RunRef {
        RunRef { definition: self.row.definition, tenant_no: self.tenant_no }
    }
}

/// A run with its tenant's name.
pub(crate) fn read(row: &Row) -> Read<StoredRun> {
    read_of(row, Cells::of(row).behind::<Col>().name(Joined::TenantName)?)
}

/// A run whose tenant is known.
pub(crate) fn read_of(row: &Row, tenant: Tenant) -> Read<StoredRun> {
    let cells = Cells::of(row);
    let end_event: Option<i64> = cells.get(Col::EndEvent)?;
    let digest: &[u8] = cells.get(Col::InputDigest)?;
    let run = RunRow {
        key: cells.run_key(Col::Key)?,
        tenant,
        id: cells.name(Col::Id)?,
        definition: cells.definition_id(Col::Definition)?,
        status: status(cells, Col::Status)?,
        n_open: cells.count(Col::NOpen)?,
        n_failed: cells.count(Col::NFailed)?,
        n_cancelled: cells.count(Col::NCancelled)?,
        cancelled: cells.get(Col::Cancelled)?,
        n_signals: cells.unsigned(Col::NSignals)?,
        n_unconsumed: cells.count(Col::NUnconsumed)?,
        failure: cells.optional_json(Col::Failure, "run failure")?,
        next_event: cells.unsigned(Col::NextEvent)?,
        end_event: end_event.map(i64::unsigned_abs),
        started_at: cells.time(Col::StartedAt)?,
        deadline: cells.optional_time(Col::Deadline)?,
        ended_at: cells.optional_time(Col::EndedAt)?,
    };
    let input_digest = digest.try_into().map_err(|_| corrupt("a digest has no 32 bytes"))?;
    Ok(StoredRun { row: run, tenant_no: read_tenant_no(row)?, input_digest })
}

selected! {
    /// Read with a run that is locked.
    Locked { At, }
}

/// When a run was locked, in microseconds.
pub(crate) fn read_locked_at(row: &Row) -> Read<i64> {
    Cells::of(row).behind::<Col>().moment(Locked::At)
}

/// The number of a run's tenant.
pub(crate) fn read_tenant_no(row: &Row) -> Read<u32> {
    Cells::of(row).count(Col::TenantNo)
}

selected! { Ended { Key, Status, Failure, OutputOf, } }

/// A run that has ended, and how, with what a step left.
pub(crate) fn read_ended(row: &Row) -> Read<(RunKey, RunEnd)> {
    let cells = Cells::of(row);
    let left = payload::read_left_of_some(cells.behind::<Ended>())?;
    let end = RunEnd {
        status: status(cells, Ended::Status)?,
        failure: cells.optional_json(Ended::Failure, "run failure")?,
        output_of: None,
        output: EndOutput::Known(None),
    };
    let asked = cells.optional_node(Ended::OutputOf)?;
    let end = end.with_output(asked, |_| Read::Ok(left.map(|(_, left)| left)))?;
    Ok((cells.run_key(Ended::Key)?, end))
}

selected! { Named { Tenant, Id, Key, } }

/// A run by the names its caller knows it by.
pub(crate) type RunNames = (Tenant, RunId);

/// The key of a run, by its names.
pub(crate) fn read_named(row: &Row) -> Read<(RunNames, RunKey)> {
    let cells = Cells::of(row);
    let names = (cells.name(Named::Tenant)?, cells.name(Named::Id)?);
    Ok((names, cells.run_key(Named::Key)?))
}

/// The key of a run, which a row begins with.
pub(crate) fn read_key(row: &Row) -> Read<RunKey> {
    Cells::of(row).run_key(Col::Key)
}

fn status(cells: Cells<'_>, column: impl Columns) -> Read<RunStatus> {
    cells.state(column, RunStatus::ALL, |status| status as i16)
}

/// What changed of runs, as lists of values.
#[derive(Default)]
pub(crate) struct RunArrays {
    key: Vec<Uuid>,
    status: Vec<i16>,
    n_open: Vec<i32>,
    n_failed: Vec<i32>,
    n_cancelled: Vec<i32>,
    cancelled: Vec<bool>,
    n_signals: Vec<i64>,
    n_unconsumed: Vec<i32>,
    failure: Vec<Option<String>>,
    next_event: Vec<i64>,
    end_event: Vec<Option<i64>>,
    ended_at: Vec<Option<i64>>,
}

impl RunArrays {
    pub(crate) fn of<'r>(runs: impl Iterator<Item = &'r RunRow>) -> Read<Self> {
        let mut arrays = Self::default();
        for run in runs {
            arrays.key.push(key(run.key));
            arrays.status.push(run.status as i16);
            arrays.n_open.push(int32(run.n_open));
            arrays.n_failed.push(int32(run.n_failed));
            arrays.n_cancelled.push(int32(run.n_cancelled));
            arrays.cancelled.push(run.cancelled);
            arrays.n_signals.push(int(run.n_signals));
            arrays.n_unconsumed.push(int32(run.n_unconsumed));
            arrays.failure.push(run.failure.as_ref().map(json).transpose()?);
            arrays.next_event.push(int(run.next_event));
            arrays.end_event.push(run.end_event.map(int));
            arrays.ended_at.push(run.ended_at.map(Timestamp::as_micros));
        }
        Ok(arrays)
    }

    pub(crate) fn params(&self) -> Vec<Param<'_>> {
        Col::ALL.iter().filter_map(|column| self.param(*column)).collect()
    }

    /// The values of a column, unless it keeps its first one.
    fn param(&self, column: Col) -> Option<Param<'_>> {
        Some(match column {
            Col::TenantNo
            | Col::Id
            | Col::Definition
            | Col::StartedAt
            | Col::Deadline
            | Col::InputDigest => return None,
            Col::Key => &self.key,
            Col::Status => &self.status,
            Col::NOpen => &self.n_open,
            Col::NFailed => &self.n_failed,
            Col::NCancelled => &self.n_cancelled,
            Col::Cancelled => &self.cancelled,
            Col::NSignals => &self.n_signals,
            Col::NUnconsumed => &self.n_unconsumed,
            Col::Failure => &self.failure,
            Col::NextEvent => &self.next_event,
            Col::EndEvent => &self.end_event,
            Col::EndedAt => &self.ended_at,
        })
    }
}

/// What a column of a fresh run holds.
enum Fresh {
    /// Its own value.
    Own,
    /// The same as all fresh runs: a list would carry it once for each.
    Same(&'static str),
    /// The time of the transaction.
    Now,
}

impl Col {
    const fn fresh(self) -> Fresh {
        match self {
            Self::Key
            | Self::TenantNo
            | Self::Id
            | Self::Definition
            | Self::NOpen
            | Self::NextEvent
            | Self::Deadline
            | Self::InputDigest => Fresh::Own,
            Self::Status => Fresh::Same("{run.RUNNING}"),
            Self::NFailed | Self::NCancelled | Self::NSignals | Self::NUnconsumed => {
                Fresh::Same("0")
            }
            Self::Cancelled => Fresh::Same("false"),
            Self::Failure | Self::EndEvent | Self::EndedAt => Fresh::Same("null"),
            Self::StartedAt => Fresh::Now,
        }
    }

    fn column(self) -> &'static Column {
        &RUN.columns[self.index()]
    }
}

/// `{run_fresh_arrays}` and `{run_fresh_names}` are lists of values of fresh runs, `{run_fresh}` is
/// all that is inserted of one.
pub(super) fn fresh_words() -> [(&'static str, String); 3] {
    let own = || Col::ALL.iter().filter(|column| matches!(column.fresh(), Fresh::Own));
    let names: Vec<&str> = own().map(|column| column.column().name).collect();
    let now = format!("${}::bigint", names.len() + 1);
    let value = |column: &Col| match column.fresh() {
        Fresh::Own => format!("fresh.{}", column.column().name),
        Fresh::Same(value) => value.to_owned(),
        Fresh::Now => now.clone(),
    };
    let values: Vec<String> = Col::ALL.iter().map(value).collect();
    [
        ("{run_fresh_arrays}", arrays(own().map(|column| column.column()))),
        ("{run_fresh_names}", names.join(", ")),
        ("{run_fresh}", values.join(", ")),
    ]
}

/// A run that is about to be inserted.
pub(crate) struct FreshRun<'r> {
    pub(crate) key: RunKey,
    pub(crate) tenant_no: u32,
    pub(crate) id: &'r str,
    pub(crate) definition: DefinitionId,
    pub(crate) n_open: u32,
    pub(crate) next_event: u64,
    pub(crate) deadline: Option<Timestamp>,
    pub(crate) input_digest: &'r [u8; 32],
}

/// Fresh runs, as lists of values.
#[derive(Default)]
pub(crate) struct FreshRunArrays<'r> {
    key: Vec<Uuid>,
    tenant_no: Vec<i32>,
    id: Vec<&'r str>,
    definition: Vec<i32>,
    n_open: Vec<i32>,
    next_event: Vec<i64>,
    deadline: Vec<Option<i64>>,
    input_digest: Vec<&'r [u8]>,
}

impl<'r> FreshRunArrays<'r> {
    pub(crate) fn of(runs: impl Iterator<Item = FreshRun<'r>>) -> Self {
        let mut arrays = Self::default();
        for run in runs {
            arrays.key.push(key(run.key));
            arrays.tenant_no.push(int32(run.tenant_no));
            arrays.id.push(run.id);
            arrays.definition.push(int32(run.definition.0));
            arrays.n_open.push(int32(run.n_open));
            arrays.next_event.push(int(run.next_event));
            arrays.deadline.push(run.deadline.map(Timestamp::as_micros));
            arrays.input_digest.push(run.input_digest);
        }
        arrays
    }

    /// The lists, and the time at which the runs start.
    pub(crate) fn params<'a>(&'a self, started_at: &'a i64) -> Vec<Param<'a>> {
        let own = Col::ALL.iter().filter_map(|column| self.param(*column));
        own.chain([started_at as Param<'a>]).collect()
    }

    fn param(&self, column: Col) -> Option<Param<'_>> {
        Some(match column {
            Col::Key => &self.key,
            Col::TenantNo => &self.tenant_no,
            Col::Id => &self.id,
            Col::Definition => &self.definition,
            Col::NOpen => &self.n_open,
            Col::NextEvent => &self.next_event,
            Col::Deadline => &self.deadline,
            Col::InputDigest => &self.input_digest,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use stepwell_core::decide::{self, RunSeed};
    use stepwell_core::id::RunId;
    use stepwell_core::workflow::{Draft, DraftStep, NodeKind, Placement, StepPolicy};

    use super::*;

    #[test]
    fn what_all_fresh_runs_have_in_common_is_what_the_core_starts_them_with() {
        let step = DraftStep {
            name: "a".to_owned(),
            kind: NodeKind::Step,
            placement: Placement::Explicit(Vec::new()),
            policy: StepPolicy::default(),
        };
        let (workflow, steps) = ("one".to_owned(), vec![step]);
        let draft = Draft { workflow, steps, ..Draft::default() };
        let definition = draft.resolve().expect("it is well formed");
        let seed = RunSeed {
            key: RunKey(7),
            tenant: Tenant::new("acme").expect("it is a name"),
            id: RunId::new("run").expect("it is a name"),
            definition: DefinitionId(3),
            deadline: None,
        };
        let image = decide::start(&definition, Timestamp::from_micros(9), seed);
        let run = image.run();
        let text = |column: Col| match column {
            Col::Status => format!("{{run.{}}}", run.status),
            Col::NFailed => run.n_failed.to_string(),
            Col::NCancelled => run.n_cancelled.to_string(),
            Col::Cancelled => run.cancelled.to_string(),
            Col::NSignals => run.n_signals.to_string(),
            Col::NUnconsumed => run.n_unconsumed.to_string(),
            Col::Failure if run.failure.is_none() => "null".to_owned(),
            Col::EndEvent if run.end_event.is_none() => "null".to_owned(),
            Col::EndedAt if run.ended_at.is_none() => "null".to_owned(),
            _ => "its own".to_owned(),
        };
        for column in Col::ALL {
            if let Fresh::Same(value) = column.fresh() {
                assert_eq!(value, text(*column), "{}", column.column().name);
            }
        }
        assert_eq!(run.started_at, Timestamp::from_micros(9));
    }

    #[test]
    fn lists_of_values_are_those_of_the_columns_that_are_written() {
        let (changed, fresh) = (RunArrays::default(), FreshRunArrays::default());
        for column in Col::ALL {
            let Column { name, is_key, is_changed, .. } = column.column();
            assert_eq!(changed.param(*column).is_some(), *is_key || *is_changed, "{name}");
            let is_own = matches!(column.fresh(), Fresh::Own);
            assert_eq!(fresh.param(*column).is_some(), is_own, "{name}");
        }
    }
}
