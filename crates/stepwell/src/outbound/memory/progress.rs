use async_trait::async_trait;
use stepwell_core::id::{RunKey, Token, WorkerId};

use super::MemoryStore;
use super::tables::{StoredRun, Tables};
use crate::ports::{Progress, ProgressReport, ReportedProgress, StoreError};

#[async_trait]
impl Progress for MemoryStore {
    async fn report_progress(
        &self,
        _worker: &WorkerId,
        reports: &[ProgressReport],
    ) -> Result<(), StoreError> {
        self.transact(|tables| reports.iter().for_each(|report| keep(tables, report)));
        Ok(())
    }

    async fn progress(&self, run: RunKey) -> Result<Vec<ReportedProgress>, StoreError> {
        Ok(self.transact(|tables| {
            let Some(run) = tables.runs.get(&run) else { return Vec::new() };
            let told = run.progress.values().filter(|told| is_current(run, told));
            told.cloned().collect()
        }))
    }
}

fn keep(tables: &mut Tables, ProgressReport { claim, text }: &ProgressReport) {
    let told_at = tables.now;
    let Some(run) = tables.runs.get_mut(&claim.run) else { return };
    let (node, token, text) = (claim.node, claim.token, text.clone());
    let told = ReportedProgress { node, token, told_at, text };
    if is_current(run, &told) {
        run.progress.insert(node, told);
    }
    // What ended attempts told is forgotten when the run is told about next.
    let mut progress = std::mem::take(&mut run.progress);
    progress.retain(|_, told| is_current(run, told));
    run.progress = progress;
}

fn is_current(run: &StoredRun, told: &ReportedProgress) -> bool {
    let token = |node| -> Option<Token> { Some(run.tasks.get(node)?.claim()?.token) };
    token(&told.node) == Some(told.token)
}
