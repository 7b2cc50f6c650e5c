use async_trait::async_trait;
use stepwell_core::run::RunLog;

use super::file::File;
use super::{SqliteStore, rows};
use crate::ports::{Inspection, StoreDump, StoreError};

#[async_trait]
impl Inspection for SqliteStore {
    async fn dump(&self) -> Result<StoreDump, StoreError> {
        self.read(|transaction| dump(transaction.file)).await
    }
}

fn dump(file: File<'_, '_>) -> Result<StoreDump, StoreError> {
    let mut dump = runs(file)?;
    dump.places.extend(rows::queue::all_places(file)?);
    dump.timers.extend(rows::timer::all(file)?);
    for (no, worker) in rows::worker::all(file)? {
        let claims = rows::task::claims_of(file, no)?;
        dump.claims.insert(worker, claims.into_iter().map(|(claim, _)| claim).collect());
    }
    for (tenant, row) in rows::tenant::all(file)? {
        dump.admitted.insert(tenant, row.n_ready as usize + row.n_running as usize);
    }
    Ok(dump)
}

/// All runs with their tasks, logs, waits, signals and memos, a statement per table.
fn runs(file: File<'_, '_>) -> Result<StoreDump, StoreError> {
    let mut dump = StoreDump::default();
    for run in rows::run::all(file)? {
        let (key, run) = (run.row.key, run.row);
        let log = RunLog { run, open: Vec::new(), attempts: Vec::new(), events: Vec::new() };
        dump.tasks.insert(key, Vec::new());
        dump.waits.insert(key, Vec::new());
        dump.signals.insert(key, Vec::new());
        dump.memos.insert(key, Vec::new());
        dump.runs.insert(key, log);
    }
    for (run, task) in rows::task::all(file)? {
        if let Some(log) = dump.runs.get_mut(&run).filter(|_| !task.state().is_terminal()) {
            log.open.push(task.clone());
        }
        dump.tasks.entry(run).or_default().push(task);
    }
    for (run, attempt) in rows::attempt::all(file)? {
        dump.runs.entry(run).and_modify(|log| log.attempts.push(attempt));
    }
    for (run, event) in rows::event::all(file)? {
        dump.runs.entry(run).and_modify(|log| log.events.push(event));
    }
    for (run, wait) in rows::wait::all(file)? {
        dump.waits.entry(run).or_default().push(wait);
    }
    for (run, signal) in rows::signal::all(file)? {
        dump.signals.entry(run).or_default().push(signal);
    }
    for (run, memo) in rows::memo::all(file)? {
        dump.memos.entry(run).or_default().push(memo);
    }
    Ok(dump)
}
