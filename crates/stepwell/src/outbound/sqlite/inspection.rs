use async_trait::async_trait;
use stepwell_core::fair::OrderKey;
use stepwell_core::id::WorkerId;

use super::rows::{name, node, run_key, time, unsigned};
use super::runs::log;
use super::transaction::Transaction;
use super::{SqliteStore, statements};
use crate::ports::{ClaimRef, Inspection, StoreDump, StoreError, TaskPlace};

#[async_trait]
impl Inspection for SqliteStore {
    async fn dump(&self) -> Result<StoreDump, StoreError> {
        self.read(|transaction| dump(transaction)).await
    }
}

fn dump(transaction: &Transaction<'_>) -> Result<StoreDump, StoreError> {
    let mut dump = StoreDump::default();
    for run in transaction.all(statements::READ_RUN_KEYS, [], |row| run_key(row, 0))? {
        dump.runs.insert(run, log(transaction, transaction.known_run(run)?)?);
        dump.tasks.insert(run, transaction.tasks(run, false)?);
    }
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
