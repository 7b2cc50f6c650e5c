use async_trait::async_trait;
use stepwell_core::id::{Node, RunId, RunKey, Tenant};
use stepwell_core::limits::PAGE_LOOKS_MAX;
use stepwell_core::run::{RunLog, TaskRow};
use tokio_postgres::Row;

use super::lookup::IdLookup;
use super::memos::read_memos;
use super::rows::run::StoredRun;
use super::rows::{
    attempt, event, int32, key, keys, payload, read_all, rows_max as limit, run, signal, task, wait,
};
use super::run::inbox::READ_WAITS;
use super::run::inputs::READ_INPUTS;
use super::run::start::FIND_RUNS;
use super::session::{Params, PgResult, Session};
use super::signals::READ_SIGNALS;
use super::sql::{self, Sql};
use super::{PostgresStore, Role};
use crate::ports::{
    AwaitedRun, Payload, RunEnd, RunFilter, RunPage, RunSnapshot, RunView, Runs, StoreError,
};

const READ_RUN: Sql = sql::RUN.named("read_run");
const READ_ENDED: Sql = sql::RUN.named("read_ended");
const LOOK_UNTIL: Sql = sql::RUN.named("look_until");
const LIST_RUNS: Sql = sql::RUN.named("list_runs");
const READ_TASKS: Sql = sql::TASK.named("read_tasks");
const READ_ATTEMPTS: Sql = sql::ATTEMPT.named("read_attempts");
const READ_EVENTS: Sql = sql::EVENT.named("read_events");
const READ_OUTPUT: Sql = sql::PAYLOAD.named("read_output");
const READ_OUTPUTS: Sql = sql::PAYLOAD.named("read_outputs");

#[async_trait]
impl Runs for PostgresStore {
    async fn find(&self, tenant: &Tenant, id: &RunId) -> Result<Option<RunView>, StoreError> {
        let session = self.begin(Role::Work).await?;
        let (tenants, ids) = (vec![tenant.as_str()], vec![id.as_str()]);
        let row = session.one(FIND_RUNS, &[&tenants, &ids]).await?;
        let found = optional_view(&self.shared.ids(&session), row).await?;
        self.commit_session(session).await?;
        Ok(found)
    }

    async fn run(&self, run: RunKey) -> Result<Option<RunView>, StoreError> {
        let session = self.begin(Role::Work).await?;
        let row = session.one(READ_RUN, &[&key(run)]).await?;
        let found = optional_view(&self.shared.ids(&session), row).await?;
        self.commit_session(session).await?;
        Ok(found)
    }

    async fn tasks(&self, run: RunKey) -> Result<Vec<TaskRow>, StoreError> {
        let session = self.begin(Role::Work).await?;
        let tasks = read_tasks(&session, run, false).await?;
        self.commit_session(session).await?;
        Ok(tasks)
    }

    async fn input(&self, run: RunKey) -> Result<Option<Payload>, StoreError> {
        let rows = self.query_once(Role::Work, READ_INPUTS, &[&keys(&[run])]).await?;
        Ok(payload::read_inputs(&rows)?.remove(&run))
    }

    async fn output(&self, run: RunKey, node: Node) -> Result<Option<Payload>, StoreError> {
        let session = self.begin(Role::Work).await?;
        let row = session.one(READ_OUTPUT, &[&key(run), &int32(node.0)]).await?;
        self.commit_session(session).await?;
        row.as_ref().map(|row| Ok(payload::read_left(row)?.1)).transpose()
    }

    async fn outputs(&self, run: RunKey) -> Result<Vec<(Node, Payload)>, StoreError> {
        let session = self.begin(Role::Work).await?;
        let outputs = session.all(READ_OUTPUTS, &[&key(run)]).await?;
        self.commit_session(session).await?;
        read_all(&outputs, payload::read_left)
    }

    async fn log(&self, run: RunKey) -> Result<Option<RunLog>, StoreError> {
        let session = self.unopened(Role::Work).await?;
        session.open_snapshot().await?;
        let row = session.one(READ_RUN, &[&key(run)]).await?;
        let log = match row {
            Some(row) => Some(read_log(&session, run::read(&row)?).await?),
            None => None,
        };
        self.commit_session(session).await?;
        Ok(log)
    }

    async fn snapshot(&self, run: RunKey) -> Result<Option<RunSnapshot>, StoreError> {
        let session = self.unopened(Role::Work).await?;
        session.open_snapshot().await?;
        let row = session.one(READ_RUN, &[&key(run)]).await?;
        let snapshot = match row {
            Some(row) => Some(read_snapshot(&self.shared.ids(&session), run::read(&row)?).await?),
            None => None,
        };
        self.commit_session(session).await?;
        Ok(snapshot)
    }

    async fn ended(&self, runs: &[AwaitedRun]) -> Result<Vec<(RunKey, RunEnd)>, StoreError> {
        let keys = keys(runs.iter().map(|awaited| &awaited.run));
        let nodes = runs.iter().map(|awaited| awaited.output.map(|node| int32(node.0)));
        let nodes: Vec<Option<i32>> = nodes.collect();
        let ended = self.query_once(Role::Work, READ_ENDED, &[&keys, &nodes]).await?;
        read_all(&ended, run::read_ended)
    }

    async fn list(
        &self,
        filter: &RunFilter,
        before: Option<RunKey>,
        rows_max: usize,
    ) -> Result<RunPage, StoreError> {
        let session = self.begin(Role::Work).await?;
        let page = list(&self.shared.ids(&session), filter, before, rows_max).await?;
        self.commit_session(session).await?;
        Ok(page)
    }
}

async fn read_tasks(session: &Session, run: RunKey, open_only: bool) -> PgResult<Vec<TaskRow>> {
    let tasks = session.all(READ_TASKS, &[&key(run), &open_only]).await?;
    Ok(read_all(&tasks, |row| Ok(task::read(row)?.1))?)
}

async fn read_log(session: &Session, run: StoredRun) -> PgResult<RunLog> {
    let run_key = run.row.key;
    let attempts = session.all(READ_ATTEMPTS, &[&key(run_key)]).await?;
    let events = session.all(READ_EVENTS, &[&key(run_key)]).await?;
    Ok(RunLog {
        run: run.row,
        open: read_tasks(session, run_key, true).await?,
        attempts: read_all(&attempts, |row| Ok(attempt::read(row)?.1))?,
        events: read_all(&events, |row| Ok(event::read(row)?.1))?,
    })
}

async fn read_snapshot(ids: &IdLookup<'_>, run: StoredRun) -> PgResult<RunSnapshot> {
    let (session, run_key) = (ids.session, run.row.key);
    let definition = ids.plan_of(&run.row).await?;
    let waits = session.all(READ_WAITS, &[&keys(&[run_key])]).await?;
    let signals = session.all(READ_SIGNALS, &[&key(run_key)]).await?;
    Ok(RunSnapshot {
        log: read_log(session, run).await?,
        definition,
        tasks: read_tasks(session, run_key, false).await?,
        waits: read_all(&waits, |row| Ok(wait::read(row)?.1))?,
        signals: read_all(&signals, signal::read_stored)?,
        memos: read_memos(session, run_key).await?,
    })
}

async fn view(ids: &IdLookup<'_>, run: StoredRun) -> PgResult<RunView> {
    let definition = ids.plan_of(&run.row).await?;
    Ok(RunView { row: run.row, definition })
}

async fn optional_view(ids: &IdLookup<'_>, row: Option<Row>) -> PgResult<Option<RunView>> {
    match row {
        Some(row) => view(ids, run::read(&row)?).await.map(Some),
        None => Ok(None),
    }
}

async fn list(
    ids: &IdLookup<'_>,
    filter: &RunFilter,
    before: Option<RunKey>,
    rows_max: usize,
) -> PgResult<RunPage> {
    let before = key(before.unwrap_or(RunKey(u128::MAX)));
    let looked_until = if filter.is_open() {
        None
    } else {
        ids.session.one(LOOK_UNTIL, &[&before, &(limit(PAGE_LOOKS_MAX) - 1)]).await?
    };
    let looked_until = looked_until.as_ref().map(run::read_key).transpose()?;
    let down_to = key(looked_until.unwrap_or(RunKey(0)));
    let tenant = filter.tenant.as_ref().map(Tenant::as_str);
    let status = filter.status.map(|status| status as i16);
    let one_more = limit(rows_max + 1);
    let params: Params<'_> = &[&before, &tenant, &filter.workflow, &status, &one_more, &down_to];
    let found = ids.session.all(LIST_RUNS, params).await?;
    let mut runs = Vec::with_capacity(found.len());
    for row in &found {
        runs.push(view(ids, run::read(row)?).await?);
    }
    Ok(RunPage::cut(runs, rows_max, looked_until))
}
