//! Changing runs: lock them, load what the rules need, let the core decide, write what follows. One
//! statement per step and table, however many runs there are.

pub(crate) mod happen;
mod history;
pub(crate) mod inbox;
pub(crate) mod inputs;
mod load;
pub(crate) mod start;
pub(crate) mod write;
mod write_inbox;
pub(crate) mod write_rows;

use std::collections::{BTreeMap, VecDeque};

use stepwell_core::decide::{Happening, Verdict};
use stepwell_core::id::{RunKey, Token};

use super::lookup::IdLookup;
use super::queue::QueueSet;
use super::session::Session;

/// Runs, as one transaction changes them.
pub(crate) struct RunSet<'s> {
    pub(crate) session: &'s Session,
    pub(crate) ids: IdLookup<'s>,
    pub(crate) queues: QueueSet<'s>,
}

/// Something that happened to a run, fenced by the claim's token if a worker tells of its task.
pub(crate) struct Happened {
    pub(crate) token: Option<Token>,
    pub(crate) happening: Happening,
}

/// What happened to runs, by run.
pub(crate) type Happenings = BTreeMap<RunKey, Vec<Happened>>;

/// What became of happenings, by run and in their order.
#[derive(Default)]
pub(crate) struct Verdicts(BTreeMap<RunKey, VecDeque<Verdict>>);

impl Verdicts {
    fn add(&mut self, run: RunKey, verdict: Verdict) {
        self.0.entry(run).or_default().push_back(verdict);
    }

    /// What became of the next happening of a run; `None` if there is no such run.
    pub(crate) fn next(&mut self, run: RunKey) -> Option<Verdict> {
        self.0.get_mut(&run)?.pop_front()
    }
}
