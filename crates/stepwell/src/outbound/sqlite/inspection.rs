use async_trait::async_trait;
use rusqlite::Row;
use stepwell_core::fair::OrderKey;
use stepwell_core::id::WorkerId;
use stepwell_core::run::RunLog;

use super::rows::{self, name, node, run_key, time, unsigned};
use super::transaction::Transaction;
use super::{SqliteStore, statements};
use crate::ports::{ClaimRef, Inspection, StoreDump, StoreError, TaskPlace};

#[async_trait]
impl Inspection for SqliteStore {
    async fn dump(&self) -> Result<StoreDump, StoreError> {
        self.read(|transaction| dump(transaction)).await
    }
}

/// All runs with their tasks and logs, a statement per table.
fn runs(transaction: &Transaction<'_, '_>) -> Result<StoreDump, StoreError> {
    let mut dump = StoreDump::default();
    for run in transaction.all(statements::DUMP_RUNS, [], rows::run)? {
        let (key, run) = (run.row.key, run.row);
        let log = RunLog { run, open: Vec::new(), attempts: Vec::new(), events: Vec::new() };
        dump.tasks.insert(key, Vec::new());
        dump.runs.insert(key, log);
    }
    let tasks = |row: &Row<'_>| Ok((run_key(row, 13)?, rows::task(row)?));
    for (run, task) in transaction.all(statements::DUMP_TASKS, [], tasks)? {
        if let Some(log) = dump.runs.get_mut(&run).filter(|_| !task.state().is_terminal()) {
            log.open.push(task.clone());
        }
        dump.tasks.entry(run).or_default().push(task);
    }
    let attempts = |row: &Row<'_>| Ok((run_key(row, 13)?, rows::attempt(row)?));
    for (run, attempt) in transaction.all(statements::DUMP_ATTEMPTS, [], attempts)? {
        dump.runs.entry(run).and_modify(|log| log.attempts.push(attempt));
    }
    let events = |row: &Row<'_>| Ok((run_key(row, 5)?, rows::event(row)?));
    for (run, event) in transaction.all(statements::DUMP_EVENTS, [], events)? {
        dump.runs.entry(run).and_modify(|log| log.events.push(event));
    }
    Ok(dump)
}

fn dump(transaction: &Transaction<'_, '_>) -> Result<StoreDump, StoreError> {
    let mut dump = runs(transaction)?;
    let places = transaction.all(statements::READ_PLACES, [], |row| {
        let place = match row.get::<_, i64>(2)? {
            0 => TaskPlace::Ready(name(row, 3)?, OrderKey(unsigned(row, 4)?)),
            1 => TaskPlace::Throttled,
            _ => TaskPlace::Parked,
        };
        Ok(((run_key(row, 0)?, node(row, 1)?), place))
    })?;
    dump.places.extend(places);
    dump.timers.extend(transaction.all(statements::READ_TIMERS, [], |row| {
        Ok(((run_key(row, 0)?, node(row, 1)?), time(row, 2)?))
    })?);
    let workers = transaction.all(statements::READ_WORKERS, [], |row| {
        Ok((row.get::<_, i64>(0)?, name::<WorkerId>(row, 1)?))
    })?;
    for (no, worker) in workers {
        let claims = transaction.all(statements::READ_CLAIMS, [no], |row| {
            let token = super::rows::read_token(row, 2)?;
            Ok(ClaimRef { run: run_key(row, 0)?, node: node(row, 1)?, token })
        })?;
        dump.claims.insert(worker, claims);
    }
    let tenants = transaction.all(statements::READ_TENANTS, [], |row| {
        Ok((name(row, 1)?, unsigned(row, 5)? + unsigned(row, 6)?))
    })?;
    for (tenant, admitted) in tenants {
        dump.admitted.insert(tenant, usize::try_from(admitted).unwrap_or(usize::MAX));
    }
    Ok(dump)
}
