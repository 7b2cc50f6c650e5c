//! What a client asked for and was told, for the checker to hold the store to.

use std::collections::{BTreeMap, BTreeSet};

use stepwell::CancelAnswer;

/// Everything that a client was told.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// The ids of runs whose start was acknowledged.
    pub acknowledged: Vec<String>,
    /// Signals that were accepted: the run, and the signal's name, which is its key as well.
    pub signals: BTreeSet<(String, String)>,
    /// Cancels that were answered, by run.
    pub cancels: BTreeMap<String, AskedCancel>,
}

/// A request to cancel a run, and the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskedCancel {
    /// Whether its failure handler shall not run either.
    pub force: bool,
    /// Whether the request was repeated, because the store could not be reached. Then the answer
    /// may be about the first one.
    pub is_repeated: bool,
    /// The answer.
    pub answer: CancelAnswer,
}

impl Asked {
    /// Of a client that started runs and asked for nothing else.
    #[must_use]
    pub fn starts(acknowledged: Vec<String>) -> Self {
        Self { acknowledged, ..Self::default() }
    }

    pub(crate) fn add(&mut self, of_run: AskedOfRun) {
        let AskedOfRun { run, signals, cancel } = of_run;
        self.signals.extend(signals.into_iter().map(|name| (run.clone(), name)));
        self.cancels.extend(cancel.map(|cancel| (run, cancel)));
    }
}

/// What was asked for one run that was started.
#[derive(Clone, Debug, Default)]
pub(crate) struct AskedOfRun {
    pub(crate) run: String,
    pub(crate) signals: Vec<String>,
    pub(crate) cancel: Option<AskedCancel>,
}
