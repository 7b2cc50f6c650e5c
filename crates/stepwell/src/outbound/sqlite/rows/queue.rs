//! Where queued tasks wait, and what the places in queues depend on.

use rusqlite::{Row, params};
use stepwell_core::id::{Node, Queue, RunKey, ServiceId};
use stepwell_core::queue::{OrderKey, Position, TenantNo};
use stepwell_core::time::Timestamp;

use super::cells::{Cells, ONLY, Rows, int, selected};
use crate::outbound::sql::{Column, Table, named};
use crate::outbound::sqlite::file::{File, corrupt};
use crate::ports::TaskPlace;

const SQL: &str = include_str!("../sql/queue.sql");
const ANY_READY: &str = named(SQL, "any_ready");
const COUNT_PARKED: &str = named(SQL, "count_parked");
const COUNT_THROTTLED: &str = named(SQL, "count_throttled");
const DELETE_PARKED: &str = named(SQL, "delete_parked");
const DELETE_THROTTLED: &str = named(SQL, "delete_throttled");
const DUMP_PLACES: &str = named(SQL, "dump_places");
const FIRST_READY: &str = named(SQL, "first_ready");
const FIRST_SUSPECTS: &str = named(SQL, "first_suspects");
const INSERT_PARKED: &str = named(SQL, "insert_parked");
const INSERT_THROTTLED: &str = named(SQL, "insert_throttled");
const NEXT_THROTTLED: &str = named(SQL, "next_throttled");
const PARKED_AT: &str = named(SQL, "parked_at");
const PARKED_OF_NODE: &str = named(SQL, "parked_of_node");
const QUEUES_WITH_PARKED: &str = named(SQL, "queues_with_parked");
const QUEUES_WITH_READY: &str = named(SQL, "queues_with_ready");
const READ_FRONTIER: &str = named(SQL, "read_frontier");
const READ_POSITION: &str = named(SQL, "read_position");
const READY_AT: &str = named(SQL, "ready_at");
const READY_BELOW: &str = named(SQL, "ready_below");
const SERVICES_IN_QUEUE: &str = named(SQL, "services_in_queue");
const SERVICES_PARKED_IN_QUEUE: &str = named(SQL, "services_parked_in_queue");
const SET_FRONTIER: &str = named(SQL, "set_frontier");
const SET_POSITION: &str = named(SQL, "set_position");
const YOUNGEST_READY: &str = named(SQL, "youngest_ready");

/// Throttled and parked tasks have the same columns.
const WAITING: &[Column] = &[
    Column::kept("tenant_no", "integer"),
    Column::kept("number", "integer"),
    Column::kept("queue", "text"),
    Column::kept("service", "integer"),
    Column::kept("losses", "integer"),
    Column::kept("run", "integer"),
    Column::kept("node", "integer"),
];
pub(super) const PARKED: Table = Table { name: "parked", columns: WAITING };
pub(super) const THROTTLED: Table = Table { name: "throttled", columns: WAITING };

/// The columns of `task` that a claim looks at.
pub(super) const CANDIDATE: Table = Table {
    name: "candidate",
    columns: &[
        Column::kept("order_key", "integer"),
        Column::kept("number", "integer"),
        Column::kept("losses", "integer"),
        Column::kept("node", "integer"),
    ],
};

/// What a dump says of each queued task.
pub(super) const PLACE: Table = Table {
    name: "place",
    columns: &[
        Column::kept("run", "integer"),
        Column::kept("node", "integer"),
        Column::kept("kind", "text"),
        Column::kept("queue", "text"),
        Column::kept("order_key", "integer"),
    ],
};

/// A task that waits to be claimed.
#[derive(Clone, Debug)]
pub(crate) struct WaitingTask {
    /// Its place in the order of arrival.
    pub(crate) number: u64,
    pub(crate) run: RunKey,
    /// The number by which rows name its run.
    pub(crate) run_no: i64,
    pub(crate) node: Node,
    pub(crate) tenant_no: TenantNo,
    pub(crate) queue: Queue,
    pub(crate) service: ServiceId,
    pub(crate) losses: u32,
}

fn read_waiting(row: &Row<'_>) -> Rows<WaitingTask> {
    const fn at(column: &str) -> usize {
        PARKED.index(column)
    }
    let row = Cells::of(row);
    Ok(WaitingTask {
        number: row.unsigned(const { at("number") })?,
        run: row.run_key(WAITING.len())?,
        run_no: row.get(const { at("run") })?,
        node: row.node(const { at("node") })?,
        tenant_no: TenantNo(row.count(const { at("tenant_no") })?),
        queue: row.name(const { at("queue") })?,
        service: ServiceId(row.count(const { at("service") })?),
        losses: row.count(const { at("losses") })?,
    })
}

fn insert_waiting(file: File<'_, '_>, sql: &'static str, task: &WaitingTask) -> Rows<()> {
    file.run(
        sql,
        params![
            task.tenant_no.0,
            int(task.number),
            task.queue.as_str(),
            task.service.0,
            task.losses,
            task.run_no,
            task.node.0,
        ],
    )?;
    Ok(())
}

/// Lets a task wait for a worker that serves it.
pub(crate) fn insert_parked(file: File<'_, '_>, task: &WaitingTask) -> Rows<()> {
    insert_waiting(file, INSERT_PARKED, task)
}

/// Lets a task wait behind its tenant's limit.
pub(crate) fn insert_throttled(file: File<'_, '_>, task: &WaitingTask) -> Rows<()> {
    insert_waiting(file, INSERT_THROTTLED, task)
}

/// A queue, and a service of which tasks wait in it.
pub(crate) type ServicePlace = (Queue, ServiceId);

fn places(
    file: File<'_, '_>,
    queues: &'static str,
    services: &'static str,
) -> Rows<Vec<ServicePlace>> {
    let mut places = Vec::new();
    for queue in file.all(queues, [], |row| Cells::of(row).name::<Queue>(ONLY))? {
        let service = |row: &Row<'_>| Cells::of(row).count(ONLY).map(ServiceId);
        let found = file.all(services, [queue.as_str()], service)?;
        places.extend(found.into_iter().map(|service| (queue.clone(), service)));
    }
    Ok(places)
}

/// Where tasks are parked.
pub(crate) fn parked_places(file: File<'_, '_>) -> Rows<Vec<ServicePlace>> {
    places(file, QUEUES_WITH_PARKED, SERVICES_PARKED_IN_QUEUE)
}

/// Where tasks are ready.
pub(crate) fn ready_places(file: File<'_, '_>) -> Rows<Vec<ServicePlace>> {
    places(file, QUEUES_WITH_READY, SERVICES_IN_QUEUE)
}

/// The oldest tasks that are parked at a place.
pub(crate) fn parked_at(
    file: File<'_, '_>,
    (queue, service): &ServicePlace,
    tasks_max: usize,
) -> Rows<Vec<WaitingTask>> {
    let n = i64::try_from(tasks_max).unwrap_or(i64::MAX);
    file.all(PARKED_AT, params![queue.as_str(), service.0, n], read_waiting)
}

/// The oldest tasks of a step that are parked at a place.
pub(crate) fn parked_of_node(
    file: File<'_, '_>,
    (queue, service): &ServicePlace,
    node: Node,
    tasks_max: usize,
) -> Rows<Vec<WaitingTask>> {
    let n = i64::try_from(tasks_max).unwrap_or(i64::MAX);
    file.all(PARKED_OF_NODE, params![queue.as_str(), service.0, node.0, n], read_waiting)
}

/// The first tasks that are ready at a place.
pub(crate) fn ready_at(
    file: File<'_, '_>,
    (queue, service): &ServicePlace,
    tasks_max: usize,
) -> Rows<Vec<(RunKey, Node)>> {
    let n = i64::try_from(tasks_max).unwrap_or(i64::MAX);
    file.all(READY_AT, params![queue.as_str(), service.0, n], read_task_name)
}

/// Takes away the throttled task of a tenant that has waited longest.
pub(crate) fn next_throttled(file: File<'_, '_>, tenant_no: TenantNo) -> Rows<Option<WaitingTask>> {
    file.first(NEXT_THROTTLED, [tenant_no.0], read_waiting)
}

/// Takes a task away that waits in no queue.
pub(crate) fn delete_waiting(file: File<'_, '_>, run_no: i64, node: Node) -> Rows<()> {
    file.run(DELETE_THROTTLED, params![run_no, node.0])?;
    file.run(DELETE_PARKED, params![run_no, node.0]).map(drop)
}

pub(crate) fn n_throttled(file: File<'_, '_>, tenant_no: TenantNo) -> Rows<u32> {
    let n = file.first(COUNT_THROTTLED, [tenant_no.0], |row| Cells::of(row).count(ONLY))?;
    Ok(n.unwrap_or(0))
}

pub(crate) fn n_parked(file: File<'_, '_>, tenant_no: TenantNo) -> Rows<u32> {
    let n = file.first(COUNT_PARKED, [tenant_no.0], |row| Cells::of(row).count(ONLY))?;
    Ok(n.unwrap_or(0))
}

/// A ready task that may be claimed.
pub(crate) struct Candidate {
    /// What ready tasks are sorted by: the key of the fair order, then the number of arrival.
    pub(crate) place: (OrderKey, u64),
    pub(crate) losses: u32,
    pub(crate) run: RunKey,
    pub(crate) node: Node,
}

fn read_candidate(row: &Row<'_>) -> Rows<Candidate> {
    const fn at(column: &str) -> usize {
        CANDIDATE.index(column)
    }
    let row = Cells::of(row);
    let order_key = OrderKey(row.unsigned(const { at("order_key") })?);
    Ok(Candidate {
        place: (order_key, row.unsigned(const { at("number") })?),
        losses: row.count(const { at("losses") })?,
        run: row.run_key(CANDIDATE.columns.len())?,
        node: row.node(const { at("node") })?,
    })
}

/// What is claimed from which queue, and when.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'q> {
    pub(crate) queue: &'q Queue,
    pub(crate) service: ServiceId,
    pub(crate) now: Timestamp,
}

/// The first tasks of a service in a queue, with losses in a range, behind a place if one is given.
pub(crate) fn first_ready(
    file: File<'_, '_>,
    asked: Asked<'_>,
    losses: &std::ops::Range<u32>,
    behind: Option<(OrderKey, u64)>,
    tasks_max: usize,
) -> Rows<Vec<Candidate>> {
    let n = i64::try_from(tasks_max).unwrap_or(i64::MAX);
    let (order, number) = behind.map_or((-1, -1), |(order, number)| (int(order.0), int(number)));
    let (queue, now) = (asked.queue.as_str(), asked.now.as_micros());
    let params = params![queue, asked.service.0, losses.start, losses.end, now, n, order, number];
    file.all(FIRST_READY, params, read_candidate)
}

/// The first task of a service in a queue that was lost this often or more; at least once.
pub(crate) fn first_suspect(
    file: File<'_, '_>,
    asked: Asked<'_>,
    losses_min: u32,
) -> Rows<Option<Candidate>> {
    let (queue, now) = (asked.queue.as_str(), asked.now.as_micros());
    let params = params![queue, asked.service.0, losses_min, now, 1];
    file.first(FIRST_SUSPECTS, params, read_candidate)
}

/// Whether anything waits in a queue of a worker that it could take.
pub(crate) fn any_ready(file: File<'_, '_>, worker_no: i64) -> Rows<bool> {
    Ok(file.first(ANY_READY, [worker_no], |_| Ok(()))?.is_some())
}

/// The services of which a task is ready in a queue.
pub(crate) fn services_in(file: File<'_, '_>, queue: &Queue) -> Rows<Vec<ServiceId>> {
    let read = |row: &Row<'_>| Cells::of(row).count(ONLY).map(ServiceId);
    file.all(SERVICES_IN_QUEUE, [queue.as_str()], read)
}

selected! { Ready { OrderKey, Position, } }

/// Gives the tasks of a service in a queue from one key down to another, until the reader has what
/// it looks for.
pub(crate) fn each_ready_below(
    file: File<'_, '_>,
    (queue, service): (&Queue, ServiceId),
    from: OrderKey,
    down_to: OrderKey,
    mut read: impl FnMut(OrderKey, Position) -> bool,
) -> Rows<()> {
    let params = params![queue.as_str(), service.0, int(from.0), int(down_to.0)];
    file.each(READY_BELOW, params, |row| {
        let row = Cells::of(row);
        Ok(read(OrderKey(row.unsigned(Ready::OrderKey)?), Position(row.unsigned(Ready::Position)?)))
    })
}

selected! { TaskName { RunKey, Node, } }

fn read_task_name(row: &Row<'_>) -> Rows<(RunKey, Node)> {
    let row = Cells::of(row);
    Ok((row.run_key(TaskName::RunKey)?, row.node(TaskName::Node)?))
}

/// The ready tasks of a tenant that arrived last, those first.
pub(crate) fn youngest_ready(
    file: File<'_, '_>,
    tenant_no: TenantNo,
    tasks_max: u64,
) -> Rows<Vec<(RunKey, Node)>> {
    file.all(YOUNGEST_READY, params![tenant_no.0, int(tasks_max)], read_task_name)
}

fn read_position(row: &Row<'_>) -> Rows<Position> {
    Cells::of(row).unsigned(ONLY).map(Position)
}

/// The last position of a tenant in a queue.
pub(crate) fn position(
    file: File<'_, '_>,
    tenant_no: TenantNo,
    queue: &Queue,
) -> Rows<Option<Position>> {
    file.first(READ_POSITION, params![tenant_no.0, queue.as_str()], read_position)
}

pub(crate) fn set_position(
    file: File<'_, '_>,
    tenant_no: TenantNo,
    queue: &Queue,
    last: Position,
) -> Rows<()> {
    file.run(SET_POSITION, params![tenant_no.0, queue.as_str(), int(last.0)]).map(drop)
}

/// The greatest position that was taken from a queue.
pub(crate) fn frontier(file: File<'_, '_>, queue: &Queue) -> Rows<Option<Position>> {
    file.first(READ_FRONTIER, [queue.as_str()], read_position)
}

pub(crate) fn set_frontier(file: File<'_, '_>, queue: &Queue, frontier: Position) -> Rows<()> {
    file.run(SET_FRONTIER, params![queue.as_str(), int(frontier.0)]).map(drop)
}

/// Where every queued task waits.
pub(crate) fn all_places(file: File<'_, '_>) -> Rows<Vec<((RunKey, Node), TaskPlace)>> {
    const fn at(column: &str) -> usize {
        PLACE.index(column)
    }
    file.all(DUMP_PLACES, [], |row| {
        let row = Cells::of(row);
        let kind: String = row.get(const { at("kind") })?;
        let order = OrderKey(row.unsigned(const { at("order_key") })?);
        let place = match kind.as_str() {
            "ready" => TaskPlace::Ready(row.name(const { at("queue") })?, order),
            "throttled" => TaskPlace::Throttled,
            "parked" => TaskPlace::Parked,
            _ => return Err(corrupt("a place is of a kind that is unknown")),
        };
        let task = (row.run_key(PLACE.columns.len())?, row.node(const { at("node") })?);
        Ok((task, place))
    })
}
