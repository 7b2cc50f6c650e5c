//! One transaction, as the calls of the store see it.

use std::sync::Arc;

use stepwell_core::id::{Node, RunKey};
use stepwell_core::time::Timestamp;

use crate::outbound::sqlite::cache::{DefinitionCache, RowCache};
use crate::outbound::sqlite::file::{File, ProcessLocks};
use crate::outbound::store_clock::StoreClock;
use crate::ports::{HintSet, TrafficCounter};

/// One transaction, or one call within a group of them.
pub(crate) struct Transaction<'s, 'c> {
    pub(crate) file: File<'s, 'c>,
    /// What is known of the file, and what is still to be written. Readers leave it empty.
    pub(crate) cache: &'s mut RowCache,
    /// The store's time of this transaction; it never goes back.
    pub(crate) now: Timestamp,
    pub(crate) definitions: &'s DefinitionCache,
    /// Which processes are alive.
    pub(crate) locks: &'s ProcessLocks,
    /// Tasks that entered a queue in this call, while a worker offers to take them.
    pub(crate) offered: Option<Vec<(RunKey, Node)>>,
    /// Whom to wake once it is durable.
    pub(crate) earned: HintSet,
}

/// What the transactions of one thread are made of.
pub(crate) struct TransactionParts {
    pub(crate) clock: Arc<StoreClock>,
    pub(crate) definitions: DefinitionCache,
    pub(crate) locks: Arc<ProcessLocks>,
    pub(crate) traffic: Arc<TrafficCounter>,
    pub(crate) cache: RowCache,
}
