use async_trait::async_trait;
use stepwell_core::id::{Node, RunId, RunKey, Tenant};
use stepwell_core::limits::PAGE_LOOKS_MAX;
use stepwell_core::run::{RunLog, TaskRow};

use super::rows::run::StoredRun;
use super::run::inputs;
use super::writer::Transaction;
use super::{SqliteStore, rows};
use crate::ports::{
    AwaitedRun, Payload, RunEnd, RunFilter, RunPage, RunSnapshot, RunView, Runs, StoreError,
};

#[async_trait]
impl Runs for SqliteStore {
    async fn find(&self, tenant: &Tenant, id: &RunId) -> Result<Option<RunView>, StoreError> {
        let (tenant, id) = (tenant.clone(), id.clone());
        self.read(move |transaction| {
            let found = rows::run::find(transaction.file, &tenant, &id)?;
            found.map(|run| view(transaction, run)).transpose()
        })
        .await
    }

    async fn run(&self, run: RunKey) -> Result<Option<RunView>, StoreError> {
        self.read(move |transaction| {
            let found = rows::run::load(transaction.file, run)?;
            found.map(|run| view(transaction, run)).transpose()
        })
        .await
    }

    async fn tasks(&self, run: RunKey) -> Result<Vec<TaskRow>, StoreError> {
        self.read(move |transaction| rows::task::of_run(transaction.file, run)).await
    }

    async fn input(&self, run: RunKey) -> Result<Option<Payload>, StoreError> {
        self.read(move |transaction| inputs::read_input(transaction.file, run)).await
    }

    async fn output(&self, run: RunKey, node: Node) -> Result<Option<Payload>, StoreError> {
        self.read(move |transaction| inputs::read_output(transaction.file, run, node)).await
    }

    async fn outputs(&self, run: RunKey) -> Result<Vec<(Node, Payload)>, StoreError> {
        self.read(move |transaction| rows::payload::outputs(transaction.file, run)).await
    }

    async fn log(&self, run: RunKey) -> Result<Option<RunLog>, StoreError> {
        self.read(move |transaction| {
            let found = rows::run::load(transaction.file, run)?;
            found.map(|found| log(transaction, found)).transpose()
        })
        .await
    }

    async fn snapshot(&self, run: RunKey) -> Result<Option<RunSnapshot>, StoreError> {
        self.read(move |transaction| {
            let found = rows::run::load(transaction.file, run)?;
            found.map(|found| snapshot(transaction, found)).transpose()
        })
        .await
    }

    async fn ended(&self, runs: &[AwaitedRun]) -> Result<Vec<(RunKey, RunEnd)>, StoreError> {
        let runs = runs.to_vec();
        self.read(move |transaction| {
            let file = transaction.file;
            let mut ended = Vec::new();
            for AwaitedRun { run, output } in runs {
                let Some(end) = rows::run::ended(file, run)? else { continue };
                let end = end.with_output(output, |node| inputs::read_output(file, run, node))?;
                ended.push((run, end));
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

fn view(transaction: &Transaction<'_, '_>, run: StoredRun) -> Result<RunView, StoreError> {
    let definition = transaction.definitions.plan_of(transaction.file, run.row.definition)?;
    Ok(RunView { row: run.row, definition })
}

fn log(transaction: &Transaction<'_, '_>, run: StoredRun) -> Result<RunLog, StoreError> {
    let (file, key) = (transaction.file, run.row.key);
    Ok(RunLog {
        run: run.row,
        open: rows::task::open_of_run(file, key)?,
        attempts: rows::attempt::of_run(file, key)?,
        events: rows::event::of_run(file, key)?,
    })
}

fn snapshot(transaction: &Transaction<'_, '_>, run: StoredRun) -> Result<RunSnapshot, StoreError> {
    let (file, key) = (transaction.file, run.row.key);
    Ok(RunSnapshot {
        definition: transaction.definitions.plan_of(file, run.row.definition)?,
        log: log(transaction, run)?,
        tasks: rows::task::of_run(file, key)?,
        waits: rows::wait::of_run(file, key)?,
        signals: rows::signal::of_run(file, key)?,
        memos: rows::memo::of_run(file, key, None)?,
    })
}

fn list(
    transaction: &Transaction<'_, '_>,
    filter: &RunFilter,
    before: Option<RunKey>,
    rows_max: usize,
) -> Result<RunPage, StoreError> {
    let before = before.unwrap_or(RunKey(u128::MAX));
    let file = transaction.file;
    let looked_until =
        if filter.is_open() { None } else { rows::run::look_until(file, before, PAGE_LOOKS_MAX)? };
    let down_to = looked_until.unwrap_or(RunKey(0));
    // One more than fits tells that there is another page.
    let found = rows::run::list(file, filter, before, down_to, rows_max.saturating_add(1))?;
    let found = found.into_iter().map(|run| view(transaction, run)).collect::<Result<_, _>>()?;
    Ok(RunPage::cut(found, rows_max, looked_until))
}
