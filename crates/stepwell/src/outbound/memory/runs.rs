use async_trait::async_trait;
use stepwell_core::id::{Node, RunId, RunKey, Tenant};
use stepwell_core::limits::PAGE_LOOKS_MAX;
use stepwell_core::run::{RunLog, TaskRow, TaskState};

use super::MemoryStore;
use super::memos::memos;
use super::signals::{resumed_with, waits};
use super::tables::{StoredRun, Tables};
use crate::ports::{
    AwaitedRun, Payload, RunEnd, RunFilter, RunPage, RunSnapshot, RunView, Runs, StoreError,
};

#[async_trait]
impl Runs for MemoryStore {
    async fn find(&self, tenant: &Tenant, id: &RunId) -> Result<Option<RunView>, StoreError> {
        self.transact(|tables| {
            let key = tables.run_ids.get(&(tenant.clone(), id.clone())).copied();
            key.map(|key| view(tables, key)).transpose()
        })
    }

    async fn run(&self, run: RunKey) -> Result<Option<RunView>, StoreError> {
        self.transact(|tables| {
            tables.runs.contains_key(&run).then(|| view(tables, run)).transpose()
        })
    }

    async fn tasks(&self, run: RunKey) -> Result<Vec<TaskRow>, StoreError> {
        Ok(self.transact(|tables| {
            let tasks = tables.runs.get(&run).map(|run| run.tasks.values());
            tasks.into_iter().flatten().cloned().collect()
        }))
    }

    async fn input(&self, run: RunKey) -> Result<Option<Payload>, StoreError> {
        Ok(self.transact(|tables| tables.runs.get(&run).map(|run| run.input.clone())))
    }

    async fn output(&self, run: RunKey, node: Node) -> Result<Option<Payload>, StoreError> {
        Ok(self.transact(|tables| tables.runs.get(&run).and_then(|run| output(run, node))))
    }

    async fn outputs(&self, run: RunKey) -> Result<Vec<(Node, Payload)>, StoreError> {
        Ok(self.transact(|tables| {
            let Some(run) = tables.runs.get(&run) else { return Vec::new() };
            run.tasks.keys().filter_map(|node| Some((*node, output(run, *node)?))).collect()
        }))
    }

    async fn log(&self, run: RunKey) -> Result<Option<RunLog>, StoreError> {
        Ok(self.transact(|tables| tables.runs.get(&run).map(log)))
    }

    async fn snapshot(&self, run: RunKey) -> Result<Option<RunSnapshot>, StoreError> {
        self.transact(|tables| tables.runs.get(&run).map(|run| snapshot(tables, run)).transpose())
    }

    async fn ended(&self, runs: &[AwaitedRun]) -> Result<Vec<(RunKey, RunEnd)>, StoreError> {
        self.transact(|tables| {
            let end = |awaited: &AwaitedRun| {
                let run = tables.runs.get(&awaited.run)?;
                let end = run.row.status.is_terminal().then(|| RunEnd::of(&run.row, None))?;
                let end = end.with_output(awaited.output, |node| Ok(output(run, node)));
                Some(end.map(|end| (awaited.run, end)))
            };
            runs.iter().filter_map(end).collect()
        })
    }

    async fn list(
        &self,
        filter: &RunFilter,
        before: Option<RunKey>,
        rows_max: usize,
    ) -> Result<RunPage, StoreError> {
        self.transact(|tables| {
            let until = before.unwrap_or(RunKey(u128::MAX));
            let mut keys = tables.run_keys.range(..until).rev();
            let looks_max = if filter.is_open() { usize::MAX } else { PAGE_LOOKS_MAX };
            let looked_until = looks_max.checked_sub(1).and_then(|n| keys.clone().nth(n)).copied();
            let runs = keys.by_ref().take(looks_max).map(|key| view(tables, *key));
            let is_meant =
                |run: &Result<RunView, _>| run.as_ref().map_or(true, |run| matches(filter, run));
            // One more than fits tells that there is another page.
            let found: Result<Vec<RunView>, _> =
                runs.filter(is_meant).take(rows_max.saturating_add(1)).collect();
            Ok(RunPage::cut(found?, rows_max, looked_until))
        })
    }
}

fn view(tables: &Tables, key: RunKey) -> Result<RunView, StoreError> {
    let run = tables.run(key)?;
    Ok(RunView { row: run.row.clone(), definition: tables.plan_of(run)? })
}

fn snapshot(tables: &Tables, run: &StoredRun) -> Result<RunSnapshot, StoreError> {
    Ok(RunSnapshot {
        log: log(run),
        definition: tables.plan_of(run)?,
        tasks: run.tasks.values().cloned().collect(),
        waits: waits(run),
        signals: run.signals.values().cloned().collect(),
        memos: memos(run),
    })
}

fn matches(filter: &RunFilter, run: &RunView) -> bool {
    filter.tenant.as_ref().is_none_or(|tenant| *tenant == run.row.tenant)
        && filter.status.is_none_or(|status| status == run.row.status)
        && filter.workflow.as_ref().is_none_or(|name| *name == run.definition.definition.workflow)
}

/// What a task left: a completed one without an output of its own has the empty payload.
pub(super) fn output(run: &StoredRun, node: Node) -> Option<Payload> {
    let is_completed = |task: &&TaskRow| task.state() == TaskState::Completed;
    let task = run.tasks.get(&node).filter(is_completed)?;
    let received = || task.resumed.map(|resumed| resumed_with(run, resumed));
    Some(run.outputs.get(&node).cloned().or_else(received).unwrap_or_else(Payload::empty))
}

pub(super) fn log(run: &StoredRun) -> RunLog {
    RunLog {
        run: run.row.clone(),
        open: run.tasks.values().filter(|task| !task.state().is_terminal()).cloned().collect(),
        attempts: run.attempts.clone(),
        events: run.events.clone(),
    }
}
