//! What a scenario is given: a fresh store, how much to do, and where to show its progress.

use super::bench_store::BenchStore;
use super::progress::Progress;

/// What a scenario is given.
pub(super) struct ScenarioInput<'a> {
    pub(super) store: &'a BenchStore,
    pub(super) progress: &'a Progress,
    /// How many runs the user asked for.
    pub(super) runs: Option<usize>,
}

impl ScenarioInput<'_> {
    /// How many runs: as the user says, or as many as the scenario has by itself.
    pub(super) fn n_runs(&self, default: usize) -> usize {
        self.runs.unwrap_or(default)
    }

    /// For comparisons of a large case with a small one: the user's number scales both.
    pub(super) fn scaled(&self, default: usize, of: usize) -> usize {
        self.runs.map_or(default, |runs| (runs * default / of).max(1))
    }
}
