//! Locking runs and loading the tasks that a decision needs.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use stepwell_core::decide::{Affected, Happening, affected};
use stepwell_core::id::{DefinitionId, Node, RunKey};
use stepwell_core::run::TaskRow;
use tokio_postgres::Row;
use uuid::Uuid;

use super::super::queue::enqueue_unlimited::UnlimitedTenants;
use super::super::rows::run::{self, RunRef, StoredRun};
use super::super::rows::{TaskKeys, corrupt, key, keys, read_all, task};
use super::super::session::PgResult;
use super::super::sql::{self, Sql};
use super::inbox::{InboxPlan, Inboxes};
use super::{Happened, Happenings, RunSet};
use crate::ports::StoredDefinition;

const LOCK_RUNS: Sql = sql::RUN.named("lock_runs");
const LOCK_TASKS: Sql = sql::TASK.named("lock_tasks");
const LOCK_OPEN_TASKS: Sql = sql::TASK.named("lock_open_tasks");
pub(super) const READ_SOME_TASKS: Sql = sql::TASK.named("read_some_tasks");

/// What has to be loaded to decide.
#[derive(Default)]
pub(super) struct LoadPlan {
    tasks: BTreeSet<(RunKey, Node)>,
    /// Runs whose open tasks are all needed.
    all_open: Vec<Uuid>,
    /// Whose tasks these are.
    tenants: BTreeSet<u32>,
    /// Whether tasks that are queued may be touched, which a claim could take meanwhile. If not,
    /// the lock on the run is enough, and nothing leaves its queue.
    may_touch_queued: bool,
    /// What the runs are thought to be.
    refs: BTreeMap<RunKey, RunRef>,
}

/// What was loaded to decide.
pub(super) struct LoadedTasks {
    pub(super) tasks: HashMap<RunKey, Vec<TaskRow>>,
    pub(super) tenants: Option<UnlimitedTenants>,
}

impl RunSet<'_> {
    /// Locks runs in the order of their keys. The time of the transaction is from then on that at
    /// which it had the last of what it locks.
    pub(crate) async fn lock(&self, runs: &[RunKey]) -> PgResult<Vec<StoredRun>> {
        let rows = self.session.all(LOCK_RUNS, &[&keys(runs)]).await?;
        self.saw_lock(rows.last().map(run::read_locked_at).transpose()?);
        let tenants = rows.iter().map(run::read_tenant_no).collect::<Result<BTreeSet<_>, _>>()?;
        let names = self.ids.tenant_names(&tenants).await?;
        let read = |row: &Row| {
            let tenant = names.get(&run::read_tenant_no(row)?).cloned();
            run::read_of(row, tenant.ok_or_else(|| corrupt("a tenant is missing"))?)
        };
        Ok(read_all(&rows, read)?)
    }

    /// Takes the time at which the last row was locked for that of the transaction.
    fn saw_lock(&self, at: Option<i64>) {
        if let Some(at) = at {
            self.session.set_now(at);
        }
    }

    /// What has to be loaded, if all these runs are what this process remembers.
    pub(super) fn plan_from_cache(&self, happenings: &Happenings) -> Option<LoadPlan> {
        let refs = self.ids.cache.cached_runs(happenings.keys())?;
        let ids: BTreeSet<DefinitionId> = refs.values().map(|run| run.definition).collect();
        let definitions = self.ids.plans.cached(&ids);
        let mut plan = LoadPlan::default();
        for (run, reference) in &refs {
            let stored = definitions.get(&reference.definition)?;
            let affected = affected_by(stored, &happenings[run]);
            if affected.may_touch_queued || affected.inbox.is_some() {
                return None;
            }
            plan.add(*run, *reference, affected);
        }
        Some(plan)
    }

    /// What has to be loaded to decide about locked runs. Open waits tell which tasks, so waits and
    /// signals are loaded here, unless they were before.
    pub(super) async fn plan_for(
        &self,
        runs: &[StoredRun],
        happenings: &Happenings,
        inboxes: Option<Inboxes>,
    ) -> PgResult<(LoadPlan, Inboxes)> {
        let definitions = self.ids.plans_of(runs.iter().map(|run| &run.row)).await?;
        let mut decisions = Vec::with_capacity(runs.len());
        for run in runs {
            let happened = happenings.get(&run.row.key).map(Vec::as_slice).unwrap_or_default();
            let Some(stored) = definitions.get(&run.row.definition) else { continue };
            decisions.push((run, stored, happened, affected_by(stored, happened)));
        }
        let inboxes = if let Some(inboxes) = inboxes {
            inboxes
        } else {
            let mut needs = InboxPlan::default();
            for (run, .., affected) in &decisions {
                affected.inbox.iter().for_each(|inbox| needs.add(&run.row, inbox));
            }
            self.read_inboxes(&needs).await?
        };
        let mut plan = LoadPlan::default();
        for (run, stored, happened, mut affected) in decisions {
            if let Some(inbox) = inboxes.get(&run.row.key) {
                affected.add_waits(&stored.definition, &inbox.waits, happenings_of(happened));
            }
            plan.add(run.row.key, run.reference(), affected);
        }
        Ok((plan, inboxes))
    }

    /// Loads tasks by later statements than the one that locked the runs: what they see is not
    /// older than the locks. If no queued task is touched, looks at the tenants as well.
    pub(super) async fn load(&self, plan: &LoadPlan) -> PgResult<LoadedTasks> {
        let asked = TaskKeys::of(plan.tasks.iter().copied());
        let params = asked.params();
        let (mut found, tenants) = if plan.tasks.is_empty() {
            (Vec::new(), None)
        } else if plan.may_touch_queued {
            let found = self.session.all(LOCK_TASKS, &params).await?;
            self.saw_lock(found.last().map(task::read_locked_at).transpose()?);
            (found, None)
        } else {
            let (found, tenants) = tokio::join!(
                biased;
                self.session.all(READ_SOME_TASKS, &params),
                self.queues.share_unlimited_tenants(&plan.tenants),
            );
            (found?, tenants?)
        };
        if !plan.all_open.is_empty() {
            let open = self.session.all(LOCK_OPEN_TASKS, &[&plan.all_open]).await?;
            self.saw_lock(open.last().map(task::read_locked_at).transpose()?);
            found.extend(open);
        }
        let mut tasks: HashMap<RunKey, Vec<TaskRow>> = HashMap::new();
        for (run, task) in self.tasks_of(&found).await? {
            tasks.entry(run).or_default().push(task);
        }
        Ok(LoadedTasks { tasks, tenants })
    }

    async fn tasks_of(&self, rows: &[Row]) -> PgResult<Vec<(RunKey, TaskRow)>> {
        let workers = rows.iter().map(task::read_worker_no).collect::<Result<Vec<_>, _>>()?;
        let workers = self.ids.worker_names(&workers.into_iter().flatten().collect()).await?;
        Ok(read_all(rows, |row| task::read_of(row, &workers))?)
    }
}

impl LoadPlan {
    fn add(&mut self, run: RunKey, reference: RunRef, affected: Affected) {
        if affected.all_open {
            self.all_open.push(key(run));
        }
        self.may_touch_queued |= affected.may_touch_queued;
        self.tenants.insert(reference.tenant_no);
        self.refs.insert(run, reference);
        self.tasks.extend(affected.tasks.into_iter().map(|node| (run, node)));
    }

    /// Whether the runs are what they were thought to be.
    pub(super) fn is_right_about(&self, runs: &[StoredRun]) -> bool {
        let is_right = |run: &StoredRun| self.refs.get(&run.row.key) == Some(&run.reference());
        runs.len() == self.refs.len() && runs.iter().all(is_right)
    }
}

/// The rows of a run that a decision about it may look at.
fn affected_by(stored: &StoredDefinition, happened: &[Happened]) -> Affected {
    affected(&stored.definition, happenings_of(happened))
}

fn happenings_of(happened: &[Happened]) -> impl Iterator<Item = &Happening> {
    happened.iter().map(|happened| &happened.happening)
}
