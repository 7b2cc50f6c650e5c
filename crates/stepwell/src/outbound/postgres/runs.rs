use async_trait::async_trait;
use stepwell_core::id::{Node, RunId, RunKey, Tenant};
use stepwell_core::run::{RunLog, RunStatus, TaskRow};
use tokio_postgres::Row;
use uuid::Uuid;

use super::inputs::left_by;
use super::rows::{self, StoredRun, key, node, run_key};
use super::transaction::Transaction;
use super::{PostgresStore, statements};
use crate::ports::{Payload, RunFilter, RunPage, RunView, Runs, StoreError};

#[async_trait]
impl Runs for PostgresStore {
    async fn find(&self, tenant: &Tenant, id: &RunId) -> Result<Option<RunView>, StoreError> {
        let transaction = self.begin().await?;
        let (tenants, ids) = (vec![tenant.as_str()], vec![id.as_str()]);
        let row = transaction.one(statements::FIND_RUNS, &[&tenants, &ids]).await?;
        let found = optional_view(&transaction, row).await?;
        self.commit_transaction(transaction).await?;
        Ok(found)
    }

    async fn run(&self, run: RunKey) -> Result<Option<RunView>, StoreError> {
        let transaction = self.begin().await?;
        let row = transaction.one(statements::READ_RUN, &[&key(run)]).await?;
        let found = optional_view(&transaction, row).await?;
        self.commit_transaction(transaction).await?;
        Ok(found)
    }

    async fn tasks(&self, run: RunKey) -> Result<Vec<TaskRow>, StoreError> {
        let transaction = self.begin().await?;
        let tasks = transaction.read_tasks(run, false).await?;
        self.commit_transaction(transaction).await?;
        Ok(tasks)
    }

    async fn output(&self, run: RunKey, node: Node) -> Result<Option<Payload>, StoreError> {
        let transaction = self.begin().await?;
        let mut left = left_by(&transaction, [(run, node)]).await?;
        self.commit_transaction(transaction).await?;
        Ok(left.remove(&(run, node)).and_then(|(_, output)| output))
    }

    async fn outputs(&self, run: RunKey) -> Result<Vec<(Node, Payload)>, StoreError> {
        let transaction = self.begin().await?;
        let outputs = transaction.all(statements::READ_OUTPUTS, &[&key(run)]).await?;
        self.commit_transaction(transaction).await?;
        rows::read_all(&outputs, |row| Ok((node(row, 1)?, rows::payload(row, 2)?)))
    }

    async fn log(&self, run: RunKey) -> Result<Option<RunLog>, StoreError> {
        let transaction = self.begin_snapshot().await?;
        let row = transaction.one(statements::READ_RUN, &[&key(run)]).await?;
        let log = match row {
            Some(row) => Some(transaction.log(rows::run(&row)?).await?),
            None => None,
        };
        self.commit_transaction(transaction).await?;
        Ok(log)
    }

    async fn ended(&self, runs: &[RunKey]) -> Result<Vec<(RunKey, RunStatus)>, StoreError> {
        let transaction = self.begin().await?;
        let keys: Vec<Uuid> = runs.iter().map(|run| key(*run)).collect();
        let ended = transaction.all(statements::READ_ENDED, &[&keys]).await?;
        self.commit_transaction(transaction).await?;
        rows::read_all(&ended, |row| Ok((run_key(row, 0)?, rows::run_status(row, 1)?)))
    }

    async fn list(
        &self,
        filter: &RunFilter,
        before: Option<RunKey>,
        rows_max: usize,
    ) -> Result<RunPage, StoreError> {
        let transaction = self.begin().await?;
        let page = list(&transaction, filter, before, rows_max).await?;
        self.commit_transaction(transaction).await?;
        Ok(page)
    }
}

impl Transaction {
    pub(super) async fn read_tasks(
        &self,
        run: RunKey,
        open_only: bool,
    ) -> Result<Vec<TaskRow>, StoreError> {
        let tasks = self.all(statements::READ_TASKS, &[&key(run), &open_only]).await?;
        rows::read_all(&tasks, |row| Ok(rows::task(row)?.1))
    }

    pub(super) async fn log(&self, run: StoredRun) -> Result<RunLog, StoreError> {
        let run_key = run.row.key;
        let attempts = self.all(statements::READ_ATTEMPTS, &[&key(run_key)]).await?;
        let events = self.all(statements::READ_EVENTS, &[&key(run_key)]).await?;
        Ok(RunLog {
            run: run.row,
            open: self.read_tasks(run_key, true).await?,
            attempts: rows::read_all(&attempts, rows::attempt)?,
            events: rows::read_all(&events, rows::event)?,
        })
    }
}

async fn view(transaction: &Transaction, run: StoredRun) -> Result<RunView, StoreError> {
    let definition = transaction.definition(run.row.definition).await?;
    Ok(RunView { row: run.row, definition })
}

async fn optional_view(
    transaction: &Transaction,
    row: Option<Row>,
) -> Result<Option<RunView>, StoreError> {
    match row {
        Some(row) => view(transaction, rows::run(&row)?).await.map(Some),
        None => Ok(None),
    }
}

async fn list(
    transaction: &Transaction,
    filter: &RunFilter,
    before: Option<RunKey>,
    rows_max: usize,
) -> Result<RunPage, StoreError> {
    let before = key(before.unwrap_or(RunKey(u128::MAX)));
    let tenant = filter.tenant.as_ref().map(Tenant::as_str);
    let status = filter.status.map(|status| status as i16);
    let one_more = i64::try_from(rows_max + 1).unwrap_or(i64::MAX);
    let params: super::transaction::Params<'_> =
        &[&before, &tenant, &filter.workflow, &status, &one_more];
    let found = transaction.all(statements::LIST_RUNS, params).await?;
    let mut found = rows::read_all(&found, rows::run)?;
    let has_more = found.len() > rows_max;
    found.truncate(rows_max);
    let next = found.last().filter(|_| has_more).map(|run| run.row.key);
    let mut runs = Vec::with_capacity(found.len());
    for run in found {
        runs.push(view(transaction, run).await?);
    }
    Ok(RunPage { runs, next })
}
