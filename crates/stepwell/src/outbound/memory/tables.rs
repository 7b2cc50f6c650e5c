//! The tables, and how the rules' changes are written into them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use stepwell_core::decide::{Affected, Happening, InboxNeeds, Verdict, affected, decide};
use stepwell_core::id::{
    DefinitionId, Epoch, Node, Queue, RunId, RunKey, ServiceId, Tenant, Token, WorkerId,
};
use stepwell_core::run::{
    AttemptRow, Changes, EventRow, Extras, Inbox, RunImage, RunRow, TaskRow, WaitRow,
};
use stepwell_core::time::Timestamp;

use super::corrupt;
use super::queues::{Queued, Queues};
use super::signals::waits;
use crate::ports::{
    ClaimRef, Hint, HintSet, Payload, ReportedProgress, StoreError, StoredDefinition, StoredMemo,
    StoredSignal,
};

/// Everything the store holds.
#[derive(Default)]
pub(super) struct Tables {
    /// The time of the current transaction; it never goes back.
    pub(super) now: Timestamp,
    pub(super) definitions: Vec<Arc<StoredDefinition>>,
    pub(super) runs: HashMap<RunKey, StoredRun>,
    pub(super) run_keys: BTreeSet<RunKey>,
    pub(super) run_ids: HashMap<(Tenant, RunId), RunKey>,
    pub(super) queues: Queues,
    pub(super) timers: TimerTable,
    pub(super) workers: BTreeMap<WorkerId, WorkerEntry>,
    /// The order in which workers first registered, also of those that are dead by now.
    pub(super) worker_numbers: BTreeMap<WorkerId, usize>,
    pub(super) leader: Option<LeaderEntry>,
    pub(super) last_epoch: u64,
    pub(super) n_claims: u64,
    /// Registrations and heartbeats of all workers so far.
    pub(super) n_beats: u64,
    /// Payloads of signals that are being sent, by run and key.
    pub(super) payloads_of_signals: HashMap<(RunKey, String), Payload>,
    pub(super) earned_hints: HintSet,
}

/// A run with all that belongs to it.
pub(super) struct StoredRun {
    pub(super) row: RunRow,
    pub(super) input: Payload,
    pub(super) input_digest: [u8; 32],
    pub(super) tasks: BTreeMap<Node, TaskRow>,
    pub(super) outputs: BTreeMap<Node, Payload>,
    pub(super) attempts: Vec<AttemptRow>,
    pub(super) events: Vec<EventRow>,
    /// Open waits, by task and key.
    pub(super) waits: BTreeMap<(Node, String), WaitRow>,
    /// What functions have done, by task and key.
    pub(super) memos: BTreeMap<(Node, String), MemoEntry>,
    pub(super) signals: BTreeMap<u64, StoredSignal>,
    /// The numbers of its signals, by key.
    pub(super) signal_numbers: HashMap<String, u64>,
    /// What tasks told in their attempts, the current or earlier ones.
    pub(super) progress: BTreeMap<Node, ReportedProgress>,
}

/// A memo, and the claim under which it was stored, unless a decision stored it.
pub(super) struct MemoEntry {
    pub(super) token: Option<Token>,
    pub(super) memo: StoredMemo,
}

/// A worker that has not been found dead.
pub(super) struct WorkerEntry {
    /// The dead are reaped in this order.
    pub(super) number: usize,
    pub(super) queues: Vec<Queue>,
    pub(super) services: Vec<ServiceId>,
    /// Which of its queues comes first.
    pub(super) next_turn: usize,
    pub(super) lease: Duration,
    /// Its last registration or heartbeat, counted among those of all workers.
    pub(super) n_beats: u64,
    pub(super) claims: BTreeSet<ClaimRef>,
    /// It takes suspects, each with empty hands, and nothing else.
    pub(super) in_trial: bool,
    /// Deregistered: it gets nothing more, and what it still holds is reaped.
    pub(super) is_gone: bool,
}

pub(super) struct LeaderEntry {
    pub(super) worker: WorkerId,
    pub(super) epoch: Epoch,
    pub(super) until: Timestamp,
    pub(super) ttl: Duration,
}

/// Timers by due time; a task has at most one.
#[derive(Default)]
pub(super) struct TimerTable {
    pub(super) by_due: BTreeSet<(Timestamp, u64, RunKey, Node)>,
    by_task: HashMap<(RunKey, Node), (Timestamp, u64)>,
    last_number: u64,
}

impl TimerTable {
    pub(super) fn set(&mut self, run: RunKey, node: Node, due: Timestamp) {
        self.clear(run, node);
        self.last_number += 1;
        self.by_due.insert((due, self.last_number, run, node));
        self.by_task.insert((run, node), (due, self.last_number));
    }

    pub(super) fn clear(&mut self, run: RunKey, node: Node) {
        if let Some((due, number)) = self.by_task.remove(&(run, node)) {
            self.by_due.remove(&(due, number, run, node));
        }
    }
}

impl Tables {
    pub(super) fn definition(&self, id: DefinitionId) -> Result<Arc<StoredDefinition>, StoreError> {
        let found = self.definitions.get(id.0 as usize).cloned();
        found.ok_or_else(|| corrupt(format!("definition {} is missing", id.0)))
    }

    pub(super) fn run(&self, run: RunKey) -> Result<&StoredRun, StoreError> {
        self.runs.get(&run).ok_or_else(|| corrupt(format!("run {run} is missing")))
    }

    /// What a run is decided on.
    pub(super) fn plan_of(&self, run: &StoredRun) -> Result<Arc<StoredDefinition>, StoreError> {
        self.definition(run.row.definition)
    }

    /// Decides what happened to a run and writes what follows. The caller has checked that it is
    /// current.
    pub(super) fn happen(
        &mut self,
        run: RunKey,
        happening: Happening,
    ) -> Result<Verdict, StoreError> {
        let stored_run = self.run(run)?;
        let stored = self.plan_of(stored_run)?;
        let mut affected = affected(&stored.definition, [&happening]);
        let inbox = affected.inbox.as_ref().map(|needs| load_inbox(stored_run, needs));
        if let Some(inbox) = &inbox {
            affected.add_waits(&stored.definition, &inbox.waits, [&happening]);
        }
        let tasks = load(stored_run, &affected);
        let mut image = RunImage::new(&stored.definition, self.now, stored_run.row.clone(), tasks);
        if let Some(inbox) = inbox {
            image = image.with_inbox(inbox);
        }
        let verdict = decide(&mut image, happening);
        self.write(image, &stored);
        Ok(verdict)
    }

    /// Writes a changed image back: rows first, then slots that came free, then what became
    /// ready, so that a freed slot goes to those who waited longest.
    pub(super) fn write(&mut self, image: RunImage<'_>, stored: &StoredDefinition) {
        let (row, tasks, changes) = image.into_parts();
        let (key, tenant) = (row.key, row.tenant.clone());
        let Some(run) = self.runs.get_mut(&key) else { return };
        run.row = row;
        for task in tasks.into_iter().filter(|task| changes.touched.contains(&task.node)) {
            run.tasks.insert(task.node, task);
        }
        let deadline = run.row.standing_deadline();
        let losses = |node: &Node| run.tasks.get(node).map_or(0, |task| task.losses);
        let queued: Vec<(Node, u32)> =
            changes.enqueued.iter().map(|node| (*node, losses(node))).collect();
        run.attempts.extend(changes.attempts.iter().cloned());
        run.events.extend(changes.events.iter().cloned());
        if let Some(extras) = &changes.extras {
            self.write_inbox(key, extras);
        }
        self.remove_places(key, &tenant, &changes);
        for (node, losses) in queued {
            let task = Queued {
                run: key,
                node,
                tenant: tenant.clone(),
                queue: stored.definition.queue(node),
                service: stored.service(),
                losses,
                deadline,
            };
            self.queues.enqueue(task);
        }
        if let Some(run) = self.runs.get(&key) {
            let output = stored.definition.output_step();
            self.earned_hints.add_all(HintSet::earned_by(&run.row, output, &changes));
        }
        for timer in changes.timers {
            self.timers.set(key, timer.node, self.now.after(timer.after));
        }
    }

    /// Writes waits and signals of a run.
    fn write_inbox(&mut self, key: RunKey, extras: &Extras) {
        let Some(run) = self.runs.get_mut(&key) else { return };
        for node in &extras.waits_closed {
            run.waits.retain(|(of, _), _| of != node);
        }
        for ended in &extras.waits_ended {
            run.waits.remove(ended);
        }
        for wait in &extras.waits_opened {
            run.waits.insert((wait.node, wait.key.clone()), wait.clone());
        }
        for row in &extras.signals_stored {
            let payload = self.payloads_of_signals.remove(&(key, row.key.clone()));
            let payload = payload.unwrap_or_else(Payload::empty).of_signal(&row.name);
            run.signal_numbers.insert(row.key.clone(), row.number);
            run.signals.insert(row.number, StoredSignal { row: row.clone(), payload });
        }
        for (number, node) in &extras.signals_consumed {
            if let Some(signal) = run.signals.get_mut(number) {
                signal.row.consumed_by = Some(*node);
            }
        }
        write_memos(run, extras);
    }

    /// Removes queue rows, timers and claims of tasks that moved on.
    fn remove_places(&mut self, run: RunKey, tenant: &Tenant, changes: &Changes) {
        for node in changes.all_timers_cleared() {
            self.timers.clear(run, node);
        }
        self.queues.cancel(run, &changes.dequeued);
        for (node, claim) in &changes.claims_ended {
            let claim_ref = ClaimRef { run, node: *node, token: claim.token };
            if let Some(worker) = self.workers.get_mut(&claim.worker) {
                worker.claims.remove(&claim_ref);
            }
            self.queues.free_slot(tenant);
        }
    }

    pub(super) fn earn(&mut self, hint: Hint) {
        self.earned_hints.add(hint);
    }
}

/// Writes memos of functions. The input of a round is added by those who have it.
fn write_memos(run: &mut StoredRun, extras: &Extras) {
    for node in &extras.memos_cleared {
        run.memos.retain(|(of, _), _| of != node);
    }
    for forgotten in &extras.memos_forgotten {
        run.memos.remove(forgotten);
    }
    for row in &extras.memos {
        let key = (row.node, row.key.clone());
        // What a function may have heard of is never replaced.
        if run.memos.get(&key).is_none_or(|known| known.memo.row.number == 0) {
            let memo = StoredMemo { row: row.clone(), payload: None };
            run.memos.insert(key, MemoEntry { token: None, memo });
        }
    }
}

/// Copies the waits and signals a decision needs.
fn load_inbox(run: &StoredRun, needs: &InboxNeeds) -> Inbox {
    let by_key = needs.keys.iter().filter_map(|key| run.signal_numbers.get(key));
    let mut numbers: BTreeSet<u64> = by_key.copied().collect();
    if needs.unconsumed && run.row.n_unconsumed > 0 {
        let is_left = |signal: &&StoredSignal| signal.row.consumed_by.is_none();
        numbers.extend(run.signals.values().filter(is_left).map(|signal| signal.row.number));
    }
    let signals = numbers.iter().filter_map(|number| run.signals.get(number));
    Inbox { waits: waits(run), signals: signals.map(|signal| signal.row.clone()).collect() }
}

/// Copies the rows a decision needs.
fn load(run: &StoredRun, affected: &Affected) -> Vec<TaskRow> {
    if affected.all_open {
        let is_needed =
            |task: &&TaskRow| !task.state().is_terminal() || affected.tasks.contains(&task.node);
        return run.tasks.values().filter(is_needed).cloned().collect();
    }
    affected.tasks.iter().filter_map(|node| run.tasks.get(node)).cloned().collect()
}
