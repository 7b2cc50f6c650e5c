//! Rows of `ready`, `throttled`, `parked` and `admitted`: where queued tasks wait.

use stepwell_core::id::{Node, Queue, RunId, RunKey, ServiceId};
use stepwell_core::queue::{OrderKey, Position};
use stepwell_core::run::Resumed;
use stepwell_core::time::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use super::cells::{Cells, Columns, columns, selected};
use super::run::RunRef;
use super::{Param, Read, corrupt, int, int32, key};
use crate::ports::TaskPlace;

columns! {
    /// The columns that `ready`, `throttled` and `parked` have in common.
    QUEUED: Col = "queued" {
        kept Number "number" "bigint",
        kept Queue "queue" "text",
        kept Service "service" "int",
        kept Losses "losses" "int",
        kept Deadline "deadline" "bigint",
        key Run "run" "uuid",
        key Node "node" "int",
        kept TenantNo "tenant_no" "int",
    }
}

/// A task that waits to be claimed.
#[derive(Clone, Debug)]
pub(crate) struct Queued {
    /// Its place in the order of arrival; 0 until it is enqueued.
    pub(crate) number: u64,
    pub(crate) run: RunKey,
    pub(crate) node: Node,
    pub(crate) tenant_no: u32,
    pub(crate) queue: Queue,
    pub(crate) service: ServiceId,
    pub(crate) losses: u32,
    /// Until when it may be claimed.
    pub(crate) deadline: Option<Timestamp>,
}

impl Queued {
    /// What is known of its run.
    pub(crate) fn run_ref(&self) -> RunRef {
        RunRef::of_service(self.service, self.tenant_no)
    }
}

/// A row of `ready`, `throttled` or `parked`.
pub(crate) fn read(row: &Row) -> Read<Queued> {
    let cells = Cells::of(row);
    Ok(Queued {
        number: cells.unsigned(Col::Number)?,
        run: cells.run_key(Col::Run)?,
        node: cells.node(Col::Node)?,
        tenant_no: cells.count(Col::TenantNo)?,
        queue: cells.name(Col::Queue)?,
        service: cells.count(Col::Service).map(ServiceId)?,
        losses: cells.count(Col::Losses)?,
        deadline: cells.optional_time(Col::Deadline)?,
    })
}

/// Queued tasks as lists of values.
pub(crate) struct QueuedArrays<'t> {
    number: Vec<i64>,
    queue: Vec<&'t str>,
    service: Vec<i32>,
    losses: Vec<i32>,
    deadline: Vec<Option<i64>>,
    run: Vec<Uuid>,
    node: Vec<i32>,
    tenant_no: Vec<i32>,
}

impl<'t> QueuedArrays<'t> {
    pub(crate) fn of(tasks: &'t [Queued]) -> Self {
        Self {
            number: tasks.iter().map(|task| int(task.number)).collect(),
            queue: tasks.iter().map(|task| task.queue.as_str()).collect(),
            service: tasks.iter().map(|task| int32(task.service.0)).collect(),
            losses: tasks.iter().map(|task| int32(task.losses)).collect(),
            deadline: tasks.iter().map(|task| task.deadline.map(Timestamp::as_micros)).collect(),
            run: tasks.iter().map(|task| key(task.run)).collect(),
            node: tasks.iter().map(|task| int32(task.node.0)).collect(),
            tenant_no: tasks.iter().map(|task| int32(task.tenant_no)).collect(),
        }
    }

    pub(crate) fn params(&self) -> Vec<Param<'_>> {
        Col::ALL.iter().map(|column| self.param(*column)).collect()
    }

    /// The lists, and the positions of the tasks in their queues.
    pub(crate) fn params_at<'a>(&'a self, positions: &'a PlaceArrays) -> Vec<Param<'a>> {
        let mut params = self.params();
        params.extend::<[Param<'_>; 2]>([&positions.order_key, &positions.position]);
        params
    }

    fn param(&self, column: Col) -> Param<'_> {
        match column {
            Col::Number => &self.number,
            Col::Queue => &self.queue,
            Col::Service => &self.service,
            Col::Losses => &self.losses,
            Col::Deadline => &self.deadline,
            Col::Run => &self.run,
            Col::Node => &self.node,
            Col::TenantNo => &self.tenant_no,
        }
    }
}

/// Positions of ready tasks in their queues, and the keys they are ordered by, as lists of values.
#[derive(Default)]
pub(crate) struct PlaceArrays {
    order_key: Vec<i64>,
    position: Vec<i64>,
}

impl PlaceArrays {
    pub(crate) fn push(&mut self, position: Position, order_key: OrderKey) {
        self.position.push(int(position.0));
        self.order_key.push(int(order_key.0));
    }
}

columns! {
    /// The columns of `admitted`.
    ADMITTED: AdmittedCol = "admitted" {
        kept TenantNo "tenant_no" "int",
        kept Number "number" "bigint",
        key Run "run" "uuid",
        key Node "node" "int",
    }
}

/// Admissions of tasks, as lists of values.
#[derive(Default)]
pub(crate) struct AdmittedArrays {
    tenant_no: Vec<i32>,
    number: Vec<i64>,
    run: Vec<Uuid>,
    node: Vec<i32>,
}

impl AdmittedArrays {
    pub(crate) fn of<'t>(tasks: impl Iterator<Item = &'t Queued>) -> Self {
        let mut arrays = Self::default();
        for task in tasks {
            arrays.tenant_no.push(int32(task.tenant_no));
            arrays.number.push(int(task.number));
            arrays.run.push(key(task.run));
            arrays.node.push(int32(task.node.0));
        }
        arrays
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.run.is_empty()
    }

    pub(crate) fn params(&self) -> Vec<Param<'_>> {
        let param = |column: &AdmittedCol| -> Param<'_> {
            match column {
                AdmittedCol::TenantNo => &self.tenant_no,
                AdmittedCol::Number => &self.number,
                AdmittedCol::Run => &self.run,
                AdmittedCol::Node => &self.node,
            }
        };
        AdmittedCol::ALL.iter().map(param).collect()
    }
}

selected! { AdmittedCount { TenantNo, N, } }

/// How many admissions a tenant uses.
pub(crate) fn read_admitted_count(row: &Row) -> Read<(u32, u64)> {
    let cells = Cells::of(row);
    Ok((cells.count(AdmittedCount::TenantNo)?, cells.unsigned(AdmittedCount::N)?))
}

/// A ready task that may be claimed.
pub(crate) struct Candidate {
    pub(crate) position: Position,
    pub(crate) losses: u32,
    pub(crate) run: RunKey,
    pub(crate) node: Node,
    pub(crate) run_ref: RunRef,
    pub(crate) service: ServiceId,
    /// How often it was claimed before.
    pub(crate) n_attempts: u32,
    pub(crate) failures: u32,
    pub(crate) queued_at: Timestamp,
    /// What ended its last wait.
    pub(crate) resumed: Option<Resumed>,
    /// Where its rows are.
    pub(crate) ready_at: String,
    pub(crate) task_at: String,
}

selected! {
    First {
        Position, Losses, Run, Node, Service, TenantNo, NAttempts, Failures, QueuedAt, ResumedBy,
        ReadyAt, TaskAt,
    }
}

pub(crate) fn read_candidate(row: &Row) -> Read<Candidate> {
    let cells = Cells::of(row);
    let service = ServiceId(cells.count(First::Service)?);
    Ok(Candidate {
        position: Position(cells.unsigned(First::Position)?),
        losses: cells.count(First::Losses)?,
        run: cells.run_key(First::Run)?,
        node: cells.node(First::Node)?,
        run_ref: RunRef::of_service(service, cells.count(First::TenantNo)?),
        service,
        n_attempts: cells.count(First::NAttempts)?,
        failures: cells.count(First::Failures)?,
        queued_at: cells.time(First::QueuedAt)?,
        resumed: cells.resumed(First::ResumedBy)?,
        ready_at: cells.get(First::ReadyAt)?,
        task_at: cells.get(First::TaskAt)?,
    })
}

selected! {
    /// Read with a candidate: whether a suspect waits, and of several services how many tasks were
    /// looked at.
    Found { SuspectWaits, N, }
}

/// A task that may be claimed, if there is one in the row, and whether a suspect waits.
pub(crate) fn read_found(row: &Row) -> Read<(Option<Candidate>, bool)> {
    let cells = Cells::of(row);
    let suspect_waits = cells.behind::<First>().get(Found::SuspectWaits)?;
    let is_any = cells.get::<Option<i64>>(First::Position)?.is_some();
    Ok((is_any.then(|| read_candidate(row)).transpose()?, suspect_waits))
}

/// How many tasks of several services were looked at.
pub(crate) fn read_n_found(row: &Row) -> Read<usize> {
    Cells::of(row).behind::<First>().size(Found::N)
}

/// A candidate that was claimed.
pub(crate) struct ClaimedCandidate {
    /// Its place among the candidates.
    pub(crate) ix: usize,
    pub(crate) run_id: RunId,
}

selected! { Claimed { Turn, RunId, } }

pub(crate) fn read_claimed(row: &Row) -> Read<ClaimedCandidate> {
    let cells = Cells::of(row);
    Ok(ClaimedCandidate {
        // The database counts from 1.
        ix: cells.size(Claimed::Turn)?.wrapping_sub(1),
        run_id: cells.name(Claimed::RunId)?,
    })
}

selected! { Place { Run, Node, Table, Queue, OrderKey, } }

/// Where a queued task waits.
pub(crate) fn read_place(row: &Row) -> Read<((RunKey, Node), TaskPlace)> {
    let cells = Cells::of(row);
    let place = match cells.get::<&str>(Place::Table)? {
        "ready" => {
            let order_key = OrderKey(cells.unsigned(Place::OrderKey)?);
            TaskPlace::Ready(cells.name(Place::Queue)?, order_key)
        }
        "throttled" => TaskPlace::Throttled,
        "parked" => TaskPlace::Parked,
        table => return Err(corrupt(format!("no task waits in {table}"))),
    };
    Ok(((cells.run_key(Place::Run)?, cells.node(Place::Node)?), place))
}
