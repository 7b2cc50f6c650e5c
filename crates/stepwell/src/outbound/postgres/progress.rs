use async_trait::async_trait;
use stepwell_core::id::{RunKey, WorkerId};

use super::rows::progress::{self, ProgressArrays};
use super::rows::{key, read_all};
use super::sql::{self, Sql};
use super::{PostgresStore, Role};
use crate::ports::{Progress, ProgressReport, ReportedProgress, StoreError};

const TELL_PROGRESS: Sql = sql::PROGRESS.named("tell_progress");
const DELETE_STALE_PROGRESS: Sql = sql::PROGRESS.named("delete_stale_progress");
const READ_PROGRESS: Sql = sql::PROGRESS.named("read_progress");

#[async_trait]
impl Progress for PostgresStore {
    async fn report_progress(
        &self,
        worker: &WorkerId,
        reports: &[ProgressReport],
    ) -> Result<(), StoreError> {
        let session = self.begin(Role::Heartbeat).await?;
        session.run(DELETE_STALE_PROGRESS, &[&worker.as_str()]).await?;
        let now = session.now().as_micros();
        let ProgressArrays { runs, nodes, tokens, texts } = ProgressArrays::of(reports);
        session.run(TELL_PROGRESS, &[&now, &runs, &nodes, &tokens, &texts]).await?;
        self.commit_session(session).await?;
        Ok(())
    }

    async fn progress(&self, run: RunKey) -> Result<Vec<ReportedProgress>, StoreError> {
        let rows = self.query_once(Role::Work, READ_PROGRESS, &[&key(run)]).await?;
        read_all(&rows, progress::read)
    }
}
