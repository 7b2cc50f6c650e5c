//! Workers without engines: they call the store in any order, late, twice, or never again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use stepwell::core::decide::{CancelRequest, NewSignal, RunSeed};
use stepwell::core::failure::{Failure, FailureKind, RetryAdvice};
use stepwell::core::id::{Epoch, Node, Queue, RunId, RunKey, Tenant, WorkerId};
use stepwell::core::lease::LastBeat;
use stepwell::core::run::{Attributes, TaskState};
use stepwell::core::workflow::NodeKind;
use stepwell::ports::{
    ClaimAnswer, ClaimRequest, ClaimedTask, Claims, Clock, CommitItem, Commits, Definitions, Lead,
    Leadership, Outcome, ParentInput, Payload, ReapRequest, SignalRequest, SignalTarget, Signals,
    StartAnswer, StartRequest, Starts, StoredDefinition, Take, Timers, WorkerRegistration, Workers,
};
use stepwell::testing::ManualClock;
use stepwell::testing::conformance::world::Beats;

use super::at_once;
use super::fleet::LEASE;
use super::link::Link;
use super::model::Story;
use super::moves::{Letter, Move};
use super::plan::{Fate, NodePlan, Plan, SIGNALS, attribute, output_of};
use super::steps::{Execution, Ledger, Seen};
use super::watch::Watch;

const CRASH_LIMIT: u32 = 3;
pub(super) const N_SEATS: usize = 3;

/// What signals bring are numbers from here on.
const SIGNALLED: u64 = 1 << 50;

/// Workers and the runs they are at, without any engine.
pub(crate) struct Storm<'a> {
    plans: &'a [Arc<Plan>],
    clock: ManualClock,
    watch: Arc<Watch>,
    link: Link,
    ledger: Ledger,
    flows: Vec<Arc<StoredDefinition>>,
    runs: Vec<(RunKey, usize)>,
    seats: Vec<Worker>,
    committed: Vec<CommitItem>,
    beats: Beats,
    n_hired: usize,
    n_claims: u64,
    n_sent: u64,
}

struct Worker {
    id: WorkerId,
    held: Vec<ClaimedTask>,
}

impl<'a> Storm<'a> {
    /// Runs of these plans, some with a deadline.
    pub(crate) fn new(plans: &'a [Arc<Plan>], runs: &[(usize, Option<Duration>)]) -> Self {
        let clock = ManualClock::new();
        let watch = Watch::strict(&clock);
        let link = Link::new(&watch);
        let flow = |(ix, plan): (usize, &Arc<Plan>)| {
            let definition = plan.definition(&format!("plan-{ix}"));
            at_once(link.register(&definition)).expect("register a definition")
        };
        let flows = plans.iter().enumerate().map(flow).collect();
        let mut storm = Self {
            plans,
            clock,
            watch,
            link,
            ledger: Ledger::default(),
            flows,
            runs: Vec::new(),
            seats: Vec::new(),
            committed: Vec::new(),
            beats: Beats::default(),
            n_hired: 0,
            n_claims: 0,
            n_sent: 0,
        };
        for seat in 0..N_SEATS {
            let worker = storm.hire(seat);
            storm.seats.push(worker);
        }
        for (run, (plan, deadline)) in runs.iter().enumerate() {
            storm.start(run, *plan, *deadline);
        }
        storm
    }

    /// A new worker. Those in odd seats know the first plan only (FE3).
    fn hire(&mut self, seat: usize) -> Worker {
        self.n_hired += 1;
        let id = WorkerId::new(format!("worker-{}", self.n_hired)).expect("a usable name");
        self.introduce(seat, &id);
        Worker { id, held: Vec::new() }
    }

    fn introduce(&mut self, seat: usize, worker: &WorkerId) {
        let n_known = if seat.is_multiple_of(2) { self.flows.len() } else { 1 };
        let registration = WorkerRegistration {
            worker: worker.clone(),
            queues: vec![Queue::default_queue()],
            services: self.flows.iter().take(n_known).map(|flow| flow.marked_service()).collect(),
            lease: LEASE,
        };
        at_once(self.link.register_worker(registration)).expect("register a worker");
        self.dead();
    }

    fn start(&mut self, run: usize, plan: usize, deadline: Option<Duration>) {
        let seed = RunSeed {
            key: RunKey(run as u128 + 1),
            tenant: tenant(run),
            id: run_id(run),
            definition: self.flows[plan].id,
            deadline,
        };
        self.runs.push((seed.key, plan));
        let (input, mark) = (number(run as u64), self.flows[plan].mark);
        let request = StartRequest { seed, mark, input, input_digest: [0; 32] };
        let answers = at_once(self.link.start(vec![request])).expect("start a run");
        assert!(matches!(answers.as_slice(), [StartAnswer::Started]), "{answers:?}");
    }

    pub(crate) fn make(&mut self, next: &Move) {
        match next {
            Move::Claim { seat, tasks_max } => self.claim(*seat, *tasks_max),
            Move::Commit { seat, picks } => self.commit(*seat, picks),
            Move::Release { seat, pick } => self.release(*seat, *pick),
            Move::Repeat { pick } => {
                if !self.committed.is_empty() {
                    let item = self.committed[pick % self.committed.len()].clone();
                    at_once(self.link.commit(vec![item])).expect("commit");
                }
            }
            Move::Beat { seat } => self.beat(*seat),
            Move::Die { seat } => self.seats[*seat] = self.hire(*seat),
            Move::Pass { millis } => self.clock.advance(Duration::from_millis(*millis)),
            Move::Fire { timers_max } => self.fire(*timers_max),
            Move::Reap => self.reap(),
            Move::Cancel { run, force } => {
                if let Some((key, _)) = self.runs.get(*run) {
                    let request = CancelRequest { force: *force, ..CancelRequest::by("a test") };
                    at_once(self.link.cancel(*key, request)).expect("cancel");
                }
            }
            Move::Signal { letters } => {
                let requests = letters.iter().map(|letter| self.write(*letter)).collect();
                at_once(self.link.signal(requests)).expect("send signals");
            }
        }
    }

    /// A signal whose payload is a number that no output has. One run in four is none.
    fn write(&mut self, letter: Letter) -> SignalRequest {
        self.n_sent += 1;
        let Letter { run, name, has_attribute, key, only_if_awaited, by_id } = letter;
        let to = if by_id {
            SignalTarget::Id(tenant(run), run_id(run))
        } else {
            SignalTarget::Key(RunKey(run as u128 + 1))
        };
        let key = key.map_or_else(|| format!("own-{}", self.n_sent), |key| format!("key-{key}"));
        let attributes: Attributes = has_attribute.then(attribute).into_iter().collect();
        let payload = number(SIGNALLED + self.n_sent);
        let mut digest = [0; 32];
        digest[..8].copy_from_slice(&self.n_sent.to_le_bytes());
        let name = SIGNALS[name].to_owned();
        let signal = NewSignal { name, key, attributes, digest, only_if_awaited };
        SignalRequest { to, signal, payload }
    }

    /// Sends what the oldest wait of every run is for.
    fn answer_all(&mut self) {
        let mut letters = Vec::new();
        for (run, (key, _)) in self.runs.iter().enumerate() {
            let waits = at_once(self.link.waits(*key)).expect("read waits");
            letters.extend(waits.first().map(|wait| Letter {
                run,
                name: SIGNALS.iter().position(|name| wait.signals[0] == *name).expect("known"),
                has_attribute: true,
                key: None,
                only_if_awaited: false,
                by_id: false,
            }));
        }
        self.make(&Move::Signal { letters });
    }

    /// Everybody works and nobody dies until all runs have ended.
    pub(crate) fn calm_down(&mut self) {
        for _ in 0..10_000 {
            for seat in 0..N_SEATS {
                self.beat(seat);
                self.claim(seat, 100);
                let picks: Vec<usize> = (0..self.seats[seat].held.len()).rev().collect();
                self.commit(seat, &picks);
            }
            self.fire(100);
            self.answer_all();
            self.reap();
            if self.watch.store.n_open_runs() == 0 {
                // What has ended stays as it is (S8).
                for run in 0..self.runs.len() {
                    self.make(&Move::Cancel { run, force: run.is_multiple_of(2) });
                }
                return;
            }
            let next_due = self.watch.store.next_due();
            let next = next_due.map_or(LEASE / 2, |due| due.since(self.clock.now()));
            self.clock.advance(next.min(LEASE / 2));
        }
        panic!("runs stay open: {:?}", self.watch.dump().tasks);
    }

    /// Compares every run with its plan.
    pub(crate) fn check(&self) {
        let dump = self.watch.dump();
        for (run, (key, plan)) in self.runs.iter().enumerate() {
            let (plan, source) = ((&*self.plans[*plan], run as u64), (&*self.watch, &dump, *key));
            let executions = self.ledger.of_run(run as u64);
            let told = (executions, Vec::new());
            Story::new(plan, source, told, Some(CRASH_LIMIT)).check();
        }
    }

    fn claim(&mut self, seat: usize, tasks_max: usize) {
        self.n_claims += 1;
        // Every third claim looks for a suspect, also if the seat's hands are not empty.
        let take = if self.n_claims.is_multiple_of(3) { Take::Suspect } else { Take::Plain };
        let (salt, worker, crash_limit) = (self.n_claims, self.seats[seat].id.clone(), CRASH_LIMIT);
        let request = ClaimRequest { worker, tasks_max, take, crash_limit, salt };
        match at_once(self.link.claim(request)).expect("claim") {
            ClaimAnswer::Claimed { tasks, .. } => {
                for task in &tasks {
                    self.execute(task);
                }
                self.seats[seat].held.extend(tasks);
            }
            ClaimAnswer::NoTrial => {}
            ClaimAnswer::NotRegistered => self.introduce(seat, &self.seats[seat].id.clone()),
        }
    }

    /// Writes down what a step is executed with, if it is a step that its condition lets run.
    fn execute(&self, task: &ClaimedTask) {
        let inputs = at_once(self.link.inputs(&[task.inputs_of()])).expect("read inputs").remove(0);
        let is_skipped = |plan: &NodePlan| plan.is_skipped || plan.kind != NodeKind::Step;
        if self.plan_of(task).is_some_and(is_skipped) {
            return;
        }
        let seen = inputs.parents.iter().map(seen).collect();
        let heard = inputs.resumed.as_ref().map(read);
        let (run, node, attempt) = (self.run_of(task), task.claim.node, task.attempt);
        self.ledger.note(Execution { run, node, attempt, seen, heard });
    }

    /// The run's number; its key is one more.
    fn run_of(&self, task: &ClaimedTask) -> u64 {
        let of_task = |(key, _): &(RunKey, usize)| *key == task.claim.run;
        self.runs.iter().position(of_task).expect("the run was started") as u64
    }

    fn plan_of(&self, task: &ClaimedTask) -> Option<&'a NodePlan> {
        let run = usize::try_from(self.run_of(task)).expect("few runs");
        self.plans[self.runs[run].1].nodes.get(task.claim.node.index())
    }

    fn outcome(&self, task: &ClaimedTask) -> Outcome {
        let notes = BTreeMap::new();
        let Some(plan) = self.plan_of(task) else {
            assert_eq!(task.claim.node, Node::ON_FAILURE, "a node of the plan");
            return Outcome::Completed { output: number(0), notes };
        };
        let failed = |kind, retry| Outcome::Failed {
            failure: Failure::new(kind, "", "planned").with_retry(retry),
            notes: BTreeMap::new(),
            chance: 0,
            failures: task.failures,
            forgets: Vec::new(),
        };
        let wait_for = plan.awaits.clone();
        match plan.fate(task.attempt) {
            _ if plan.is_skipped => Outcome::Skipped,
            _ if plan.kind == NodeKind::ConditionalSleep => Outcome::Slept,
            _ if plan.kind == NodeKind::Wait => Outcome::Waits { wait_for, notes },
            Fate::Waits => Outcome::Waits { wait_for, notes },
            Fate::Suspends => unreachable!("plans for storms have waits instead"),
            Fate::Completes => {
                let output = output_of(self.run_of(task), task.claim.node, task.attempt);
                Outcome::Completed { output: number(output), notes }
            }
            Fate::Fails => failed(FailureKind::Error, RetryAdvice::ByPolicy),
            Fate::Panics => failed(FailureKind::Panic, RetryAdvice::ByPolicy),
            Fate::Hangs => failed(FailureKind::TimedOut, RetryAdvice::ByPolicy),
            Fate::FailsForGood => failed(FailureKind::Error, RetryAdvice::Never),
        }
    }

    fn commit(&mut self, seat: usize, picks: &[usize]) {
        let mut items = Vec::new();
        for pick in picks {
            let held = &mut self.seats[seat].held;
            if held.is_empty() {
                break;
            }
            let task = held.remove(pick % held.len());
            items.push(CommitItem { claim: task.claim, outcome: self.outcome(&task) });
        }
        self.committed.extend(items.iter().cloned());
        if !items.is_empty() {
            at_once(self.link.commit(items)).expect("commit");
        }
    }

    fn release(&mut self, seat: usize, pick: usize) {
        let held = &mut self.seats[seat].held;
        if !held.is_empty() {
            let claim = held.remove(pick % held.len()).claim;
            let item = CommitItem { claim, outcome: Outcome::Released };
            self.committed.push(item.clone());
            at_once(self.link.commit(vec![item])).expect("commit");
        }
    }

    fn beat(&mut self, seat: usize) {
        let worker = &self.seats[seat];
        let claims: Vec<_> = worker.held.iter().map(|task| task.claim).collect();
        at_once(self.link.heartbeat(&worker.id, &claims)).expect("heartbeat");
        self.dead();
    }

    /// Those of whom nothing was heard for a lease.
    fn dead(&mut self) -> Vec<LastBeat> {
        let lives = at_once(self.link.lives()).expect("look at workers");
        self.beats.look(self.clock.elapsed(), &lives)
    }

    fn lead(&self) -> Epoch {
        let leader = WorkerId::new("leader").expect("a usable name");
        match at_once(self.link.lead(&leader, LEASE)).expect("lead") {
            Lead::Leading(epoch) => epoch,
            Lead::Following => unreachable!("there is one candidate"),
        }
    }

    fn fire(&self, timers_max: usize) {
        at_once(self.link.fire_timers(self.lead(), timers_max)).expect("fire timers");
    }

    fn reap(&mut self) {
        let request = ReapRequest { crash_limit: CRASH_LIMIT, dead: self.dead() };
        let epoch = self.lead();
        at_once(self.link.reap(epoch, request)).expect("reap");
    }
}

fn number(value: u64) -> Payload {
    Payload::new("json".into(), value.to_string().into_bytes())
}

fn seen(parent: &ParentInput) -> Seen {
    match (parent.state, &parent.output) {
        (TaskState::Completed, Some(output)) => read(output),
        _ => Seen::Nothing,
    }
}

fn read(payload: &Payload) -> Seen {
    match payload {
        empty if *empty == Payload::empty() => Seen::Slept,
        over if over.is_timed_out() => Seen::TimedOut,
        given => Seen::Output(serde_json::from_slice(&given.bytes).expect("all is in numbers")),
    }
}

fn tenant(run: usize) -> Tenant {
    Tenant::new(format!("tenant-{}", run % 2)).expect("a usable name")
}

fn run_id(run: usize) -> RunId {
    RunId::new(format!("run-{run}")).expect("a usable name")
}
