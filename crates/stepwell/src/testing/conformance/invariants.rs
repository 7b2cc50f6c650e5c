//! What must hold in a store at every moment, whatever happened before.
//!
//! The checks look at one snapshot and know nothing of how it came about, so the conformance
//! suite, property tests and simulations all use them. [`regressions`] compares two snapshots: what
//! has ended stays as it was.

mod deadline;
mod history;
mod inbox;
mod line;
mod log;
mod memos;
mod run;

use std::collections::BTreeMap;
use std::sync::Arc;

use stepwell_core::id::{DefinitionId, Node};

use crate::ports::{Store, StoreDump, StoredDefinition};

pub use history::regressions;

/// The definitions of the runs in a dump.
pub type DefinitionsById = BTreeMap<DefinitionId, Arc<StoredDefinition>>;

/// Takes a snapshot of the store and panics with everything that is wrong in it; gives the
/// snapshot.
pub async fn check_invariants(store: &dyn Store) -> StoreDump {
    let dump = store.dump().await.expect("dump the store");
    let mut definitions = DefinitionsById::new();
    for log in dump.runs.values() {
        let id = log.run.definition;
        if let std::collections::btree_map::Entry::Vacant(entry) = definitions.entry(id) {
            let found = store.definition(id).await.expect("read a definition");
            entry.insert(found.expect("the definition of a run is stored"));
        }
    }
    let broken = violations(&dump, &definitions);
    assert!(broken.is_empty(), "the store contradicts itself:\n{}", broken.join("\n"));
    dump
}

/// Everything that is wrong in a snapshot, in words; empty if nothing is.
///
/// # Panics
/// If the definition of a run is not among the given ones.
#[must_use]
pub fn violations(dump: &StoreDump, definitions: &DefinitionsById) -> Vec<String> {
    let mut findings = Findings::default();
    for (key, log) in &dump.runs {
        let stored = definitions.get(&log.run.definition).expect("the caller gave the definition");
        let Some(tasks) = dump.tasks.get(key) else {
            findings.add(format!("run {key} has no tasks"));
            continue;
        };
        let mut of_run = Findings::default();
        run::check(&stored.definition, log, tasks, &mut of_run);
        log::check(log, tasks, &mut of_run);
        inbox::check(dump, log, tasks, &mut of_run);
        deadline::check(log, dump.timers.get(&(*key, Node::DEADLINE)).copied(), &mut of_run);
        findings.0.extend(of_run.0.iter().map(|finding| format!("run {key}: {finding}")));
    }
    inbox::check_owners(dump, &mut findings);
    line::check(dump, &mut findings);
    findings.0
}

/// What was found to be wrong.
#[derive(Default)]
struct Findings(Vec<String>);

impl Findings {
    fn add(&mut self, finding: String) {
        self.0.push(finding);
    }

    /// Notes a finding unless `holds`.
    fn expect(&mut self, holds: bool, finding: impl FnOnce() -> String) {
        if !holds {
            self.add(finding());
        }
    }
}
