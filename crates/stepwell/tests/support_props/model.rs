//! What must become of a plan, worked out naively: node by node, parents first (DESIGN 5).

use std::collections::{BTreeMap, BTreeSet};

use stepwell::core::id::{Node, RunKey};
use stepwell::core::run::{
    AttemptRow, AttemptState, EventKind, RunLog, RunStatus, TaskRow, TaskState, read_log,
};
use stepwell::core::workflow::NodeKind;
use stepwell::ports::{Payload, Runs, Signals, StoreDump};

use super::at_once;
use super::marks::{Mark, marks_wrong};
use super::plan::{Fate, NodePlan, Plan, node, output_of};
use super::steps::{Execution, Seen};
use super::watch::Watch;

/// A run that has ended, to be compared with its plan.
pub(crate) struct Story<'a> {
    pub(crate) plan: &'a Plan,
    /// The run's number, which is its input.
    pub(crate) run: u64,
    pub(crate) log: &'a RunLog,
    pub(crate) tasks: BTreeMap<Node, &'a TaskRow>,
    pub(crate) outputs: BTreeMap<Node, u64>,
    /// What signals brought, by number, and who got it.
    pub(crate) signals: BTreeMap<u64, (Option<Node>, u64)>,
    pub(crate) executions: Vec<Execution>,
    pub(crate) marks: Vec<Mark>,
    /// Whether no worker died and nothing was handed back.
    pub(crate) is_calm: bool,
    pub(crate) crash_limit: u32,
}

impl<'a> Story<'a> {
    pub(crate) fn new(
        (plan, run): (&'a Plan, u64),
        (watch, dump, key): (&Watch, &'a StoreDump, RunKey),
        (executions, marks): (Vec<Execution>, Vec<Mark>),
        crash_limit: Option<u32>,
    ) -> Self {
        let mut outputs = at_once(watch.store.outputs(key)).expect("read outputs");
        let is_number = |output: &Payload| !output.codec.is_empty() && !output.is_timed_out();
        outputs.retain(|(node, output)| *node != Node::ON_FAILURE && is_number(output));
        let read = |bytes: &[u8]| serde_json::from_slice(bytes).expect("all is in numbers");
        let signals = at_once(watch.store.signals(key)).expect("read signals");
        Self {
            plan,
            run,
            log: &dump.runs[&key],
            tasks: dump.tasks[&key].iter().map(|task| (task.node, task)).collect(),
            outputs: outputs.into_iter().map(|(node, o)| (node, read(&o.bytes))).collect(),
            signals: signals
                .into_iter()
                .map(|s| (s.row.number, (s.row.consumed_by, read(&s.payload.bytes))))
                .collect(),
            executions,
            marks,
            is_calm: crash_limit.is_none(),
            crash_limit: crash_limit.unwrap_or(u32::MAX),
        }
    }

    /// Panics with everything that is not as the plan says.
    pub(crate) fn check(&self) {
        let mut findings = Vec::new();
        let mut states = Vec::new();
        for (ix, plan) in self.plan.nodes.iter().enumerate() {
            let (actual, expected) = (self.state(node(ix)), self.expected(ix, plan, &states));
            if actual != Some(expected) {
                findings.push(format!("s{ix} is {actual:?}, it should be {expected}"));
            }
            findings.extend(self.attempts_wrong(ix, plan));
            findings.extend(self.executions_wrong(node(ix), &plan.parents));
            findings.extend(self.heard_wrong(node(ix)));
            findings.extend(self.marks_wrong(node(ix)));
            let output = match plan.kind {
                _ if expected != TaskState::Completed => None,
                NodeKind::Step => {
                    Some(output_of(self.run, node(ix), self.tasks[&node(ix)].attempt))
                }
                NodeKind::Wait => self.received(node(ix)),
                _ => None,
            };
            if self.outputs.get(&node(ix)).copied() != output {
                findings.push(format!("s{ix} gave {:?}, not {output:?}", self.outputs));
            }
            states.push(expected);
        }
        findings.extend(self.end_wrong(&states));
        assert!(findings.is_empty(), "run {}:\n{}", self.run, findings.join("\n"));
    }

    fn state(&self, node: Node) -> Option<TaskState> {
        self.tasks.get(&node).map(|task| task.state())
    }

    /// Whether the run's deadline passed before its end was decided.
    fn is_late(&self) -> bool {
        self.log.events.iter().any(|event| event.kind == EventKind::DeadlinePassed)
    }

    fn is_forced(&self) -> bool {
        let is_force =
            |kind: &EventKind| matches!(kind, EventKind::RunCancelled { forced, .. } if *forced);
        self.log.events.iter().any(|event| is_force(&event.kind))
    }

    /// What the one signal brought that a wait node got.
    fn received(&self, node: Node) -> Option<u64> {
        let mut given = self.signals.values().filter(|(receiver, _)| *receiver == Some(node));
        given.next().map(|(_, value)| *value)
    }

    fn attempts(&self, node: Node) -> impl Iterator<Item = &AttemptRow> {
        self.log.attempts.iter().filter(move |attempt| attempt.node == node)
    }

    /// What must become of a node, given what became of those before it. Where two things may
    /// come first, it is what did.
    fn expected(&self, ix: usize, plan: &NodePlan, states: &[TaskState]) -> TaskState {
        let actual = self.state(node(ix));
        let has_failed = self.tasks.values().any(|task| task.state() == TaskState::Failed);
        let is_cut_short =
            self.log.run.cancelled || self.is_late() || (self.plan.fail_fast && has_failed);
        if is_cut_short && actual == Some(TaskState::Cancelled) {
            return TaskState::Cancelled;
        }
        let parents = || plan.parents.iter().map(|(parent, needed)| (states[*parent], *needed));
        let is_doomed =
            parents().any(|(state, _)| matches!(state, TaskState::Failed | TaskState::Cancelled));
        let is_skipped = |state| state == TaskState::Skipped;
        let goes_along = parents().any(|(state, needed)| needed && is_skipped(state))
            || (!plan.parents.is_empty() && parents().all(|(state, _)| is_skipped(state)));
        match (is_doomed, goes_along) {
            (true, true) if actual == Some(TaskState::Skipped) => TaskState::Skipped,
            (true, _) => TaskState::Cancelled,
            (false, true) => TaskState::Skipped,
            (false, false) => self.own(ix, plan),
        }
    }

    /// What becomes of a node that is executed.
    fn own(&self, ix: usize, plan: &NodePlan) -> TaskState {
        let task = self.tasks[&node(ix)];
        if task.losses >= self.crash_limit {
            return TaskState::Failed;
        }
        if plan.is_skipped {
            return TaskState::Skipped;
        }
        if plan.kind != NodeKind::Step {
            return TaskState::Completed;
        }
        let mut failures = 0;
        for attempt in 1.. {
            // The plan's fate of an attempt that was lost or handed back was not to be.
            let is_void = |row: &AttemptRow| {
                row.attempt == attempt
                    && matches!(row.state, AttemptState::Lost | AttemptState::Released)
            };
            if self.attempts(node(ix)).any(is_void) {
                continue;
            }
            match plan.fate(attempt) {
                Fate::Completes => return TaskState::Completed,
                Fate::FailsForGood => return TaskState::Failed,
                Fate::Waits | Fate::Suspends => {}
                Fate::Fails | Fate::Panics | Fate::Hangs => failures += 1,
            }
            if failures > plan.retry.retries_max {
                return TaskState::Failed;
            }
        }
        unreachable!("attempts without a planned fate complete")
    }

    /// S9, S11: attempts ended as planned, none began before it was due, and none was lost or
    /// handed back without a fault.
    fn attempts_wrong(&self, ix: usize, plan: &NodePlan) -> Vec<String> {
        let mut findings = Vec::new();
        let mut due = None;
        for row in self.attempts(node(ix)) {
            let fate = plan.fate(row.attempt);
            let is_planned = match row.state {
                AttemptState::Completed => fate == Fate::Completes,
                AttemptState::TimedOut => fate == Fate::Hangs,
                AttemptState::Suspended => matches!(fate, Fate::Waits | Fate::Suspends),
                AttemptState::Failed => {
                    matches!(fate, Fate::Fails | Fate::FailsForGood | Fate::Panics)
                }
                AttemptState::Lost | AttemptState::Released => !self.is_calm,
                _ => true,
            };
            if !is_planned || due.is_some_and(|due| row.claim.started_at < due) {
                findings.push(format!("s{ix}: {row:?} was planned as {fate:?}"));
            }
            due = row.retry.map(|plan| plan.due);
        }
        let n_lost = self.attempts(node(ix)).filter(|row| row.state == AttemptState::Lost).count();
        let losses = self.tasks[&node(ix)].losses;
        if losses > self.crash_limit || losses as usize > n_lost {
            findings.push(format!("s{ix} has {losses} losses, {n_lost} attempts were lost"));
        }
        findings
    }

    /// S3, S7, S10: every attempt is executed once, with what its parents left; one that was
    /// neither lost nor cancelled was executed.
    fn executions_wrong(&self, node: Node, parents: &[(usize, bool)]) -> Vec<String> {
        let mut findings = Vec::new();
        let expected: Vec<Seen> = parents.iter().map(|(ix, _)| self.left_by(*ix)).collect();
        let mut executed = BTreeSet::new();
        for execution in self.executions.iter().filter(|execution| execution.node == node) {
            if !executed.insert(execution.attempt) {
                findings.push(format!("{node:?}: attempt {} twice", execution.attempt));
            }
            if execution.seen != expected {
                findings.push(format!("{node:?} saw {:?}, not {expected:?}", execution.seen));
            }
        }
        let interrupted = [AttemptState::Lost, AttemptState::Cancelled, AttemptState::Released];
        let mut recorded = BTreeSet::new();
        for row in self.attempts(node) {
            recorded.insert(row.attempt);
            if !interrupted.contains(&row.state) && !executed.contains(&row.attempt) {
                findings.push(format!("{node:?}: {row:?} was never executed"));
            }
        }
        if !executed.is_subset(&recorded) {
            findings.push(format!("{node:?}: {executed:?} were executed, {recorded:?} recorded"));
        }
        findings
    }

    /// L7, L8: every attempt is told what ended the last wait before it, by the log.
    fn heard_wrong(&self, node: Node) -> Vec<String> {
        let (mut told, mut last) = (BTreeMap::new(), None);
        for event in read_log(self.log).into_iter().filter(|event| event.node == Some(node)) {
            match event.kind {
                EventKind::Waiting { .. } => last = None,
                EventKind::Signalled { number, .. } => {
                    last = self.signals.get(&number).map(|(_, value)| Seen::Output(*value));
                }
                EventKind::TimedOut { .. } => last = Some(Seen::TimedOut),
                EventKind::Started { .. } => drop(told.insert(event.attempt, last)),
                _ => {}
            }
        }
        let executions = self.executions.iter().filter(|execution| execution.node == node);
        let is_wrong = |execution: &&Execution| {
            told.get(&execution.attempt).is_some_and(|told| *told != execution.heard)
        };
        let in_words = |execution: &Execution| format!("{execution:?}, its log tells {told:?}");
        executions.filter(is_wrong).map(in_words).collect()
    }

    fn marks_wrong(&self, node: Node) -> Vec<String> {
        let marks: Vec<&Mark> = self.marks.iter().filter(|mark| mark.node == node).collect();
        let attempts: Vec<&AttemptRow> = self.attempts(node).collect();
        let told = marks_wrong(&marks, &attempts).into_iter();
        told.map(|finding| format!("{node:?}: {finding}")).collect()
    }

    fn left_by(&self, ix: usize) -> Seen {
        match (self.state(node(ix)), self.outputs.get(&node(ix))) {
            (Some(TaskState::Completed), Some(output)) => Seen::Output(*output),
            (Some(TaskState::Completed), None) if self.plan.nodes[ix].kind == NodeKind::Wait => {
                Seen::TimedOut
            }
            (Some(TaskState::Completed), None) => Seen::Slept,
            _ => Seen::Nothing,
        }
    }

    /// R16, R20: the run ended as its tasks did, and its failure handler ran if it failed.
    fn end_wrong(&self, states: &[TaskState]) -> Vec<String> {
        let mut findings = Vec::new();
        let lacks_output = self
            .plan
            .output
            .is_some_and(|(ix, required)| required && states[ix] == TaskState::Skipped);
        let expected = if states.contains(&TaskState::Failed) || lacks_output || self.is_late() {
            RunStatus::Failed
        } else if self.log.run.cancelled {
            RunStatus::Cancelled
        } else {
            RunStatus::Completed
        };
        if self.log.run.status != expected {
            findings.push(format!("it is {}, it should be {expected}", self.log.run.status));
        }
        let handler = self.state(Node::ON_FAILURE);
        let is_right = match handler {
            None => self.is_forced() || !(self.plan.on_failure && expected == RunStatus::Failed),
            Some(TaskState::Cancelled) => self.is_forced(),
            Some(TaskState::Completed) => self.plan.on_failure && expected == RunStatus::Failed,
            Some(TaskState::Failed) => self.tasks[&Node::ON_FAILURE].losses >= self.crash_limit,
            Some(_) => false,
        };
        if !is_right {
            findings.push(format!("it is {expected} and its failure handler {handler:?}"));
        }
        findings.extend(self.executions_wrong(Node::ON_FAILURE, &[]));
        findings
    }
}
