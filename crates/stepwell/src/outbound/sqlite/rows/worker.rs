//! Workers, their queues and what they serve. Other rows name a worker by a number.

use std::collections::BTreeSet;
use std::time::Duration;

use rusqlite::{Row, params};
use stepwell_core::id::{Queue, ServiceId, WorkerId};
use stepwell_core::lease::LastBeat;
use stepwell_core::time::Timestamp;
use stepwell_core::trial::Crew;

use super::cells::{Cells, ONLY, Rows, int, selected};
use crate::outbound::sql::named;
use crate::outbound::sqlite::file::File;

const SQL: &str = include_str!("../sql/worker.sql");
const BEAT: &str = named(SQL, "beat");
const DELETE_QUEUES: &str = named(SQL, "delete_queues");
const DELETE_SERVICES: &str = named(SQL, "delete_services");
const END_WORKER: &str = named(SQL, "end_worker");
const FIND_SILENT: &str = named(SQL, "find_silent");
const FIND_WORKER: &str = named(SQL, "find_worker");
const INSERT_QUEUE: &str = named(SQL, "insert_queue");
const INSERT_SERVICE: &str = named(SQL, "insert_service");
const IS_SERVED: &str = named(SQL, "is_served");
const MARK_WORKER_LEAVING: &str = named(SQL, "mark_worker_leaving");
const READ_CREWS: &str = named(SQL, "read_crews");
const READ_LIVES: &str = named(SQL, "read_lives");
const READ_QUEUES: &str = named(SQL, "read_queues");
const READ_SERVICES: &str = named(SQL, "read_services");
const READ_WORKER_NO: &str = named(SQL, "read_worker_no");
const READ_WORKERS: &str = named(SQL, "read_workers");
const SET_IN_TRIAL: &str = named(SQL, "set_in_trial");
const SET_NEXT_TURN: &str = named(SQL, "set_next_turn");
const SET_TAKEN_AT: &str = named(SQL, "set_taken_at");
const TAKEN_SINCE: &str = named(SQL, "taken_since");
const UPSERT_WORKER: &str = named(SQL, "upsert_worker");

fn number(row: &Row<'_>) -> Rows<i64> {
    Cells::of(row).get(ONLY)
}

/// Registers a worker, or registers it anew, and gives its number.
pub(crate) fn register(
    file: File<'_, '_>,
    worker: &WorkerId,
    lease: Duration,
    seen_at: Timestamp,
    process_lock: &str,
) -> Rows<i64> {
    let lease = i64::try_from(lease.as_micros()).unwrap_or(i64::MAX);
    let row = params![worker.as_str(), lease, seen_at.as_micros(), process_lock];
    Ok(file.first(UPSERT_WORKER, row, number)?.unwrap_or_default())
}

/// Renews the lease of a live worker and gives its number.
pub(crate) fn beat(file: File<'_, '_>, worker: &WorkerId, now: Timestamp) -> Rows<Option<i64>> {
    file.first(BEAT, params![worker.as_str(), now.as_micros()], number)
}

/// Claims of a worker were taken by the commit that is this wake of other processes.
pub(crate) fn set_taken_at(file: File<'_, '_>, worker: &WorkerId, n_wakes: i64) -> Rows<()> {
    file.run(SET_TAKEN_AT, params![worker.as_str(), n_wakes]).map(drop)
}

/// The workers whose claims were taken since that wake.
pub(crate) fn taken_since(file: File<'_, '_>, n_wakes: i64) -> Rows<BTreeSet<WorkerId>> {
    let workers = file.all(TAKEN_SINCE, [n_wakes], |row| Cells::of(row).name(ONLY))?;
    Ok(workers.into_iter().collect())
}

/// A live worker leaves by itself. Gives its number.
pub(crate) fn mark_leaving(file: File<'_, '_>, worker: &WorkerId) -> Rows<Option<i64>> {
    file.first(MARK_WORKER_LEAVING, [worker.as_str()], number)
}

/// A worker has nothing any more that could be taken from it: it is gone if it left, else dead.
pub(crate) fn end(file: File<'_, '_>, worker_no: i64) -> Rows<()> {
    file.run(END_WORKER, [worker_no]).map(drop)
}

/// A live worker that asks for tasks.
pub(crate) struct ServingWorker {
    pub(crate) no: i64,
    /// Which of its queues comes first.
    pub(crate) next_turn: usize,
    /// It takes suspects, each with empty hands, and nothing else.
    pub(crate) in_trial: bool,
}

selected! { Serving { No, NextTurn, InTrial, } }

pub(crate) fn find(file: File<'_, '_>, worker: &WorkerId) -> Rows<Option<ServingWorker>> {
    file.first(FIND_WORKER, [worker.as_str()], |row| {
        let row = Cells::of(row);
        let next_turn = usize::try_from(row.unsigned(Serving::NextTurn)?).unwrap_or_default();
        let in_trial = row.get(Serving::InTrial)?;
        Ok(ServingWorker { no: row.get(Serving::No)?, next_turn, in_trial })
    })
}

pub(crate) fn set_next_turn(file: File<'_, '_>, worker_no: i64, next_turn: usize) -> Rows<()> {
    let next_turn = i64::try_from(next_turn).unwrap_or_default();
    file.run(SET_NEXT_TURN, [worker_no, next_turn]).map(drop)
}

/// A worker begins a trial, or ends it.
pub(crate) fn set_in_trial(file: File<'_, '_>, worker_no: i64, in_trial: bool) -> Rows<()> {
    file.run(SET_IN_TRIAL, params![worker_no, in_trial]).map(drop)
}

selected! { CrewCol { NWorkers, NInTrial, } }

/// The live workers that have a service of this one, and those who have it in a queue of its own.
pub(crate) fn crews(file: File<'_, '_>, worker_no: i64) -> Rows<Vec<Crew>> {
    file.all(READ_CREWS, [worker_no], |row| {
        let row = Cells::of(row);
        let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let n_workers = size(row.unsigned(CrewCol::NWorkers)?);
        Ok(Crew { n_workers, n_in_trial: size(row.unsigned(CrewCol::NInTrial)?) })
    })
}

/// The number of a worker, alive or not.
pub(crate) fn number_of(file: File<'_, '_>, worker: &WorkerId) -> Rows<Option<i64>> {
    file.first(READ_WORKER_NO, [worker.as_str()], number)
}

selected! { Named { No, Id, } }

/// The workers that are not dead.
pub(crate) fn all(file: File<'_, '_>) -> Rows<Vec<(i64, WorkerId)>> {
    file.all(READ_WORKERS, [], |row| {
        let row = Cells::of(row);
        Ok((row.get(Named::No)?, row.name(Named::Id)?))
    })
}

/// A worker that was not found dead.
pub(crate) struct StoredLife {
    pub(crate) last_beat: LastBeat,
    pub(crate) lease: Duration,
    /// It went by itself.
    pub(crate) has_left: bool,
    /// The lock of its process.
    pub(crate) process_lock: String,
}

selected! { Life { Id, NBeats, LeaseMicros, HasLeft, ProcessLock, } }

pub(crate) fn lives(file: File<'_, '_>) -> Rows<Vec<StoredLife>> {
    file.all(READ_LIVES, [], |row| {
        let row = Cells::of(row);
        let worker = row.name(Life::Id)?;
        Ok(StoredLife {
            last_beat: LastBeat { worker, n_beats: row.unsigned(Life::NBeats)? },
            lease: Duration::from_micros(row.unsigned(Life::LeaseMicros)?),
            has_left: row.get(Life::HasLeft)?,
            process_lock: row.get(Life::ProcessLock)?,
        })
    })
}

/// The number of a worker of which nothing was heard since that beat.
pub(crate) fn find_silent(file: File<'_, '_>, beat: &LastBeat) -> Rows<Option<i64>> {
    file.first(FIND_SILENT, params![beat.worker.as_str(), int(beat.n_beats)], number)
}

/// Writes a queue of a worker.
pub(crate) fn insert_queue(
    file: File<'_, '_>,
    worker_no: i64,
    turn: i64,
    queue: &Queue,
) -> Rows<()> {
    file.run(INSERT_QUEUE, params![worker_no, turn, queue.as_str()]).map(drop)
}

/// The queues of a worker, in turn.
pub(crate) fn queues(file: File<'_, '_>, worker_no: i64) -> Rows<Vec<Queue>> {
    file.all(READ_QUEUES, [worker_no], |row| Cells::of(row).name(ONLY))
}

/// Writes that a worker has a service in a queue.
pub(crate) fn insert_service(
    file: File<'_, '_>,
    worker_no: i64,
    queue: &Queue,
    service: ServiceId,
) -> Rows<()> {
    file.run(INSERT_SERVICE, params![worker_no, queue.as_str(), service.0]).map(drop)
}

/// The services that a worker has.
pub(crate) fn services(file: File<'_, '_>, worker_no: i64) -> Rows<Vec<ServiceId>> {
    file.all(READ_SERVICES, [worker_no], |row| Cells::of(row).count(ONLY).map(ServiceId))
}

/// Whether any worker has a service in a queue.
pub(crate) fn is_served(file: File<'_, '_>, queue: &Queue, service: ServiceId) -> Rows<bool> {
    let found = file.first(IS_SERVED, params![queue.as_str(), service.0], |_| Ok(()))?;
    Ok(found.is_some())
}

/// A worker serves nothing any more.
pub(crate) fn delete_services(file: File<'_, '_>, worker_no: i64) -> Rows<()> {
    file.run(DELETE_SERVICES, [worker_no])?;
    file.run(DELETE_QUEUES, [worker_no]).map(drop)
}
