//! Compares what processes wrote down with what the store says, after everything has ended.
//!
//! [`Evidence`] is gathered once; each check is a function from it to findings in words. None of
//! them knows what happened to the fleet, except for how bad it was: [`Faults`].

mod executions;
mod order;
mod runs;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use stepwell::core::id::{Node, RunKey};
use stepwell::core::run::{AttemptRow, AttemptState, RunLog, TaskRow, TaskState};
use stepwell::ports::{Store, StoreDump, StoredDefinition};
use stepwell::testing::conformance::invariants::{DefinitionsById, violations};

use crate::Result;
use crate::expected::input_of;
use crate::history::{self, Line};
use crate::plan::{self, Plan};

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
    /// The ids of runs whose start was acknowledged.
    pub acknowledged: Vec<String>,
    /// What the processes wrote down.
    pub history: Vec<Line>,
    /// What the store holds.
    pub dump: StoreDump,
    /// The definitions of its runs.
    pub definitions: DefinitionsById,
    /// Outputs as stored, by run.
    pub outputs: BTreeMap<RunKey, BTreeMap<Node, u64>>,
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
}

impl Evidence {
    /// Reads the store and the files of the processes.
    ///
    /// # Errors
    /// If either cannot be read.
    pub async fn gather(
        store: &dyn Store,
        folder: &Path,
        acknowledged: Vec<String>,
    ) -> Result<Self> {
        let dump = store.dump().await?;
        let (mut definitions, mut outputs) = (DefinitionsById::new(), BTreeMap::new());
        for (key, log) in &dump.runs {
            let id = log.run.definition;
            if let Some(found) = store.definition(id).await? {
                definitions.entry(id).or_insert(found);
            }
            let read = |bytes: &[u8]| serde_json::from_slice(bytes).unwrap_or_default();
            let stored = store.outputs(*key).await?;
            let stored = stored.into_iter().map(|(node, output)| (node, read(&output.bytes)));
            outputs.insert(*key, stored.collect());
        }
        let history = history::read(folder)?;
        Ok(Self { acknowledged, history, dump, definitions, outputs })
    }

    /// Everything that is wrong, in words; empty if nothing is.
    #[must_use]
    pub fn violations(&self, faults: Faults) -> Vec<String> {
        let mut findings = violations(&self.dump, &self.definitions);
        findings.extend(runs::lost_starts(self));
        let plans: BTreeMap<String, Plan> =
            plan::all().into_iter().map(|plan| (plan.name.clone(), plan)).collect();
        let mut history = executions::by_run(&self.history);
        for (key, log) in &self.dump.runs {
            let id = log.run.id.as_str();
            let of_run = history.remove(id).unwrap_or_default();
            let mut of = match CheckedRun::new(self, *key, log, &plans, of_run) {
                Some(run) => run.violations(faults),
                None => vec!["it has no plan".to_owned()],
            };
            findings.extend(of.drain(..).map(|finding| format!("run {id}: {finding}")));
        }
        findings.extend(history.keys().map(|id| format!("run {id} was executed and is gone")));
        findings
    }

    /// How much happened.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let attempts = || self.dump.runs.values().flat_map(|log| &log.attempts);
        let count = |state| attempts().filter(|attempt| attempt.state == state).count();
        Counts {
            runs: self.dump.runs.len(),
            tasks: self.dump.tasks.values().map(Vec::len).sum(),
            executions: executions::n_begun(&self.history),
            lost: count(AttemptState::Lost),
            released: count(AttemptState::Released),
        }
    }
}

/// One run, as the store and the processes tell it.
struct CheckedRun<'a> {
    plan: &'a Plan,
    input: u64,
    log: &'a RunLog,
    /// Everything by step name.
    tasks: BTreeMap<&'a str, &'a TaskRow>,
    attempts: BTreeMap<&'a str, Vec<&'a AttemptRow>>,
    outputs: BTreeMap<&'a str, u64>,
    history: Vec<&'a Line>,
    stored: &'a Arc<StoredDefinition>,
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
        Some(Self {
            plan: plans.get(&stored.definition.workflow)?,
            input: input_of(log.run.id.as_str())?,
            log,
            tasks: tasks.iter().map(|task| (name(task.node), task)).collect(),
            attempts,
            outputs: outputs.iter().map(|(node, output)| (name(*node), *output)).collect(),
            history,
            stored,
        })
    }

    fn violations(&self, faults: Faults) -> Vec<String> {
        let mut findings = runs::check(self);
        findings.extend(executions::check(self, faults));
        findings.extend(order::check(self));
        findings
    }

    fn state(&self, step: &str) -> Option<TaskState> {
        self.tasks.get(step).map(|task| task.state())
    }

    fn attempts(&self, step: &str) -> &[&'a AttemptRow] {
        self.attempts.get(step).map_or(&[], Vec::as_slice)
    }
}
