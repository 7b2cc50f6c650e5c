//! Changing runs: lock them, load what the rules need, let the core decide, write what follows. One
//! statement per step and table, however many runs there are.

pub(crate) mod happen;
pub(crate) mod inputs;
mod load;
pub(crate) mod start;
pub(crate) mod write;
pub(crate) mod write_rows;

use std::collections::BTreeMap;

use stepwell_core::decide::Happening;
use stepwell_core::id::{Node, RunKey, Token};

use super::lookup::IdLookup;
use super::queue::QueueSet;
use super::session::Session;

/// Runs, as one transaction changes them.
pub(crate) struct RunSet<'s> {
    pub(crate) session: &'s Session,
    pub(crate) ids: IdLookup<'s>,
    pub(crate) queues: QueueSet<'s>,
}

/// Something that happened to a task, fenced by the claim's token unless the store itself saw it.
pub(crate) struct Happened {
    pub(crate) node: Node,
    pub(crate) token: Option<Token>,
    pub(crate) happening: Happening,
}

/// What happened to runs, by run.
pub(crate) type Happenings = BTreeMap<RunKey, Vec<Happened>>;
