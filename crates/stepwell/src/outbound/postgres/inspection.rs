use async_trait::async_trait;
use stepwell_core::fair::OrderKey;
use stepwell_core::id::WorkerId;
use stepwell_core::run::RunLog;

use super::error::corrupt;
use super::rows::{self, name, node, read_token, run_key, time, unsigned};
use super::transaction::Transaction;
use super::{PostgresStore, statements};
use crate::ports::{ClaimRef, Inspection, StoreDump, StoreError, TaskPlace};

#[async_trait]
impl Inspection for PostgresStore {
    async fn dump(&self) -> Result<StoreDump, StoreError> {
        let transaction = self.begin_snapshot().await?;
        let dump = dump(&transaction).await?;
        self.commit_transaction(transaction).await?;
        Ok(dump)
    }
}

/// All runs with their tasks and logs, a statement per table.
async fn runs(transaction: &Transaction) -> Result<StoreDump, StoreError> {
    let mut dump = StoreDump::default();
    for row in transaction.all(statements::DUMP_RUNS, &[]).await? {
        let run = rows::run(&row)?.row;
        let log = RunLog { run, open: Vec::new(), attempts: Vec::new(), events: Vec::new() };
        dump.tasks.insert(log.run.key, Vec::new());
        dump.runs.insert(log.run.key, log);
    }
    for row in transaction.all(statements::DUMP_TASKS, &[]).await? {
        let (run, task) = rows::task(&row)?;
        if let Some(log) = dump.runs.get_mut(&run).filter(|_| !task.state().is_terminal()) {
            log.open.push(task.clone());
        }
        dump.tasks.entry(run).or_default().push(task);
    }
    for row in transaction.all(statements::DUMP_ATTEMPTS, &[]).await? {
        if let Some(log) = dump.runs.get_mut(&run_key(&row, 13)?) {
            log.attempts.push(rows::attempt(&row)?);
        }
    }
    for row in transaction.all(statements::DUMP_EVENTS, &[]).await? {
        if let Some(log) = dump.runs.get_mut(&run_key(&row, 5)?) {
            log.events.push(rows::event(&row)?);
        }
    }
    Ok(dump)
}

async fn dump(transaction: &Transaction) -> Result<StoreDump, StoreError> {
    let mut dump = runs(transaction).await?;
    for row in transaction.all(statements::READ_PLACES, &[]).await? {
        let place = match row.try_get::<_, i32>(2)? {
            0 => TaskPlace::Ready(name(&row, 3)?, OrderKey(unsigned(&row, 4)?)),
            1 => TaskPlace::Throttled,
            _ => TaskPlace::Parked,
        };
        dump.places.insert((run_key(&row, 0)?, node(&row, 1)?), place);
    }
    for row in transaction.all(statements::READ_TIMERS, &[]).await? {
        dump.timers.insert((run_key(&row, 0)?, node(&row, 1)?), time(&row, 2)?);
    }
    for row in transaction.all(statements::READ_WORKERS, &[]).await? {
        let (no, worker): (i64, WorkerId) = (row.try_get(0)?, name(&row, 1)?);
        let claims = transaction.all(statements::READ_CLAIMS, &[&vec![no]]).await?;
        let claims = rows::read_all(&claims, |row| {
            let token = read_token(row, 3)?;
            Ok(ClaimRef { run: run_key(row, 1)?, node: node(row, 2)?, token })
        })?;
        dump.claims.insert(worker, claims);
    }
    if let Some(row) = transaction.one(statements::MISCOUNTED_CLAIMS, &[]).await? {
        let token = read_token(&row, 0)?;
        return Err(corrupt(format!("claims of token {token:?} are miscounted")));
    }
    if let Some(row) = transaction.one(statements::PASSED_OVER, &[]).await? {
        let task = (run_key(&row, 0)?, node(&row, 1)?);
        return Err(corrupt(format!("{task:?} stands where its queue is said to be passed")));
    }
    for row in transaction.all(statements::READ_ADMITTED, &[]).await? {
        let admitted = usize::try_from(unsigned(&row, 1)?).unwrap_or(usize::MAX);
        dump.admitted.insert(name(&row, 0)?, admitted);
    }
    Ok(dump)
}

#[cfg(feature = "testing")]
impl PostgresStore {
    /// Prepares every statement against the schema, as a test wants. Gives their number.
    ///
    /// # Errors
    /// With the first statement that does not fit, by name.
    pub async fn prepare_every_statement(&self) -> Result<usize, StoreError> {
        let client = self.shared.pool.get(super::connect::Role::Work).await?;
        for (name, sql) in statements::ALL {
            let prepared = client.prepare(&self.shared.pool.sql(sql)).await;
            prepared.map_err(|error| StoreError::Corrupt {
                what: format!("{name}: {}", super::error::describe(&error)),
            })?;
        }
        Ok(statements::ALL.len())
    }

    /// Every statement by name, under this store's schema, for tests that look at their plans.
    #[must_use]
    pub fn every_statement(&self) -> Vec<(&'static str, String)> {
        let statements = statements::ALL.iter();
        statements.map(|(name, sql)| (*name, self.shared.pool.sql(sql).into_owned())).collect()
    }

    /// What plans of the store's statements rest on.
    #[must_use]
    pub fn planner_settings(&self) -> String {
        let set = |(name, value): &(&str, &str)| format!("set {name} = {value}");
        statements::PLANNER_SETTINGS.iter().map(set).collect::<Vec<_>>().join("; ")
    }
}
