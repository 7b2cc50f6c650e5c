//! A memory store under watch: every change is held to the invariants as soon as it is made.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use stepwell::MemoryStore;
use stepwell::core::decide::{CancelAnswer, SignalAnswer, may_start};
use stepwell::core::id::{Node, RunKey, WorkerId};
use stepwell::core::run::{RunStatus, TaskState};
use stepwell::ports::{
    ClaimRef, ClaimRequest, ClaimedTask, Clock, CommitAnswer, CommitItem, Commits, Definitions,
    HeartbeatAnswer, InputsOf, Inspection, Outcome, ParentInput, Payload, Runs, SignalRequest,
    StoreDump, Take, TaskInputs, TaskPlace, WorkerRegistration,
};
use stepwell::testing::ManualClock;
use stepwell::testing::conformance::invariants::{DefinitionsById, regressions, violations};

use super::at_once;
use super::claims_seen::{
    is_charged, is_held, is_same, may_take, spent_claim, suspects, task, was_committed,
};
use super::journal::Journal;
use super::post::Post;

/// A spent claim is tried again after every so many changes.
pub(super) const CHANGES_PER_REPLAY: usize = 4;

/// A memory store that fleets share and that notes what they do to it.
pub(crate) struct Watch {
    pub(crate) store: MemoryStore,
    pub(super) clock: ManualClock,
    /// Whether every change is checked. Checks look at all rows, so stores of very many rows only
    /// have their claims noted.
    is_strict: bool,
    notes: Mutex<Notes>,
}

#[derive(Default)]
pub(super) struct Notes {
    pub(super) last: StoreDump,
    definitions: DefinitionsById,
    accepted: BTreeMap<(RunKey, Node), Payload>,
    post: Post,
    pub(super) claims: BTreeSet<ClaimRef>,
    pub(super) served: BTreeMap<WorkerId, WorkerRegistration>,
    journal: Journal,
    pub(super) n_changes: usize,
}

impl Watch {
    pub(crate) fn strict(clock: &ManualClock) -> Arc<Self> {
        Self::new(clock, true)
    }

    pub(crate) fn lenient(clock: &ManualClock) -> Arc<Self> {
        Self::new(clock, false)
    }

    fn new(clock: &ManualClock, is_strict: bool) -> Arc<Self> {
        let store = MemoryStore::with_clock(Arc::new(clock.clone()));
        Arc::new(Self { store, clock: clock.clone(), is_strict, notes: Mutex::default() })
    }

    /// Everything the store holds.
    pub(crate) fn dump(&self) -> StoreDump {
        at_once(self.store.dump()).expect("dump the store")
    }

    /// What became ready and what was claimed, in order.
    pub(crate) fn journal(&self) -> Journal {
        self.notes().journal.clone()
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().expect("no holder of the lock panics")
    }

    /// Something may have changed: everything must still hold.
    pub(crate) fn changed(&self) {
        if !self.is_strict {
            return;
        }
        let dump = self.dump();
        let mut notes = self.notes();
        for log in dump.runs.values() {
            let id = log.run.definition;
            notes.definitions.entry(id).or_insert_with(|| {
                let found = at_once(self.store.definition(id)).expect("read a definition");
                found.expect("the definition of a run is stored")
            });
        }
        let mut findings = violations(&dump, &notes.definitions);
        findings.extend(regressions(&notes.last, &dump));
        findings.extend(self.outputs(&notes, &dump));
        findings.extend(super::journal::limits(&self.store, &notes.last, &dump));
        notes.n_changes += 1;
        let (is_due, last) = (notes.n_changes.is_multiple_of(CHANGES_PER_REPLAY), &dump);
        let spent = is_due.then(|| spent_claim(&notes, last)).flatten();
        let before = std::mem::replace(&mut notes.last, dump);
        let Notes { journal, last, .. } = &mut *notes;
        journal.note_ready(&before, last);
        drop(notes);
        report(&findings);
        if let Some((claim, outcome)) = spent {
            self.replay(claim, outcome);
        }
    }

    /// S7: every output is the one that was accepted.
    fn outputs(&self, notes: &Notes, dump: &StoreDump) -> Vec<String> {
        let mut stored = BTreeMap::new();
        for run in dump.runs.keys() {
            let outputs = at_once(self.store.outputs(*run)).expect("read outputs");
            stored.extend(outputs.into_iter().map(|(node, output)| ((*run, node), output)));
        }
        // A sleep completes without anybody's output, and a wait with what was sent.
        stored.retain(|(run, node), output: &mut Payload| {
            notes.accepted.contains_key(&(*run, *node))
                || *output != notes.post.received(dump, *run, *node).unwrap_or_else(Payload::empty)
        });
        if stored == notes.accepted {
            return Vec::new();
        }
        let differs =
            |(key, output): &(&(RunKey, Node), &Payload)| notes.accepted.get(*key) != Some(*output);
        let changed: Vec<_> = stored.iter().filter(differs).map(|(key, _)| key).collect();
        let lost = notes.accepted.keys().filter(|key| !stored.contains_key(*key)).count();
        vec![format!("outputs {changed:?} are not what was accepted, {lost} are lost")]
    }

    /// S6: a claim that no longer holds its task changes nothing, whatever it says.
    fn replay(&self, claim: ClaimRef, outcome: Outcome) {
        let before = self.dump();
        let was_mine = was_committed(&before, claim);
        let item = CommitItem { claim, outcome };
        let answer = at_once(self.store.commit(vec![item])).expect("commit").remove(0);
        let after = self.dump();
        let mut findings = self.outputs(&self.notes(), &after);
        if !is_same(&before, &after) {
            findings.push(format!("{claim:?} was spent and changed something"));
        }
        if (answer == CommitAnswer::Accepted) != was_mine {
            findings.push(format!("{claim:?} was spent and is answered {answer:?}"));
        }
        report(&findings);
    }

    /// A worker introduced itself.
    pub(crate) fn registered(&self, registration: WorkerRegistration) {
        self.notes().served.insert(registration.worker.clone(), registration);
        self.changed();
    }

    /// Whether anything is ready in the queues of a worker.
    pub(crate) fn anything_waits(&self, worker: &WorkerId) -> bool {
        let dump = self.dump();
        let notes = self.notes();
        let Some(served) = notes.served.get(worker) else { return true };
        let waits = |place: &TaskPlace| match place {
            TaskPlace::Ready(queue, _) => served.queues.contains(queue),
            _ => false,
        };
        dump.places.values().any(waits)
    }

    /// A worker was handed tasks.
    pub(crate) fn claimed(&self, request: &ClaimRequest, tasks: &[ClaimedTask]) {
        let mut notes = self.notes();
        let mut findings = Vec::new();
        if tasks.len() > request.tasks_max {
            findings.push(format!("FB4: {} tasks for {}", tasks.len(), request.tasks_max));
        }
        let n_suspects = tasks.iter().filter(|task| task.is_suspect).count();
        let n_allowed = if request.take == Take::Suspect { tasks.len().min(1) } else { 0 };
        if n_suspects != n_allowed || request.take == Take::Suspect && tasks.len() > 1 {
            findings.push(format!("FA10: {n_suspects} suspects in one claim for {request:?}"));
        }
        for task in tasks {
            // S5
            if !notes.claims.insert(task.claim) {
                findings.push(format!("{:?} was handed out before", task.claim));
            }
            if self.is_strict && !may_take(&notes, &request.worker, task) {
                findings.push(format!("{:?} was not for {}", task.claim, request.worker));
            }
            let run = notes.last.runs.get(&task.claim.run).map(|log| &log.run);
            let deadline = run.and_then(|run| run.deadline);
            if task.claim.node != Node::ON_FAILURE && !may_start(deadline, self.clock.now()) {
                findings.push(format!("{:?} starts after the deadline", task.claim));
            }
        }
        let Notes { journal, last, .. } = &mut *notes;
        journal.note_claims(last, tasks);
        drop(notes);
        report(&findings);
        self.changed();
        let notes = self.notes();
        let n_suspects = suspects(&notes.last, &request.worker, request.crash_limit);
        let n_held = notes.last.claims.get(&request.worker).map_or(0, Vec::len);
        assert!(
            n_suspects == 0 || n_held == 1,
            "R14: {} holds {n_held} tasks, {n_suspects} of them suspects",
            request.worker
        );
    }

    /// S3, S7: a task is executed with what its parents left, byte by byte, and with what ended its
    /// last wait.
    pub(crate) fn handed_inputs(&self, task: InputsOf, inputs: &TaskInputs) {
        if !self.is_strict {
            return;
        }
        let (notes, claim) = (self.notes(), task.claim);
        let of_claim = |parent: &ParentInput| notes.accepted.get(&(claim.run, parent.node));
        let received = |node: Node| notes.post.received(&notes.last, claim.run, node);
        let is_right = |parent: &ParentInput| match (parent.state, &parent.output) {
            (TaskState::Completed, Some(output)) => match of_claim(parent) {
                Some(accepted) => accepted == output,
                None => *output == received(parent.node).unwrap_or_else(Payload::empty),
            },
            (TaskState::Skipped, None) => of_claim(parent).is_none(),
            _ => false,
        };
        let wrong = inputs.parents.iter().filter(|parent| !is_right(parent));
        let mut wrong: Vec<String> =
            wrong.map(|parent| format!("{claim:?} is executed with {parent:?}")).collect();
        if is_held(&notes.last, claim) && inputs.resumed != received(claim.node) {
            wrong.push(format!("{claim:?} is resumed with {:?}", inputs.resumed));
        }
        drop(notes);
        report(&wrong);
    }

    /// L9, L10: signals were sent, and each was answered by how its run stood.
    pub(crate) fn signalled(&self, requests: &[SignalRequest], answers: &[Option<SignalAnswer>]) {
        if !self.is_strict {
            return;
        }
        let findings = {
            let Notes { last, post, .. } = &mut *self.notes();
            post.sent(last, requests, answers)
        };
        report(&findings);
        self.changed();
    }

    /// Outcomes were committed.
    pub(crate) fn committed(&self, items: &[CommitItem], answers: &[CommitAnswer]) {
        if !self.is_strict {
            return;
        }
        let mut findings = Vec::new();
        let mut notes = self.notes();
        let (mut claims, mut runs) = (BTreeSet::new(), BTreeSet::new());
        for (item, answer) in items.iter().zip(answers) {
            let claim = item.claim;
            let is_repeated = !claims.insert(claim);
            let is_first_of_run = runs.insert(claim.run);
            let is_live = is_held(&notes.last, claim) && !is_repeated;
            let is_accepted = *answer == CommitAnswer::Accepted;
            let was_mine = is_repeated || was_committed(&notes.last, claim);
            // S6
            if is_accepted && !is_live && !was_mine {
                findings.push(format!("{claim:?} did not hold its task and was accepted"));
            }
            if !is_accepted && is_live && is_first_of_run {
                findings.push(format!("{claim:?} held its task and was refused"));
            }
            if let (true, true, Outcome::Completed { output, .. }) =
                (is_live, is_accepted, &item.outcome)
            {
                // S10
                let key = (claim.run, claim.node);
                if notes.accepted.insert(key, output.clone()).is_some() {
                    findings.push(format!("{claim:?} is a second completion"));
                }
            }
        }
        drop(notes);
        report(&findings);
        self.changed();
    }

    /// S6: a heartbeat says exactly which claims no longer hold.
    pub(crate) fn beaten(&self, claims: &[ClaimRef], answer: &HeartbeatAnswer) {
        let HeartbeatAnswer::Alive { lost, .. } = answer else { return };
        if !self.is_strict {
            return;
        }
        let dump = self.dump();
        let gone: Vec<ClaimRef> =
            claims.iter().filter(|claim| !is_held(&dump, **claim)).copied().collect();
        assert_eq!(*lost, gone, "claims that no longer hold");
    }

    /// FA10, R14: the deaths of workers were charged as they should be.
    pub(crate) fn reaped(&self, crash_limit: u32) {
        let before = self.notes().last.clone();
        self.changed();
        let notes = self.notes();
        let is_dead = |worker: &WorkerId| !notes.last.claims.contains_key(worker);
        let mut findings = Vec::new();
        for (worker, claims) in before.claims.iter().filter(|(worker, _)| is_dead(worker)) {
            let losses = |dump: &StoreDump| -> Vec<u32> {
                let tasks = claims.iter().filter_map(|claim| task(dump, claim.run, claim.node));
                tasks.map(|task| task.losses).collect()
            };
            let (before, after) = (losses(&before), losses(&notes.last));
            if !is_charged(&before, &after, crash_limit) {
                findings.push(format!("{worker} died: {before:?} losses became {after:?}"));
            }
        }
        drop(notes);
        report(&findings);
    }

    /// S8, FB6: whether a run was cancelled depends on how it stood.
    pub(crate) fn cancelled(&self, run: RunKey, force: bool, answer: Option<CancelAnswer>) {
        if !self.is_strict {
            return;
        }
        let status = self.notes().last.runs.get(&run).map(|log| log.run.status);
        let expected = status.map(|status| match status {
            RunStatus::Running => CancelAnswer::Cancelled,
            RunStatus::Ending if force => CancelAnswer::ForcedToEnd(RunStatus::Failed),
            RunStatus::Ending => CancelAnswer::AlreadyEnding(RunStatus::Failed),
            status => CancelAnswer::AlreadyEnded(status),
        });
        assert_eq!(answer, expected, "the answer to a cancellation");
        self.changed();
    }
}

fn report(findings: &[String]) {
    assert!(findings.is_empty(), "the store broke its promises:\n{}", findings.join("\n"));
}
