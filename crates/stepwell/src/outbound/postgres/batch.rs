//! Changing runs: lock them, read what the rules need, decide, write. One set-based statement
//! per step, however many runs there are.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use stepwell_core::decide::{self, Affected, CancelAnswer, Happening, affected};
use stepwell_core::id::{DefinitionId, Node, RunKey, Token};
use stepwell_core::run::{RunImage, TaskRow};
use tokio_postgres::Row;

use super::error::corrupt;
use super::join::Unlimited;
use super::known::RunFacts;
use super::rows::{self, StoredRun, key};
use super::statements;
use super::transaction::{Params, Transaction};
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
    /// The tenants, if none of them has a limit.
    pub(super) tenants: Option<Unlimited>,
}

/// Definitions of runs that are being changed.
type Definitions = HashMap<DefinitionId, Arc<StoredDefinition>>;

/// What has to be read to decide.
#[derive(Default)]
pub(super) struct Needed {
    tasks: BTreeSet<(RunKey, Node)>,
    /// Runs whose open tasks are all needed.
    all_open: Vec<uuid::Uuid>,
    /// Whose tasks these are.
    groups: BTreeSet<u32>,
    /// Whether all that happened is plain.
    is_plain: bool,
    /// What the runs are thought to be.
    facts: BTreeMap<RunKey, RunFacts>,
}

/// What was read to decide.
pub(super) struct Gathered {
    tasks: HashMap<RunKey, Vec<TaskRow>>,
    tenants: Option<Unlimited>,
}

impl Transaction {
    /// Decides happenings and writes what follows. Says which of them were current: held by the
    /// given token, or with a timer that still stands.
    pub(super) async fn happen(&mut self, happenings: Happenings) -> Result<Accepted, StoreError> {
        let keys: Vec<RunKey> = happenings.keys().copied().collect();
        let runs = self.lock_runs(&keys).await?;
        let needed = self.needed_by(&runs, &happenings).await?;
        let gathered = self.gather(&needed).await?;
        let Decided { accepted, written, tenants } =
            self.decide(runs, gathered, happenings).await?;
        self.write(written, tenants, Payloads::None, false).await?;
        Ok(accepted)
    }

    /// Decides what happened to runs that are locked.
    pub(super) async fn decide(
        &self,
        runs: Vec<StoredRun>,
        mut gathered: Gathered,
        mut happenings: Happenings,
    ) -> Result<Decided, StoreError> {
        let definitions = self.definitions(runs.iter().map(|run| run.row.definition)).await?;
        let mut accepted = Accepted::new();
        let mut written = Vec::with_capacity(runs.len());
        let now = self.now;
        for run in runs {
            let (run_key, definition) = (run.row.key, run.row.definition);
            let Some(stored) = definitions.get(&definition) else { continue };
            let tasks = gathered.tasks.remove(&run_key).unwrap_or_default();
            let mut image = RunImage::new(&stored.definition, now, run.row, tasks);
            for Happened { node, token, happening } in
                happenings.remove(&run_key).unwrap_or_default()
            {
                let held = |token| image.task(node).is_some_and(|task| task.is_held_by(token));
                if token.is_none_or(held) && decide::decide(&mut image, node, happening) {
                    accepted.insert((run_key, node, token));
                }
            }
            written.push(Written::new(image, stored, run.group));
        }
        Ok(Decided { accepted, written, tenants: gathered.tenants })
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
        let tasks = self.tasks_of(&tasks).await?.into_iter().map(|(_, task)| task);
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
        let groups = rows.iter().map(rows::run_group).collect::<Result<BTreeSet<_>, _>>()?;
        let names = self.tenant_names(&groups).await?;
        let read = |row: &Row| {
            let tenant = names.get(&rows::run_group(row)?).cloned();
            rows::run_of(row, tenant.ok_or_else(|| corrupt("a tenant is missing"))?)
        };
        rows::read_all(&rows, read)
    }

    /// What has to be read, if all these runs are what this process remembers.
    pub(super) fn guess(&self, happenings: &Happenings) -> Option<Needed> {
        let facts = self.known().runs(happenings.keys())?;
        let ids: BTreeSet<DefinitionId> = facts.values().map(|facts| facts.definition).collect();
        let definitions = self.known_definitions(&ids);
        let mut needed = Needed::new(happenings);
        for (run, facts) in &facts {
            needed.add(*run, *facts, definitions.get(&facts.definition)?, &happenings[run]);
        }
        needed.is_plain.then_some(needed)
    }

    /// What has to be read to decide about locked runs.
    pub(super) async fn needed_by(
        &self,
        runs: &[StoredRun],
        happenings: &Happenings,
    ) -> Result<Needed, StoreError> {
        let definitions = self.definitions(runs.iter().map(|run| run.row.definition)).await?;
        let mut needed = Needed::new(happenings);
        for run in runs {
            let happened = happenings.get(&run.row.key).map(Vec::as_slice).unwrap_or_default();
            let Some(stored) = definitions.get(&run.row.definition) else { continue };
            needed.add(run.row.key, run.facts(), stored, happened);
        }
        Ok(needed)
    }

    async fn definitions(
        &self,
        ids: impl Iterator<Item = DefinitionId>,
    ) -> Result<Definitions, StoreError> {
        let ids: BTreeSet<DefinitionId> = ids.collect();
        let mut definitions = Definitions::with_capacity(ids.len());
        for id in ids {
            definitions.insert(id, self.definition(id).await?);
        }
        Ok(definitions)
    }

    /// Reads the tasks by later statements than those that locked the runs: what they see is not
    /// older than the locks. If all that happened is plain, looks at the tenants as well.
    pub(super) async fn gather(&self, needed: &Needed) -> Result<Gathered, StoreError> {
        let runs: Vec<_> = needed.tasks.iter().map(|(run, _)| key(*run)).collect();
        let nodes: Vec<i32> = needed.tasks.iter().map(|(_, node)| rows::int32(node.0)).collect();
        let params: Params<'_> = &[&runs, &nodes];
        let (mut found, tenants) = if needed.is_plain {
            let (found, tenants) = tokio::join!(
                biased;
                self.all(statements::READ_SOME_TASKS, params),
                self.look_if_simple(&needed.groups),
            );
            (found?, tenants?)
        } else {
            (self.all(statements::LOCK_TASKS, params).await?, None)
        };
        if !needed.all_open.is_empty() {
            found.extend(self.all(statements::LOCK_OPEN_TASKS, &[&needed.all_open]).await?);
        }
        let mut tasks: HashMap<RunKey, Vec<TaskRow>> = HashMap::new();
        for (run, task) in self.tasks_of(&found).await? {
            tasks.entry(run).or_default().push(task);
        }
        Ok(Gathered { tasks, tenants })
    }

    async fn tasks_of(&self, rows: &[Row]) -> Result<Vec<(RunKey, TaskRow)>, StoreError> {
        let workers = rows.iter().map(rows::task_worker).collect::<Result<Vec<_>, _>>()?;
        let workers = self.worker_names(&workers.into_iter().flatten().collect()).await?;
        rows::read_all(rows, |row| rows::task_by(row, &workers))
    }
}

impl Needed {
    fn new(happenings: &Happenings) -> Self {
        let is_plain = happenings.values().flatten().all(|happened| is_plain(&happened.happening));
        Self { is_plain, ..Self::default() }
    }

    fn add(
        &mut self,
        run: RunKey,
        facts: RunFacts,
        stored: &StoredDefinition,
        happened: &[Happened],
    ) {
        let definition = &stored.definition;
        let needed = affected(definition, happened.iter().map(|h| (h.node, &h.happening)));
        let nodes = match needed {
            Affected::Nodes(nodes) => nodes,
            Affected::AllOpenAnd(nodes) => {
                self.all_open.push(key(run));
                nodes
            }
        };
        self.groups.insert(facts.group);
        self.facts.insert(run, facts);
        self.tasks.extend(nodes.into_iter().map(|node| (run, node)));
    }

    /// Whether the runs are what they were thought to be.
    pub(super) fn is_right_about(&self, runs: &[StoredRun]) -> bool {
        let is_right = |run: &StoredRun| self.facts.get(&run.row.key) == Some(&run.facts());
        runs.len() == self.facts.len() && runs.iter().all(is_right)
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
