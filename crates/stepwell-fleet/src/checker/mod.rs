//! Compares what processes wrote down with what the store says, after everything has ended.
//!
//! [`Evidence`] is gathered once; each check is a function from it to findings in words. None of
//! them knows what happened to the fleet, except for how bad it was: [`Faults`].

mod ends;
mod executions;
mod functions;
mod order;
mod runs;
mod waits;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use stepwell::core::id::{Node, RunKey};
use stepwell::core::run::{
    AttemptRow, AttemptState, Event, RunLog, SignalRow, TaskRow, TaskState, read_log,
};
use stepwell::ports::{Store, StoreDump, StoredDefinition, StoredMemo};
use stepwell::testing::conformance::invariants::{DefinitionsById, violations};

use crate::Result;
use crate::asked::{Asked, AskedCancel};
use crate::expected::{TimedOut, input_of};
use crate::functions::{Effect, plans};
use crate::history::{self, Line};
use crate::plan::{self, Plan};

pub use functions::FunctionCounts;

/// The worst that happened to the fleet: it says how often a step may be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Faults {
    /// Nothing: each task is executed exactly once, and as often as it fails on purpose.
    None,
    /// Workers were asked to stop: tasks may have been handed back, uncharged.
    Restarts,
    /// Workers or the database died: attempts may have been lost.
    Crashes,
}

/// Everything that is known after the end.
pub struct Evidence {
    /// What clients asked for and were told.
    pub asked: Asked,
    /// What the processes wrote down.
    pub history: Vec<Line>,
    /// What they wrote down about functions.
    pub effects: Vec<Effect>,
    /// What the store holds.
    pub dump: StoreDump,
    /// The definitions of its runs.
    pub definitions: DefinitionsById,
    /// Outputs as stored, by run.
    pub outputs: BTreeMap<RunKey, BTreeMap<Node, u64>>,
    /// Memos as stored, by run.
    pub memos: BTreeMap<RunKey, Vec<StoredMemo>>,
    /// Whether the store's time has nothing to do with that of the machine, which processes write
    /// down: clocks jumped.
    pub has_own_time: bool,
}

/// How much happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Runs in the store.
    pub runs: usize,
    /// Tasks of them.
    pub tasks: usize,
    /// Executions that processes began.
    pub executions: usize,
    /// Attempts that were lost with their worker.
    pub lost: usize,
    /// Attempts that were handed back.
    pub released: usize,
    /// Executions that went waiting for a signal.
    pub suspended: usize,
    /// Signals that a task got.
    pub received: usize,
    /// Waits that timed out.
    pub timed_out: usize,
    /// Runs that were cancelled.
    pub cancelled: usize,
    /// Runs that missed their deadline.
    pub late: usize,
}

impl Evidence {
    /// Reads the store and the files of the processes.
    ///
    /// # Errors
    /// If either cannot be read.
    pub async fn gather(store: &dyn Store, folder: &Path, asked: Asked) -> Result<Self> {
        let dump = store.dump().await?;
        let (mut definitions, mut outputs) = (DefinitionsById::new(), BTreeMap::new());
        let mut memos = BTreeMap::new();
        for (key, log) in &dump.runs {
            let id = log.run.definition;
            if let Some(found) = store.definition(id).await? {
                definitions.entry(id).or_insert(found);
            }
            let read = |bytes: &[u8]| serde_json::from_slice(bytes).unwrap_or_default();
            let stored = store.outputs(*key).await?;
            // A wait that timed out has left nothing.
            let stored = stored.into_iter().filter(|(_, output)| !output.is_timed_out());
            let stored = stored.map(|(node, output)| (node, read(&output.bytes)));
            outputs.insert(*key, stored.collect());
            memos.insert(*key, store.memos(*key).await?);
        }
        let (history, effects) = (history::read(folder)?, crate::functions::read(folder)?);
        Ok(Self { asked, history, effects, dump, definitions, outputs, memos, has_own_time: false })
    }

    /// Everything that is wrong, in words; empty if nothing is.
    #[must_use]
    pub fn violations(&self, faults: Faults) -> Vec<String> {
        let mut findings = violations(&self.dump, &self.definitions);
        findings.extend(runs::lost_starts(self));
        findings.extend(waits::lost_signals(self));
        let plans: BTreeMap<String, Plan> =
            plan::all().into_iter().chain(plans()).map(|plan| (plan.name.clone(), plan)).collect();
        let mut history = executions::by_run(&self.history);
        let mut effects = functions::by_run(self);
        for (key, log) in &self.dump.runs {
            let id = log.run.id.as_str();
            let of_run = history.remove(id).unwrap_or_default();
            let done = effects.remove(id).unwrap_or_default();
            let mut of = match CheckedRun::new(self, *key, log, &plans, of_run) {
                Some(run) => {
                    let memos = self.memos.get(key).map_or(&[][..], Vec::as_slice);
                    let mut of = functions::check(&run, memos, &done, faults);
                    of.extend(run.violations(faults));
                    of
                }
                None => vec!["it has no plan".to_owned()],
            };
            findings.extend(of.drain(..).map(|finding| format!("run {id}: {finding}")));
        }
        let gone = history.keys().chain(effects.keys());
        findings.extend(gone.map(|id| format!("run {id} was executed and is gone")));
        findings
    }

    /// How much functions did.
    #[must_use]
    pub fn function_counts(&self) -> FunctionCounts {
        functions::counts(self)
    }

    /// How much happened.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let attempts = || self.dump.runs.values().flat_map(|log| &log.attempts);
        let count = |state| attempts().filter(|attempt| attempt.state == state).count();
        let events = || self.dump.runs.values().flat_map(|log| &log.events);
        let event = |name: &str| events().filter(|event| event.kind.name() == name).count();
        Counts {
            runs: self.dump.runs.len(),
            tasks: self.dump.tasks.values().map(Vec::len).sum(),
            executions: executions::n_begun(&self.history),
            lost: count(AttemptState::Lost),
            released: count(AttemptState::Released),
            suspended: count(AttemptState::Suspended),
            received: event("SIGNALLED"),
            timed_out: event("TIMED_OUT"),
            cancelled: event("RUN_CANCELLED"),
            late: event("DEADLINE_PASSED"),
        }
    }

    /// How many attempts were lost by workers that are meant.
    #[must_use]
    pub fn lost_by(&self, is_meant: impl Fn(&str) -> bool) -> usize {
        let attempts = self.dump.runs.values().flat_map(|log| &log.attempts);
        let lost = attempts.filter(|attempt| attempt.state == AttemptState::Lost);
        lost.filter(|attempt| is_meant(attempt.claim.worker.as_str())).count()
    }
}

/// One run, as the store and the processes tell it.
struct CheckedRun<'a> {
    plan: &'a Plan,
    input: u64,
    log: &'a RunLog,
    events: Vec<Event>,
    signals: &'a [SignalRow],
    cancel: Option<AskedCancel>,
    /// The waits that timed out.
    timed_out: TimedOut,
    /// Everything by step name.
    tasks: BTreeMap<&'a str, &'a TaskRow>,
    attempts: BTreeMap<&'a str, Vec<&'a AttemptRow>>,
    outputs: BTreeMap<&'a str, u64>,
    history: Vec<&'a Line>,
    stored: &'a Arc<StoredDefinition>,
    has_own_time: bool,
}

impl<'a> CheckedRun<'a> {
    fn new(
        evidence: &'a Evidence,
        key: RunKey,
        log: &'a RunLog,
        plans: &'a BTreeMap<String, Plan>,
        history: Vec<&'a Line>,
    ) -> Option<Self> {
        let stored = evidence.definitions.get(&log.run.definition)?;
        let name = |node: Node| stored.definition.name(node);
        let tasks = evidence.dump.tasks.get(&key)?;
        let outputs = evidence.outputs.get(&key)?;
        let mut attempts: BTreeMap<&str, Vec<&AttemptRow>> = BTreeMap::new();
        for attempt in &log.attempts {
            attempts.entry(name(attempt.node)).or_default().push(attempt);
        }
        let (plan, id) = (plans.get(&stored.definition.workflow)?, log.run.id.as_str());
        let events = read_log(log);
        Some(Self {
            plan,
            input: input_of(id)?,
            log,
            timed_out: waits::timed_out(plan, &events, name),
            events,
            signals: evidence.dump.signals.get(&key).map_or(&[], Vec::as_slice),
            cancel: evidence.asked.cancels.get(id).copied(),
            tasks: tasks.iter().map(|task| (name(task.node), task)).collect(),
            attempts,
            outputs: outputs.iter().map(|(node, output)| (name(*node), *output)).collect(),
            history,
            stored,
            has_own_time: evidence.has_own_time,
        })
    }

    fn violations(&self, faults: Faults) -> Vec<String> {
        let mut findings = runs::check(self);
        findings.extend(ends::check(self));
        findings.extend(waits::check(self));
        findings.extend(executions::check(self, faults));
        findings.extend(order::check(self));
        findings
    }

    /// The first event of this name that is about the run.
    fn run_event(&self, name: &str) -> Option<&Event> {
        let is_meant = |event: &&Event| event.node.is_none() && event.kind.name() == name;
        self.events.iter().find(is_meant)
    }

    fn state(&self, step: &str) -> Option<TaskState> {
        self.tasks.get(step).map(|task| task.state())
    }

    fn attempts(&self, step: &str) -> &[&'a AttemptRow] {
        self.attempts.get(step).map_or(&[], Vec::as_slice)
    }
}
