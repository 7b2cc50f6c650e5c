//! Runs under change, with those of their tasks that were needed.

use std::collections::btree_map::{BTreeMap, Entry};
use std::collections::hash_map::{Entry as MapEntry, HashMap};
use std::hash::BuildHasherDefault;

use stepwell_core::id::{Node, RunId, RunKey, Tenant};
use stepwell_core::queue::TenantNo;
use stepwell_core::run::{RunRow, TaskRow};

use super::cached_task::CachedTask;
use super::worker_numbers::WorkerNumbers;
use crate::outbound::sqlite::file::{File, KeyHasher, corrupt};
use crate::outbound::sqlite::rows::{run, task};
use crate::ports::{Payload, StoreError};

/// New runs are remembered up to this many: what was started last is claimed last.
const FRESH_RUNS_MAX: usize = 4_096;

/// What of a run's row is not in the file yet. Each writes what those before it write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum RunChange {
    #[default]
    None,
    /// What a run that goes on changes.
    Advance,
    /// What a run changes that ends without a failure.
    End,
    Whole,
}

/// A run under change, with those of its tasks that were needed.
pub(crate) struct CachedRun {
    pub(crate) row: RunRow,
    /// The number by which other rows name it.
    pub(crate) no: i64,
    pub(crate) tenant_no: TenantNo,
    change: RunChange,
    /// It was started by the call that is under way.
    is_fresh: bool,
    /// Its input, if that is small and was seen here.
    pub(crate) input: Option<Payload>,
    pub(crate) tasks: BTreeMap<Node, Box<CachedTask>>,
    /// In the order of the changes, perhaps several times.
    tasks_changed: Vec<Node>,
}

impl CachedRun {
    fn stored(stored: run::StoredRun) -> Self {
        Self {
            row: stored.row,
            no: stored.no,
            tenant_no: stored.tenant_no,
            change: RunChange::None,
            is_fresh: false,
            input: None,
            tasks: BTreeMap::new(),
            tasks_changed: Vec::new(),
        }
    }

    /// A run whose row was just inserted; those of its tasks were not.
    pub(crate) fn fresh(
        row: RunRow,
        no: i64,
        tenant_no: TenantNo,
        input: Option<Payload>,
        tasks: impl IntoIterator<Item = TaskRow>,
    ) -> Self {
        let task = |row: TaskRow| (row.node, Box::new(CachedTask::fresh(row)));
        let tasks: BTreeMap<Node, Box<CachedTask>> = tasks.into_iter().map(task).collect();
        let (change, tasks_changed) = (RunChange::None, tasks.keys().copied().collect());
        Self { row, no, tenant_no, change, is_fresh: true, input, tasks, tasks_changed }
    }

    /// Takes over a changed row of the run. Whole rows are compared, so that a column which no
    /// narrow update knows of leads to the update of all.
    pub(crate) fn set_row(&mut self, row: RunRow) {
        if self.row == row {
            return;
        }
        let change = if row.status == self.row.status {
            run::copy_advance(&row, &mut self.row);
            RunChange::Advance
        } else {
            run::copy_end(&row, &mut self.row);
            RunChange::End
        };
        let change = if self.row == row { change } else { RunChange::Whole };
        self.change = self.change.max(change);
        self.row = row;
    }

    /// Takes over a changed row of a task; its place stays as it is.
    pub(crate) fn set_task(&mut self, row: TaskRow) {
        let node = row.node;
        self.tasks_changed.push(node);
        match self.tasks.get_mut(&node) {
            Some(task) => task.row = row,
            None => {
                self.tasks.insert(node, Box::new(CachedTask::fresh(row)));
            }
        }
    }

    /// A task, which is read if it is not there yet.
    fn load_task(
        &mut self,
        file: File<'_, '_>,
        node: Node,
    ) -> Result<Option<&mut CachedTask>, StoreError> {
        match self.tasks.entry(node) {
            Entry::Occupied(task) => Ok(Some(task.into_mut().as_mut())),
            Entry::Vacant(room) => {
                let task = task::load(file, self.no, node)?.map(CachedTask::stored);
                Ok(task.map(|task| room.insert(Box::new(task)).as_mut()))
            }
        }
    }

    fn write(&mut self, file: File<'_, '_>, workers: &mut WorkerNumbers) -> Result<(), StoreError> {
        let mut changed = std::mem::take(&mut self.tasks_changed);
        changed.sort_unstable();
        changed.dedup();
        for node in changed {
            let Some(task) = self.tasks.get_mut(&node) else { continue };
            task.write(file, self.no, workers)?;
            if task.row.state().is_terminal() {
                self.tasks.remove(&node);
            } else {
                task.mark_written();
            }
        }
        match std::mem::take(&mut self.change) {
            RunChange::None => Ok(()),
            RunChange::Advance => run::advance(file, self.no, &self.row),
            RunChange::End => run::end(file, self.no, &self.row),
            RunChange::Whole => run::update(file, self.no, &self.row),
        }
    }
}

/// Runs by key.
#[derive(Default)]
pub(crate) struct CachedRuns {
    by_key: HashMap<RunKey, Box<CachedRun>, BuildHasherDefault<KeyHasher>>,
    /// In the order of the changes, perhaps several times.
    changed: Vec<RunKey>,
}

impl CachedRuns {
    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }

    pub(crate) fn n_tasks(&self) -> usize {
        self.by_key.values().map(|run| run.tasks.len()).sum()
    }

    /// A run, which is read if it is not there yet.
    pub(crate) fn find(
        &mut self,
        file: File<'_, '_>,
        run: RunKey,
    ) -> Result<Option<&mut CachedRun>, StoreError> {
        match self.by_key.entry(run) {
            MapEntry::Occupied(cached) => Ok(Some(cached.into_mut().as_mut())),
            MapEntry::Vacant(room) => {
                let cached = run::load(file, run)?.map(CachedRun::stored);
                Ok(cached.map(|cached| room.insert(Box::new(cached)).as_mut()))
            }
        }
    }

    /// As [`find`](Self::find), for a run that must be there.
    pub(crate) fn load(
        &mut self,
        file: File<'_, '_>,
        run: RunKey,
    ) -> Result<&mut CachedRun, StoreError> {
        self.find(file, run)?.ok_or_else(|| corrupt(format!("run {run} is missing")))
    }

    /// The key of a run by the names its caller knows it by. What is read of it stays.
    pub(crate) fn find_key(
        &mut self,
        file: File<'_, '_>,
        tenant: &Tenant,
        id: &RunId,
    ) -> Result<Option<RunKey>, StoreError> {
        let Some(found) = run::find(file, tenant, id)? else { return Ok(None) };
        let key = found.row.key;
        self.by_key.entry(key).or_insert_with(|| Box::new(CachedRun::stored(found)));
        Ok(Some(key))
    }

    /// A task, which is read if it is not there yet.
    pub(crate) fn find_task(
        &mut self,
        file: File<'_, '_>,
        run: RunKey,
        node: Node,
    ) -> Result<Option<&mut CachedTask>, StoreError> {
        self.find(file, run)?.map_or(Ok(None), |run| run.load_task(file, node))
    }

    /// Reads a ready task with its run by one statement, unless the run is there.
    pub(crate) fn load_ready(
        &mut self,
        file: File<'_, '_>,
        run: RunKey,
        node: Node,
    ) -> Result<(), StoreError> {
        if self.by_key.contains_key(&run) {
            return Ok(());
        }
        if let Some((stored, task)) = task::load_ready(file, run, node)? {
            let mut cached = CachedRun::stored(stored);
            cached.tasks.insert(node, Box::new(CachedTask::stored(task)));
            self.by_key.insert(run, Box::new(cached));
        }
        Ok(())
    }

    /// Reads all open tasks of a run and names them. Those that are there stay as they are, and
    /// must have been written.
    pub(crate) fn load_open(
        &mut self,
        file: File<'_, '_>,
        run: RunKey,
    ) -> Result<Vec<Node>, StoreError> {
        let open = task::load_open(file, run)?;
        let nodes = open.iter().map(|(row, _)| row.node).collect();
        let cached = self.load(file, run)?;
        for task in open {
            let node = task.0.node;
            cached.tasks.entry(node).or_insert_with(|| Box::new(CachedTask::stored(task)));
        }
        Ok(nodes)
    }

    /// Remembers a run that was just inserted.
    pub(crate) fn insert(&mut self, run: CachedRun) {
        let key = run.row.key;
        self.by_key.insert(key, Box::new(run));
        self.changed.push(key);
    }

    /// A run that is about to change.
    pub(crate) fn change(
        &mut self,
        file: File<'_, '_>,
        run: RunKey,
    ) -> Result<&mut CachedRun, StoreError> {
        self.changed.push(run);
        self.load(file, run)
    }

    /// A task that is about to change.
    pub(crate) fn change_task(
        &mut self,
        file: File<'_, '_>,
        run: RunKey,
        node: Node,
    ) -> Result<&mut CachedTask, StoreError> {
        let cached = self.change(file, run)?;
        cached.tasks_changed.push(node);
        let task = cached.load_task(file, node)?;
        task.ok_or_else(|| corrupt(format!("task {node:?} of run {run} is missing")))
    }

    /// Writes runs and tasks that changed, in the order of their keys.
    pub(crate) fn write(
        &mut self,
        file: File<'_, '_>,
        workers: &mut WorkerNumbers,
    ) -> Result<(), StoreError> {
        let mut changed = std::mem::take(&mut self.changed);
        changed.sort_unstable();
        changed.dedup();
        for run in changed {
            let has_room = self.by_key.len() < FRESH_RUNS_MAX;
            let Some(cached) = self.by_key.get_mut(&run) else { continue };
            cached.write(file, workers)?;
            let is_kept = !std::mem::take(&mut cached.is_fresh) || has_room;
            if !is_kept || cached.row.status.is_terminal() {
                self.by_key.remove(&run);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use stepwell_core::failure::{Failure, FailureKind};
    use stepwell_core::id::DefinitionId;
    use stepwell_core::run::{RunFailure, RunStatus};
    use stepwell_core::time::Timestamp;

    use super::*;
    use crate::outbound::sqlite::cache::one_field_changed;

    fn row() -> RunRow {
        RunRow {
            key: RunKey(1),
            tenant: Tenant::new("t").unwrap(),
            id: RunId::new("r").unwrap(),
            definition: DefinitionId(0),
            status: RunStatus::Running,
            n_open: 2,
            n_failed: 0,
            n_cancelled: 0,
            cancelled: false,
            n_signals: 0,
            n_unconsumed: 0,
            failure: None,
            next_event: 2,
            end_event: None,
            started_at: Timestamp::from_micros(1),
            deadline: None,
            ended_at: None,
        }
    }

    /// A row that differs in every field.
    fn other() -> RunRow {
        let failure = Failure::new(FailureKind::Error, "E", "no");
        let failure = RunFailure { node: Node(0), step: "a".into(), attempt: 1, failure };
        RunRow {
            key: RunKey(2),
            tenant: Tenant::new("u").unwrap(),
            id: RunId::new("s").unwrap(),
            definition: DefinitionId(1),
            status: RunStatus::Failed,
            n_open: 1,
            n_failed: 1,
            n_cancelled: 1,
            cancelled: true,
            n_signals: 2,
            n_unconsumed: 1,
            failure: Some(Box::new(failure)),
            next_event: 9,
            end_event: Some(8),
            started_at: Timestamp::from_micros(2),
            deadline: Some(Timestamp::from_micros(4)),
            ended_at: Some(Timestamp::from_micros(3)),
        }
    }

    #[test]
    fn whatever_changes_in_a_run_beside_its_progress_leads_to_the_update_of_all() {
        for (field, changed) in one_field_changed(&row(), &other()) {
            let mut cached = CachedRun::fresh(row(), 1, TenantNo(0), None, []);
            cached.set_row(changed.clone());
            let expected = match field.as_str() {
                "n_open" | "next_event" => RunChange::Advance,
                "status" => RunChange::End,
                _ => RunChange::Whole,
            };
            assert_eq!((cached.change, cached.row), (expected, changed), "{field}");
        }
    }

    #[test]
    fn the_end_of_a_run_is_a_narrow_update_unless_something_failed() {
        let ended = RunRow {
            status: RunStatus::Completed,
            n_open: 0,
            next_event: 4,
            end_event: Some(3),
            ended_at: Some(Timestamp::from_micros(3)),
            ..row()
        };
        for (n_failed, expected) in [(0, RunChange::End), (1, RunChange::Whole)] {
            let mut cached = CachedRun::fresh(row(), 1, TenantNo(0), None, []);
            cached.set_row(RunRow { n_open: 1, ..row() });
            cached.set_row(RunRow { n_failed, ..ended.clone() });
            assert_eq!(cached.change, expected);
        }
    }

    #[test]
    fn progress_after_another_change_is_no_reason_to_forget_that_one() {
        let mut cached = CachedRun::fresh(row(), 1, TenantNo(0), None, []);
        cached.set_row(RunRow { n_failed: 1, ..row() });
        cached.set_row(RunRow { n_failed: 1, n_open: 1, ..row() });
        assert_eq!(cached.change, RunChange::Whole);
    }
}
