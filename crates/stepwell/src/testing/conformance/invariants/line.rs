//! Where open tasks wait: queues, timers and claims agree with the tasks, and counters with both.

use std::collections::{BTreeMap, BTreeSet};

use stepwell_core::id::{Node, RunKey, Tenant, WorkerId};
use stepwell_core::run::Phase;

use super::Findings;
use crate::ports::{ClaimRef, StoreDump, TaskPlace};

pub(super) fn check(dump: &StoreDump, findings: &mut Findings) {
    unique_ids(dump, findings);
    let mut claims = BTreeSet::new();
    let (mut n_places, mut n_timers) = (0, 0);
    for (run, task) in
        dump.tasks.iter().flat_map(|(run, tasks)| tasks.iter().map(move |t| (run, t)))
    {
        let key = (*run, task.node);
        let (place, timer) = (dump.places.get(&key), dump.timers.get(&key).copied());
        let (has_place, due) = match &task.phase {
            Phase::Queued { due: None, .. } => (true, None),
            Phase::Queued { due, .. } | Phase::Waiting { due } => (false, *due),
            Phase::Sleeping { until } => (false, Some(*until)),
            Phase::Running(claim) => {
                let held = ClaimRef { run: *run, node: task.node, token: claim.token };
                claims.insert((claim.worker.clone(), held));
                (false, None)
            }
            _ => (false, None),
        };
        // S16 follows: a task of an ended run is terminal, and a terminal one has neither.
        findings.expect(place.is_some() == has_place, || {
            format!("task {key:?} is {} and waits at {place:?}", task.state())
        });
        findings.expect(timer == due, || {
            format!("task {key:?} is {:?} and its timer {timer:?}", task.phase)
        });
        n_places += usize::from(place.is_some());
        n_timers += usize::from(timer.is_some());
    }
    findings.expect(n_places == dump.places.len(), || "a place belongs to no task".to_owned());
    // Those of runs are held to their deadlines elsewhere.
    let is_open = |run: &RunKey| dump.runs.get(run).is_some_and(|l| !l.run.status.is_terminal());
    let is_of_run = |(run, node): &&(RunKey, Node)| match *node {
        Node::DEADLINE => dump.runs.contains_key(run),
        Node::LOOK_AGAIN => is_open(run),
        _ => false,
    };
    n_timers += dump.timers.keys().filter(is_of_run).count();
    findings.expect(n_timers == dump.timers.len(), || "a timer belongs to no task".to_owned());
    check_claims(dump, &claims, findings);
    check_admitted(dump, findings);
}

/// S2: at most one run per tenant and id.
fn unique_ids(dump: &StoreDump, findings: &mut Findings) {
    let mut seen = BTreeSet::new();
    for (key, log) in &dump.runs {
        let is_first = seen.insert((&log.run.tenant, &log.run.id));
        findings.expect(is_first && log.run.key == *key, || {
            format!("run {key} is a second {:?} of {}", log.run.id, log.run.tenant)
        });
    }
    findings.expect(dump.tasks.keys().eq(dump.runs.keys()), || {
        "tasks belong to a run that does not exist".to_owned()
    });
}

/// A worker's claims are exactly the tasks that run under them.
fn check_claims(
    dump: &StoreDump,
    running: &BTreeSet<(WorkerId, ClaimRef)>,
    findings: &mut Findings,
) {
    let held: Vec<(WorkerId, ClaimRef)> = dump
        .claims
        .iter()
        .flat_map(|(worker, claims)| claims.iter().map(|claim| (worker.clone(), *claim)))
        .collect();
    let held_once: BTreeSet<_> = held.iter().cloned().collect();
    findings.expect(held.len() == held_once.len(), || "a claim stands twice".to_owned());
    for (worker, claim) in running.symmetric_difference(&held_once) {
        findings.add(format!("{worker} and {claim:?} do not know each other"));
    }
}

/// What limits go by equals the ready and running rows (S15).
fn check_admitted(dump: &StoreDump, findings: &mut Findings) {
    let mut counted: BTreeMap<&Tenant, usize> = BTreeMap::new();
    for (key, log) in &dump.runs {
        let of_run = dump.tasks.get(key).into_iter().flatten();
        let is_ready = |place: Option<&TaskPlace>| matches!(place, Some(TaskPlace::Ready(..)));
        let is_admitted = |task: &&stepwell_core::run::TaskRow| {
            task.claim().is_some() || is_ready(dump.places.get(&(*key, task.node)))
        };
        *counted.entry(&log.run.tenant).or_default() += of_run.filter(is_admitted).count();
    }
    for tenant in counted.keys().copied().chain(dump.admitted.keys()) {
        let kept = dump.admitted.get(tenant).copied().unwrap_or_default();
        let counted = counted.get(tenant).copied().unwrap_or_default();
        findings.expect(kept == counted, || {
            format!("{tenant} has {kept} tasks admitted, but {counted} are ready or running")
        });
    }
}
