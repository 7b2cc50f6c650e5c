//! What became ready and what was claimed, in order, and the limits of tenants.

use std::collections::BTreeMap;

use stepwell::MemoryStore;
use stepwell::core::id::{Node, RunKey, Tenant};
use stepwell::core::queue::{BLOCK_LENGTH, OrderKey};
use stepwell::core::run::TaskState;
use stepwell::ports::{ClaimedTask, StoreDump, TaskPlace, Tenants};

use super::at_once;

/// A task by run and node.
pub(crate) type Task = (RunKey, Node);

/// What happened to a task in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It entered its queue behind so many tasks of its tenant.
    Ready { n_ahead: usize },
    /// A worker took it.
    Claimed,
    /// It left its queue otherwise.
    Withdrawn,
}

/// One thing that happened.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) task: Task,
    pub(crate) tenant: Tenant,
    /// The block its position lies in.
    pub(crate) block: u64,
    pub(crate) step: Step,
}

/// Everything that happened in the queues, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal(pub(crate) Vec<Entry>);

impl Journal {
    /// Notes tasks that were not in their queue before, and those that left it unclaimed.
    pub(super) fn note_ready(&mut self, before: &StoreDump, after: &StoreDump) {
        let tenant = |run: &RunKey| after.runs.get(run).map(|log| log.run.tenant.clone());
        for (task, place) in &before.places {
            let TaskPlace::Ready(_, OrderKey(key)) = place else { continue };
            let is_claimed = super::claims_seen::task(after, task.0, task.1)
                .is_some_and(|row| row.state() == TaskState::Running);
            if after.places.get(task) != Some(place)
                && !is_claimed
                && let Some(tenant) = tenant(&task.0)
            {
                let (task, block) = (*task, key / BLOCK_LENGTH);
                self.0.push(Entry { task, tenant, block, step: Step::Withdrawn });
            }
        }
        let mut ready: Vec<(u64, Task)> = Vec::new();
        for (task, place) in &after.places {
            if let TaskPlace::Ready(_, OrderKey(key)) = place {
                ready.push((*key, *task));
            }
        }
        ready.sort_unstable();
        let mut n_ahead: BTreeMap<Tenant, usize> = BTreeMap::new();
        for (key, task) in ready {
            let Some(tenant) = tenant(&task.0) else { continue };
            let n_ahead = n_ahead.entry(tenant.clone()).or_default();
            if before.places.get(&task) != after.places.get(&task) {
                let step = Step::Ready { n_ahead: *n_ahead };
                self.0.push(Entry { task, tenant, block: key / BLOCK_LENGTH, step });
            }
            *n_ahead += 1;
        }
    }

    /// Notes tasks that were handed out.
    pub(super) fn note_claims(&mut self, before: &StoreDump, tasks: &[ClaimedTask]) {
        for claimed in tasks {
            let task = (claimed.claim.run, claimed.claim.node);
            let block = match before.places.get(&task) {
                Some(TaskPlace::Ready(_, OrderKey(key))) => key / BLOCK_LENGTH,
                _ => 0,
            };
            let tenant = claimed.tenant.clone();
            self.0.push(Entry { task, tenant, block, step: Step::Claimed });
        }
    }

    /// The tenants in the order they were served.
    pub(crate) fn starts(&self) -> Vec<Tenant> {
        let is_start = |entry: &&Entry| entry.step == Step::Claimed;
        self.0.iter().filter(is_start).map(|entry| entry.tenant.clone()).collect()
    }
}

/// S15: no tenant holds more leases than its limit, save those it held before the limit was
/// lowered; and no place under a limit stays empty while a task is held back.
pub(super) fn limits(store: &MemoryStore, before: &StoreDump, after: &StoreDump) -> Vec<String> {
    let (n_before, n_running) = (running(before), running(after));
    let mut n_throttled: BTreeMap<&Tenant, usize> = BTreeMap::new();
    for ((run, _), place) in &after.places {
        if let (TaskPlace::Throttled, Some(log)) = (place, after.runs.get(run)) {
            *n_throttled.entry(&log.run.tenant).or_default() += 1;
        }
    }
    let mut findings = Vec::new();
    for (tenant, n_admitted) in &after.admitted {
        let view = at_once(store.tenant(tenant)).expect("read a tenant");
        let limit = view.and_then(|view| view.settings.tasks_max);
        let count = |counts: &BTreeMap<&Tenant, usize>| counts.get(tenant).copied().unwrap_or(0);
        let (n_running, n_throttled) = (count(&n_running), count(&n_throttled));
        let (limit, is_limited) = (limit.map_or(usize::MAX, |n| n as usize), limit.is_some());
        if n_running > limit.max(count(&n_before)) || *n_admitted > limit.max(n_running) {
            findings.push(format!("{tenant} runs {n_running} of {n_admitted} at limit {limit}"));
        }
        if n_throttled > 0 && (!is_limited || *n_admitted < limit) {
            findings.push(format!("{tenant} has {n_throttled} held back with {n_admitted} in"));
        }
    }
    findings
}

fn running(dump: &StoreDump) -> BTreeMap<&Tenant, usize> {
    let mut counts = BTreeMap::new();
    for (run, log) in &dump.runs {
        let tasks = dump.tasks.get(run).into_iter().flatten();
        let n_running = tasks.filter(|task| task.claim().is_some()).count();
        *counts.entry(&log.run.tenant).or_default() += n_running;
    }
    counts
}
