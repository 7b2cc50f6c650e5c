use async_trait::async_trait;
use stepwell_core::id::{Node, RunId, RunKey, Tenant};
use stepwell_core::run::{RunLog, RunStatus, TaskRow, TaskState};

use super::MemoryStore;
use super::tables::{RunBook, Tables};
use crate::ports::{Payload, RunFilter, RunPage, RunView, Runs, StoreError};

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
            let tasks = tables.runs.get(&run).map(|book| book.tasks.values());
            tasks.into_iter().flatten().cloned().collect()
        }))
    }

    async fn output(&self, run: RunKey, node: Node) -> Result<Option<Payload>, StoreError> {
        Ok(self.transact(|tables| tables.runs.get(&run).and_then(|book| output(book, node))))
    }

    async fn outputs(&self, run: RunKey) -> Result<Vec<(Node, Payload)>, StoreError> {
        Ok(self.transact(|tables| {
            let outputs = tables.runs.get(&run).map(|book| book.outputs.iter());
            let outputs = outputs.into_iter().flatten();
            outputs.map(|(node, output)| (*node, output.clone())).collect()
        }))
    }

    async fn log(&self, run: RunKey) -> Result<Option<RunLog>, StoreError> {
        Ok(self.transact(|tables| tables.runs.get(&run).map(log)))
    }

    async fn ended(&self, runs: &[RunKey]) -> Result<Vec<(RunKey, RunStatus)>, StoreError> {
        Ok(self.transact(|tables| {
            let status = |run: &RunKey| Some((*run, tables.runs.get(run)?.row.status));
            runs.iter().filter_map(status).filter(|(_, status)| status.is_terminal()).collect()
        }))
    }

    async fn list(
        &self,
        filter: &RunFilter,
        before: Option<RunKey>,
        rows_max: usize,
    ) -> Result<RunPage, StoreError> {
        self.transact(|tables| {
            let mut runs = Vec::new();
            let until = before.unwrap_or(RunKey(u128::MAX));
            for key in tables.run_keys.range(..until).rev() {
                let run = view(tables, *key)?;
                if !matches(filter, &run) {
                    continue;
                }
                if runs.len() == rows_max {
                    let next = runs.last().map(|last: &RunView| last.row.key);
                    return Ok(RunPage { runs, next });
                }
                runs.push(run);
            }
            Ok(RunPage { runs, next: None })
        })
    }
}

fn view(tables: &Tables, key: RunKey) -> Result<RunView, StoreError> {
    let row = tables.book(key)?.row.clone();
    let definition = tables.definition(row.definition)?;
    Ok(RunView { row, definition })
}

fn matches(filter: &RunFilter, run: &RunView) -> bool {
    filter.tenant.as_ref().is_none_or(|tenant| *tenant == run.row.tenant)
        && filter.status.is_none_or(|status| status == run.row.status)
        && filter.workflow.as_ref().is_none_or(|name| *name == run.definition.definition.workflow)
}

/// What a task left: a completed one without an output of its own has the empty payload.
pub(super) fn output(book: &RunBook, node: Node) -> Option<Payload> {
    let is_completed = |task: &TaskRow| task.state() == TaskState::Completed;
    book.tasks
        .get(&node)
        .is_some_and(is_completed)
        .then(|| book.outputs.get(&node).cloned().unwrap_or_else(Payload::empty))
}

pub(super) fn log(book: &RunBook) -> RunLog {
    RunLog {
        run: book.row.clone(),
        open: book.tasks.values().filter(|task| !task.state().is_terminal()).cloned().collect(),
        attempts: book.attempts.clone(),
        events: book.events.clone(),
    }
}
