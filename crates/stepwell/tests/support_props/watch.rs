//! A memory store under watch: every change is held to the invariants as soon as it is made.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use stepwell::MemoryStore;
use stepwell::core::decide::{CancelAnswer, is_suspect};
use stepwell::core::failure::{Failure, FailureKind, RetryAdvice};
use stepwell::core::id::{Node, RunKey, WorkerId};
use stepwell::core::run::{AttemptState, Phase, RunStatus, TaskRow, TaskState};
use stepwell::ports::{
    ClaimRef, ClaimRequest, ClaimedTask, CommitAnswer, CommitItem, Commits, Definitions,
    HeartbeatAnswer, Inspection, Outcome, ParentInput, Payload, Runs, StoreDump, TaskPlace,
    WorkerRegistration,
};
use stepwell::testing::ManualClock;
use stepwell::testing::conformance::invariants::{DefinitionsById, regressions, violations};

use super::at_once;
use super::journal::Journal;

/// A spent claim is tried again after every so many changes.
const CHANGES_PER_REPLAY: usize = 4;

/// A memory store that fleets share and that notes what they do to it.
pub(crate) struct Watch {
    pub(crate) store: MemoryStore,
    /// Whether every change is checked. Checks look at all rows, so stores of very many rows only
    /// have their claims noted.
    is_strict: bool,
    notes: Mutex<Notes>,
}

#[derive(Default)]
struct Notes {
    last: StoreDump,
    definitions: DefinitionsById,
    accepted: BTreeMap<(RunKey, Node), Payload>,
    claims: BTreeSet<ClaimRef>,
    served: BTreeMap<WorkerId, WorkerRegistration>,
    journal: Journal,
    n_changes: usize,
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
        Arc::new(Self { store, is_strict, notes: Mutex::default() })
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
        // A sleep completes without anybody's output.
        stored.retain(|key, output: &mut Payload| {
            !output.codec.is_empty() || notes.accepted.contains_key(key)
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
        if n_suspects > usize::from(request.suspect) {
            findings.push(format!("FA10: {n_suspects} suspects in one claim"));
        }
        for task in tasks {
            // S5
            if !notes.claims.insert(task.claim) {
                findings.push(format!("{:?} was handed out before", task.claim));
            }
            if self.is_strict && !may_take(&notes, &request.worker, task) {
                findings.push(format!("{:?} was not for {}", task.claim, request.worker));
            }
        }
        let Notes { journal, last, .. } = &mut *notes;
        journal.note_claims(last, tasks);
        drop(notes);
        report(&findings);
        self.changed();
        let n_suspects = suspects(&self.notes().last, &request.worker, request.crash_limit);
        assert!(n_suspects <= 1, "R14: {} holds {n_suspects} suspects", request.worker);
    }

    /// S3, S7: a task is executed with what its parents left, byte by byte.
    pub(crate) fn handed_inputs(&self, claim: ClaimRef, parents: &[ParentInput]) {
        if !self.is_strict {
            return;
        }
        let notes = self.notes();
        let of_claim = |parent: &ParentInput| notes.accepted.get(&(claim.run, parent.node));
        let is_right = |parent: &ParentInput| match (parent.state, &parent.output) {
            (TaskState::Completed, Some(output)) => match of_claim(parent) {
                Some(accepted) => accepted == output,
                None => *output == Payload::empty(),
            },
            (TaskState::Skipped, None) => of_claim(parent).is_none(),
            _ => false,
        };
        let wrong: Vec<String> = parents
            .iter()
            .filter(|parent| !is_right(parent))
            .map(|parent| format!("{claim:?} is executed with {parent:?}"))
            .collect();
        drop(notes);
        report(&wrong);
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
    pub(crate) fn cancelled(&self, run: RunKey, answer: Option<CancelAnswer>) {
        if !self.is_strict {
            return;
        }
        let status = self.notes().last.runs.get(&run).map(|log| log.run.status);
        let expected = status.map(|status| match status {
            RunStatus::Running => CancelAnswer::Cancelled,
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

pub(crate) fn task(dump: &StoreDump, run: RunKey, node: Node) -> Option<&TaskRow> {
    dump.tasks.get(&run)?.iter().find(|task| task.node == node)
}

fn is_held(dump: &StoreDump, claim: ClaimRef) -> bool {
    task(dump, claim.run, claim.node).is_some_and(|task| task.is_held_by(claim.token))
}

/// Whether a claim's own outcome is what ended its attempt.
fn was_committed(dump: &StoreDump, claim: ClaimRef) -> bool {
    let attempts = dump.runs.get(&claim.run).into_iter().flat_map(|log| &log.attempts);
    attempts
        .filter(|attempt| attempt.node == claim.node && attempt.claim.token == claim.token)
        .any(|attempt| !matches!(attempt.state, AttemptState::Lost | AttemptState::Cancelled))
}

/// FE3: the task was ready, and the worker serves its queue and its definition.
fn may_take(notes: &Notes, worker: &WorkerId, taken: &ClaimedTask) -> bool {
    let (run, node) = (taken.claim.run, taken.claim.node);
    let Some(served) = notes.served.get(worker) else { return false };
    let Some(TaskPlace::Ready(queue, _)) = notes.last.places.get(&(run, node)) else {
        return false;
    };
    let row = task(&notes.last, run, node);
    row.is_some_and(|row| matches!(row.phase, Phase::Queued { due: None, .. }))
        && served.queues.contains(queue)
        && served.services.contains(&taken.definition.service())
}

/// How many tasks of a worker one more loss would end.
fn suspects(dump: &StoreDump, worker: &WorkerId, crash_limit: u32) -> usize {
    let claims = dump.claims.get(worker).into_iter().flatten();
    let tasks = claims.filter_map(|claim| task(dump, claim.run, claim.node));
    tasks.filter(|task| is_suspect(task.losses, crash_limit)).count()
}

/// Whether one suspect was charged for a death, or a task that was alone; or else all that were
/// there, as long as that ends none of them.
fn is_charged(before: &[u32], after: &[u32], crash_limit: u32) -> bool {
    let charged: Vec<u32> =
        before.iter().zip(after).filter(|(b, a)| *b + 1 == **a).map(|(b, _)| *b).collect();
    let n_kept = before.iter().zip(after).filter(|(b, a)| b == a).count();
    let has_suspect = before.iter().any(|losses| is_suspect(*losses, crash_limit));
    if has_suspect || before.len() == 1 {
        let is_right = |losses: &u32| !has_suspect || is_suspect(*losses, crash_limit);
        return charged.len() == 1 && is_right(&charged[0]) && n_kept == before.len() - 1;
    }
    charged.len() == before.len()
}

/// Some claim that no longer holds its task, and something it might still say.
fn spent_claim(notes: &Notes, dump: &StoreDump) -> Option<(ClaimRef, Outcome)> {
    let spent = |claim: &&ClaimRef| !is_held(dump, **claim);
    let n = notes.claims.len().max(1);
    // A number without a common divisor with most sizes visits all claims in turn.
    let from = (notes.n_changes * 7_919) % n;
    let claim = notes.claims.iter().cycle().skip(from).take(n).find(spent)?;
    let stale = || Payload { codec: "json".into(), bytes: Arc::from(*b"4711") };
    let failure = Failure::new(FailureKind::Error, "", "late").with_retry(RetryAdvice::Never);
    let none = BTreeMap::new;
    let outcome = match (notes.n_changes / CHANGES_PER_REPLAY) % 5 {
        0 | 1 => Outcome::Completed { output: stale(), notes: none() },
        2 => Outcome::Failed { failure, notes: none(), chance: 0, failures: 0 },
        3 => Outcome::Released,
        _ => Outcome::Skipped,
    };
    Some((*claim, outcome))
}

/// Whether two snapshots show the same rows.
fn is_same(before: &StoreDump, after: &StoreDump) -> bool {
    let is_same_log = |(run, log): (&RunKey, &stepwell::core::run::RunLog)| {
        after.runs.get(run).is_some_and(|later| {
            log.run == later.run && log.attempts == later.attempts && log.events == later.events
        })
    };
    before.runs.len() == after.runs.len()
        && before.runs.iter().all(is_same_log)
        && before.tasks == after.tasks
        && before.places == after.places
        && before.timers == after.timers
        && before.claims == after.claims
        && before.admitted == after.admitted
}
