use async_trait::async_trait;
use stepwell_core::id::{RunKey, WorkerId};

use super::{SqliteStore, rows};
use crate::ports::{Progress, ProgressReport, ReportedProgress, StoreError};

#[async_trait]
impl Progress for SqliteStore {
    /// It need not wait for the disk: a power cut ends the attempts that it is about.
    async fn report_progress(
        &self,
        worker: &WorkerId,
        reports: &[ProgressReport],
    ) -> Result<(), StoreError> {
        let (worker, reports) = (worker.clone(), reports.to_vec());
        self.write_without_wait(move |transaction| {
            rows::progress::forget_stale(transaction.file, &worker)?;
            let mut reports = reports.iter();
            reports
                .try_for_each(|told| rows::progress::tell(transaction.file, told, transaction.now))
        })
        .await
    }

    async fn progress(&self, run: RunKey) -> Result<Vec<ReportedProgress>, StoreError> {
        self.read(move |transaction| rows::progress::of_run(transaction.file, run)).await
    }
}
