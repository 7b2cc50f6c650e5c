//! Changing runs: lock them, read what the rules need, decide, write. One set-based statement
//! per step, however many runs there are.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use stepwell_core::decide::{self, Affected, CancelAnswer, Happening, affected};
use stepwell_core::id::{Node, RunKey, Token};
use stepwell_core::run::{RunImage, TaskRow};

use super::join::{Line, Places};
use super::rows::{self, StoredRun, key};
use super::statements;
use super::transaction::Transaction;
use super::write::{Payloads, Written};
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

/// What follows from happenings, ready to be written.
pub(super) struct Decided {
    pub(super) accepted: Accepted,
    pub(super) written: Vec<Written>,
    /// The line that new tasks will join, if it is a simple one.
    pub(super) line: Option<Line>,
}

/// A locked run with its definition and the tasks that were read for it.
struct Loaded {
    run: StoredRun,
    stored: Arc<StoredDefinition>,
    tasks: Vec<TaskRow>,
}

/// What has to be read to decide.
#[derive(Default)]
struct Needed {
    tasks: BTreeSet<(RunKey, Node)>,
    /// Runs whose open tasks are all needed.
    all_open: Vec<uuid::Uuid>,
    /// Whose tasks these are.
    groups: BTreeSet<u32>,
    /// Where tasks may have to wait that become ready.
    places: Places,
}

impl Transaction {
    /// Decides happenings and writes what follows. Says which of them were current: held by the
    /// given token, or with a timer that still stands.
    pub(super) async fn happen(&mut self, happenings: Happenings) -> Result<Accepted, StoreError> {
        let keys: Vec<RunKey> = happenings.keys().copied().collect();
        let runs = self.lock_runs(&keys).await?;
        let Decided { accepted, written, line } = self.decide(runs, happenings).await?;
        self.write(written, line, Payloads::None, false).await?;
        Ok(accepted)
    }

    /// Decides what happened to runs that are locked.
    pub(super) async fn decide(
        &self,
        runs: Vec<StoredRun>,
        mut happenings: Happenings,
    ) -> Result<Decided, StoreError> {
        let (loaded, line) = self.load(runs, &happenings).await?;
        let mut accepted = Accepted::new();
        let mut written = Vec::with_capacity(loaded.len());
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
        Ok(Decided { accepted, written, line })
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
        let written = vec![Written::new(image, &stored, run.group)];
        self.write(written, None, Payloads::None, false).await?;
        Ok(Some(answer))
    }

    /// Locks runs in the order of their keys.
    pub(super) async fn lock_runs(&self, runs: &[RunKey]) -> Result<Vec<StoredRun>, StoreError> {
        let keys: Vec<_> = runs.iter().map(|run| key(*run)).collect();
        let rows = self.all(statements::LOCK_RUNS, &[&keys]).await?;
        rows::read_all(&rows, rows::run)
    }

    /// Reads the tasks by later statements than those that locked the runs: what they see is not
    /// older than the locks. If all that happened is plain, looks at the line as well.
    async fn load(
        &self,
        runs: Vec<StoredRun>,
        happenings: &Happenings,
    ) -> Result<(Vec<Loaded>, Option<Line>), StoreError> {
        let mut loaded = Vec::with_capacity(runs.len());
        let mut needed = Needed::default();
        let is_plain = happenings.values().flatten().all(|happened| is_plain(&happened.happening));
        for run in runs {
            let stored = self.definition(run.row.definition).await?;
            let happened = happenings.get(&run.row.key).map(Vec::as_slice).unwrap_or_default();
            needed.add(&run, &stored, happened);
            loaded.push(Loaded { run, stored, tasks: Vec::new() });
        }
        let (tasks, line) = if is_plain {
            let (tasks, line) = tokio::join!(
                biased;
                self.tasks(statements::READ_SOME_TASKS, &needed),
                self.look_if_simple(&needed.groups, &needed.places),
            );
            (tasks?, line?)
        } else {
            (self.tasks(statements::LOCK_TASKS, &needed).await?, None)
        };
        let mut tasks = tasks;
        for loaded in &mut loaded {
            let by_node = tasks.remove(&loaded.run.row.key).unwrap_or_default();
            loaded.tasks = by_node.into_values().collect();
        }
        Ok((loaded, line))
    }

    async fn tasks(
        &self,
        some: &'static str,
        needed: &Needed,
    ) -> Result<HashMap<RunKey, BTreeMap<Node, TaskRow>>, StoreError> {
        let runs: Vec<_> = needed.tasks.iter().map(|(run, _)| key(*run)).collect();
        let nodes: Vec<i32> = needed.tasks.iter().map(|(_, node)| rows::int32(node.0)).collect();
        let mut found = self.all(some, &[&runs, &nodes]).await?;
        if !needed.all_open.is_empty() {
            found.extend(self.all(statements::LOCK_OPEN_TASKS, &[&needed.all_open]).await?);
        }
        let mut tasks: HashMap<RunKey, BTreeMap<Node, TaskRow>> = HashMap::new();
        for (run, task) in rows::read_all(&found, rows::task)? {
            tasks.entry(run).or_default().insert(task.node, task);
        }
        Ok(tasks)
    }
}

impl Needed {
    fn add(&mut self, run: &StoredRun, stored: &StoredDefinition, happened: &[Happened]) {
        let (run_key, definition) = (run.row.key, &stored.definition);
        let needed = affected(definition, happened.iter().map(|h| (h.node, &h.happening)));
        let nodes = match needed {
            Affected::Nodes(nodes) => nodes,
            Affected::AllOpenAnd(nodes) => {
                self.all_open.push(key(run_key));
                nodes
            }
        };
        self.groups.insert(run.group);
        let completed = |h: &&Happened| matches!(h.happening, Happening::Completed { .. });
        let completed: BTreeSet<Node> = happened.iter().filter(completed).map(|h| h.node).collect();
        // Whatever does not end here may become ready.
        let open = nodes.iter().filter(|node| !completed.contains(*node));
        self.places.extend(open.map(|node| (run.group, definition.queue(*node))));
        self.tasks.extend(nodes.into_iter().map(|node| (run_key, node)));
    }
}

/// Whether a happening touches no task that a claim could take meanwhile: those that are queued.
/// Then the lock on the run is enough, and nothing leaves its queue.
const fn is_plain(happening: &Happening) -> bool {
    match happening {
        Happening::Completed { .. }
        | Happening::Slept
        | Happening::Released
        | Happening::TimerFired => true,
        Happening::Failed { .. } | Happening::Lost { .. } | Happening::Skipped => false,
    }
}
