use async_trait::async_trait;
use rusqlite::params;
use stepwell_core::id::{Node, RunId, RunKey, Tenant};
use stepwell_core::run::{RunLog, RunStatus, TaskRow};

use super::inputs::output;
use super::rows::{self, key};
use super::transaction::Transaction;
use super::{SqliteStore, statements};
use crate::ports::{Payload, RunFilter, RunPage, RunView, Runs, StoreError};

#[async_trait]
impl Runs for SqliteStore {
    async fn find(&self, tenant: &Tenant, id: &RunId) -> Result<Option<RunView>, StoreError> {
        let (tenant, id) = (tenant.clone(), id.clone());
        self.read(move |transaction| {
            let names = params![tenant.as_str(), id.as_str()];
            let found = transaction.first(statements::FIND_RUN, names, rows::run)?;
            found.map(|run| view(transaction, run)).transpose()
        })
        .await
    }

    async fn run(&self, run: RunKey) -> Result<Option<RunView>, StoreError> {
        self.read(move |transaction| {
            let found = transaction.stored_run(run)?;
            found.map(|run| view(transaction, run)).transpose()
        })
        .await
    }

    async fn tasks(&self, run: RunKey) -> Result<Vec<TaskRow>, StoreError> {
        self.read(move |transaction| transaction.tasks(run, false)).await
    }

    async fn output(&self, run: RunKey, node: Node) -> Result<Option<Payload>, StoreError> {
        self.read(move |transaction| output(transaction, run, node)).await
    }

    async fn outputs(&self, run: RunKey) -> Result<Vec<(Node, Payload)>, StoreError> {
        self.read(move |transaction| {
            transaction.all(statements::READ_OUTPUTS, [key(run)], |row| {
                Ok((rows::node(row, 0)?, rows::payload(row, 1)?))
            })
        })
        .await
    }

    async fn log(&self, run: RunKey) -> Result<Option<RunLog>, StoreError> {
        self.read(move |transaction| {
            let found = transaction.stored_run(run)?;
            found.map(|found| log(transaction, found)).transpose()
        })
        .await
    }

    async fn ended(&self, runs: &[RunKey]) -> Result<Vec<(RunKey, RunStatus)>, StoreError> {
        let runs = runs.to_vec();
        self.read(move |transaction| {
            let mut ended = Vec::new();
            for run in runs {
                let read = |row: &rusqlite::Row<'_>| rows::run_status(row.get(0)?);
                let status = transaction.first(statements::READ_ENDED, [key(run)], read)?;
                ended.extend(status.map(|status| (run, status)));
            }
            Ok(ended)
        })
        .await
    }

    async fn list(
        &self,
        filter: &RunFilter,
        before: Option<RunKey>,
        rows_max: usize,
    ) -> Result<RunPage, StoreError> {
        let filter = filter.clone();
        self.read(move |transaction| list(transaction, &filter, before, rows_max)).await
    }
}

fn view(transaction: &Transaction<'_, '_>, run: rows::StoredRun) -> Result<RunView, StoreError> {
    let definition = transaction.definition(run.row.definition)?;
    Ok(RunView { row: run.row, definition })
}

fn log(transaction: &Transaction<'_, '_>, run: rows::StoredRun) -> Result<RunLog, StoreError> {
    let run_key = run.row.key;
    Ok(RunLog {
        run: run.row,
        open: transaction.tasks(run_key, true)?,
        attempts: transaction.all(statements::READ_ATTEMPTS, [key(run_key)], rows::attempt)?,
        events: transaction.all(statements::READ_EVENTS, [key(run_key)], rows::event)?,
    })
}

fn list(
    transaction: &Transaction<'_, '_>,
    filter: &RunFilter,
    before: Option<RunKey>,
    rows_max: usize,
) -> Result<RunPage, StoreError> {
    let before = before.unwrap_or(RunKey(u128::MAX));
    let one_more = i64::try_from(rows_max + 1).unwrap_or(i64::MAX);
    let params = params![
        key(before),
        filter.tenant.as_ref().map(Tenant::as_str),
        filter.workflow,
        filter.status.map(|status| status as i64),
        one_more,
    ];
    let mut found = transaction.all(statements::LIST_RUNS, params, rows::run)?;
    let has_more = found.len() > rows_max;
    found.truncate(rows_max);
    let next = found.last().filter(|_| has_more).map(|run| run.row.key);
    let runs = found.into_iter().map(|run| view(transaction, run)).collect::<Result<_, _>>()?;
    Ok(RunPage { runs, next })
}
