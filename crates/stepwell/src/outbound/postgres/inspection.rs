use async_trait::async_trait;
use stepwell_core::run::RunLog;

use super::lead::reap::READ_CLAIMS;
use super::rows::{
    attempt, corrupt, event, memo, queue, read_all, run, signal, task, tenant, timer, wait, worker,
};
use super::session::{PgResult, Session};
use super::sql::{self, Sql};
use super::{PostgresStore, Role};
use crate::ports::{Inspection, StoreDump, StoreError};

const DUMP_RUNS: Sql = sql::RUN.named("dump_runs");
const DUMP_TASKS: Sql = sql::TASK.named("dump_tasks");
const DUMP_ATTEMPTS: Sql = sql::ATTEMPT.named("dump_attempts");
const DUMP_EVENTS: Sql = sql::EVENT.named("dump_events");
const DUMP_WAITS: Sql = sql::WAIT.named("dump_waits");
const DUMP_SIGNALS: Sql = sql::SIGNAL.named("dump_signals");
const DUMP_MEMOS: Sql = sql::MEMO.named("dump_memos");
const READ_PLACES: Sql = sql::QUEUE.named("read_places");
const READ_TIMERS: Sql = sql::TIMER.named("read_timers");
const READ_WORKERS: Sql = sql::WORKER.named("read_workers");
const MISCOUNTED_CLAIMS: Sql = sql::WORKER.named("miscounted_claims");
const READY_BEFORE_WATERMARK: Sql = sql::POSITION.named("ready_before_watermark");
const READ_ADMITTED: Sql = sql::QUEUE.named("read_admitted");

#[async_trait]
impl Inspection for PostgresStore {
    async fn dump(&self) -> Result<StoreDump, StoreError> {
        let session = self.unopened(Role::Work).await?;
        session.open_snapshot().await?;
        let dump = dump(&session).await?;
        self.commit_session(session).await?;
        Ok(dump)
    }
}

/// All runs with their tasks and logs, a statement per table.
async fn runs(session: &Session) -> PgResult<StoreDump> {
    let mut dump = StoreDump::default();
    for row in session.all(DUMP_RUNS, &[]).await? {
        let run = run::read(&row)?.row;
        let log = RunLog { run, open: Vec::new(), attempts: Vec::new(), events: Vec::new() };
        dump.tasks.insert(log.run.key, Vec::new());
        dump.waits.insert(log.run.key, Vec::new());
        dump.signals.insert(log.run.key, Vec::new());
        dump.memos.insert(log.run.key, Vec::new());
        dump.runs.insert(log.run.key, log);
    }
    for row in session.all(DUMP_TASKS, &[]).await? {
        let (run, task) = task::read(&row)?;
        if let Some(log) = dump.runs.get_mut(&run).filter(|_| !task.state().is_terminal()) {
            log.open.push(task.clone());
        }
        dump.tasks.entry(run).or_default().push(task);
    }
    for row in session.all(DUMP_ATTEMPTS, &[]).await? {
        let (run, attempt) = attempt::read(&row)?;
        if let Some(log) = dump.runs.get_mut(&run) {
            log.attempts.push(attempt);
        }
    }
    for row in session.all(DUMP_EVENTS, &[]).await? {
        let (run, event) = event::read(&row)?;
        if let Some(log) = dump.runs.get_mut(&run) {
            log.events.push(event);
        }
    }
    for row in session.all(DUMP_WAITS, &[]).await? {
        let (run, wait) = wait::read(&row)?;
        dump.waits.entry(run).or_default().push(wait);
    }
    for row in session.all(DUMP_SIGNALS, &[]).await? {
        let (run, signal) = signal::read(&row)?;
        dump.signals.entry(run).or_default().push(signal);
    }
    for row in session.all(DUMP_MEMOS, &[]).await? {
        let (run, memo) = memo::read(&row)?;
        dump.memos.entry(run).or_default().push(memo);
    }
    Ok(dump)
}

async fn dump(session: &Session) -> PgResult<StoreDump> {
    let mut dump = runs(session).await?;
    dump.places.extend(read_all(&session.all(READ_PLACES, &[]).await?, queue::read_place)?);
    dump.timers.extend(read_all(&session.all(READ_TIMERS, &[]).await?, timer::read)?);
    for row in session.all(READ_WORKERS, &[]).await? {
        let (no, worker) = worker::read_name(&row)?;
        let claims = session.all(READ_CLAIMS, &[&vec![no]]).await?;
        let mut claims = read_all(&claims, |row| Ok(worker::read_claim(row)?.claim))?;
        claims.sort_unstable();
        dump.claims.insert(worker, claims);
    }
    if let Some(row) = session.one(MISCOUNTED_CLAIMS, &[]).await? {
        let token = worker::read_token(&row)?;
        return Err(corrupt(format!("claims of token {token:?} are miscounted")).into());
    }
    if let Some(row) = session.one(READY_BEFORE_WATERMARK, &[]).await? {
        let task = task::read_key(&row)?;
        return Err(corrupt(format!("{task:?} stands before the watermark of its queue")).into());
    }
    dump.admitted.extend(read_all(&session.all(READ_ADMITTED, &[]).await?, tenant::read_admitted)?);
    Ok(dump)
}
