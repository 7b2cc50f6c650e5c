//! Changing runs: lock them, read what the rules need, decide, write. One set-based statement
//! per step, however many runs there are.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use stepwell_core::decide::{self, Affected, CancelAnswer, Happening, affected};
use stepwell_core::id::{Node, RunKey, Token};
use stepwell_core::run::{RunImage, TaskRow};

use super::rows::{self, StoredRun, key};
use super::statements;
use super::transaction::Transaction;
use super::write::Written;
use crate::ports::{StoreError, StoredDefinition};

/// Something that happened to a task, fenced by the claim's token unless the store itself saw it.
pub(super) struct Happened {
    pub(super) node: Node,
    pub(super) token: Option<Token>,
    pub(super) happening: Happening,
}

/// What happened to runs, by run.
pub(super) type Happenings = BTreeMap<RunKey, Vec<Happened>>;

/// Which happenings took effect, by task and token.
pub(super) type Accepted = BTreeSet<(RunKey, Node, Option<Token>)>;

/// A locked run with its definition and the tasks that were read for it.
struct Loaded {
    run: StoredRun,
    stored: Arc<StoredDefinition>,
    tasks: Vec<TaskRow>,
}

impl Transaction {
    /// Decides happenings and writes what follows. Says which of them were current: held by the
    /// given token, or with a timer that still stands.
    pub(super) async fn happen(&mut self, happenings: Happenings) -> Result<Accepted, StoreError> {
        let loaded = self.load(&happenings).await?;
        let mut accepted = Accepted::new();
        let mut written = Vec::with_capacity(loaded.len());
        let mut happenings = happenings;
        let now = self.now;
        for Loaded { run, stored, tasks } in loaded {
            let run_key = run.row.key;
            let mut image = RunImage::new(&stored.definition, now, run.row, tasks);
            for Happened { node, token, happening } in
                happenings.remove(&run_key).unwrap_or_default()
            {
                let held = |token| image.task(node).is_some_and(|task| task.is_held_by(token));
                if token.is_none_or(held) && decide::decide(&mut image, node, happening) {
                    accepted.insert((run_key, node, token));
                }
            }
            written.push(Written::new(image, &stored, run.group));
        }
        self.write(written).await?;
        Ok(accepted)
    }

    /// Cancels a run. `None` if there is none.
    pub(super) async fn cancel_run(
        &mut self,
        run_key: RunKey,
    ) -> Result<Option<CancelAnswer>, StoreError> {
        let Some(run) = self.lock_runs(&[run_key]).await?.into_iter().next() else {
            return Ok(None);
        };
        let stored = self.definition(run.row.definition).await?;
        let keys = vec![key(run_key)];
        let tasks = self.all(statements::LOCK_OPEN_TASKS, &[&keys]).await?;
        let tasks = rows::read_all(&tasks, rows::task)?;
        let tasks = tasks.into_iter().map(|(_, task)| task);
        let mut image = RunImage::new(&stored.definition, self.now, run.row, tasks);
        let answer = decide::cancel(&mut image);
        self.write(vec![Written::new(image, &stored, run.group)]).await?;
        Ok(Some(answer))
    }

    /// Locks runs in the order of their keys.
    async fn lock_runs(&self, runs: &[RunKey]) -> Result<Vec<StoredRun>, StoreError> {
        let keys: Vec<_> = runs.iter().map(|run| key(*run)).collect();
        let rows = self.all(statements::LOCK_RUNS, &[&keys]).await?;
        rows::read_all(&rows, rows::run)
    }

    /// Locks the runs first, then reads the tasks by later statements: what they see is not
    /// older than the locks.
    async fn load(&self, happenings: &Happenings) -> Result<Vec<Loaded>, StoreError> {
        let runs: Vec<RunKey> = happenings.keys().copied().collect();
        let mut loaded = Vec::with_capacity(runs.len());
        let (mut asked, mut all_open) = (BTreeSet::new(), Vec::new());
        for run in self.lock_runs(&runs).await? {
            let stored = self.definition(run.row.definition).await?;
            let happened = happenings.get(&run.row.key).into_iter().flatten();
            let needed = affected(&stored.definition, happened.map(|h| (h.node, &h.happening)));
            let nodes = match needed {
                Affected::Nodes(nodes) => nodes,
                Affected::AllOpenAnd(nodes) => {
                    all_open.push(key(run.row.key));
                    nodes
                }
            };
            asked.extend(nodes.into_iter().map(|node| (run.row.key, node)));
            loaded.push(Loaded { run, stored, tasks: Vec::new() });
        }
        let mut tasks = self.lock_tasks(&asked, &all_open).await?;
        for loaded in &mut loaded {
            let by_node = tasks.remove(&loaded.run.row.key).unwrap_or_default();
            loaded.tasks = by_node.into_values().collect();
        }
        Ok(loaded)
    }

    async fn lock_tasks(
        &self,
        asked: &BTreeSet<(RunKey, Node)>,
        all_open: &[uuid::Uuid],
    ) -> Result<HashMap<RunKey, BTreeMap<Node, TaskRow>>, StoreError> {
        let runs: Vec<_> = asked.iter().map(|(run, _)| key(*run)).collect();
        let nodes: Vec<i32> = asked.iter().map(|(_, node)| rows::int32(node.0)).collect();
        let mut found = self.all(statements::LOCK_TASKS, &[&runs, &nodes]).await?;
        if !all_open.is_empty() {
            found.extend(self.all(statements::LOCK_OPEN_TASKS, &[&all_open]).await?);
        }
        let mut tasks: HashMap<RunKey, BTreeMap<Node, TaskRow>> = HashMap::new();
        for (run, task) in rows::read_all(&found, rows::task)? {
            tasks.entry(run).or_default().insert(task.node, task);
        }
        Ok(tasks)
    }
}
