use async_trait::async_trait;
use stepwell_core::decide::SignalAnswer;
use stepwell_core::id::RunKey;
use stepwell_core::run::WaitRow;

use super::file::File;
use super::run::signal;
use super::{SqliteStore, rows};
use crate::ports::{SignalRequest, Signals, StoreError, StoredSignal, WaitingRuns};

#[async_trait]
impl Signals for SqliteStore {
    async fn signal(
        &self,
        requests: Vec<SignalRequest>,
    ) -> Result<Vec<Option<SignalAnswer>>, StoreError> {
        self.write(move |transaction| signal::send_all(transaction, requests)).await
    }

    async fn signals(&self, run: RunKey) -> Result<Vec<StoredSignal>, StoreError> {
        self.read(move |transaction| rows::signal::of_run(transaction.file, run)).await
    }

    async fn waits(&self, run: RunKey) -> Result<Vec<WaitRow>, StoreError> {
        self.read(move |transaction| rows::wait::of_run(transaction.file, run)).await
    }

    async fn waiting_runs(
        &self,
        asked: &WaitingRuns,
        after: Option<RunKey>,
        rows_max: usize,
    ) -> Result<Vec<RunKey>, StoreError> {
        let asked = asked.clone();
        self.read(move |transaction| waiting_runs(transaction.file, &asked, after, rows_max)).await
    }
}

/// Each definition of a workflow has its waiting runs in order; the first of all of them make up
/// the page.
fn waiting_runs(
    file: File<'_, '_>,
    asked: &WaitingRuns,
    after: Option<RunKey>,
    rows_max: usize,
) -> Result<Vec<RunKey>, StoreError> {
    let WaitingRuns { tenant, workflow, signal } = asked;
    let mut runs = Vec::new();
    for definition in rows::definition::ids_of_workflow(file, workflow)? {
        let of = (tenant, definition);
        runs.extend(rows::wait::waiting_runs(file, of, signal, after, rows_max)?);
    }
    runs.sort_unstable();
    runs.truncate(rows_max);
    Ok(runs)
}
