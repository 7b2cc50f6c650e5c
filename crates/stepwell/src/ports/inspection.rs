//! A look at everything a store holds, for checks and tests.

use std::collections::BTreeMap;

use async_trait::async_trait;
use stepwell_core::id::{Node, Queue, RunKey, Tenant, WorkerId};
use stepwell_core::queue::OrderKey;
use stepwell_core::run::{MemoRow, RunLog, SignalRow, TaskRow, WaitRow};
use stepwell_core::time::Timestamp;

use super::{ClaimRef, StoreError};

/// Where a queued task waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskPlace {
    /// In its queue, at this key.
    Ready(Queue, OrderKey),
    /// Behind its tenant's limit.
    Throttled,
    /// For a worker that serves it.
    Parked,
}

/// Everything a store holds that checks look at. It reads whole tables: not for production
/// paths.
#[derive(Clone, Debug, Default)]
pub struct StoreDump {
    /// Runs with their logs.
    pub runs: BTreeMap<RunKey, RunLog>,
    /// Tasks by run.
    pub tasks: BTreeMap<RunKey, Vec<TaskRow>>,
    /// Where queued tasks wait.
    pub places: BTreeMap<(RunKey, Node), TaskPlace>,
    /// Timers that stand, with their due times.
    pub timers: BTreeMap<(RunKey, Node), Timestamp>,
    /// Open waits, oldest first.
    pub waits: BTreeMap<RunKey, Vec<WaitRow>>,
    /// Signals, in the order of their numbers.
    pub signals: BTreeMap<RunKey, Vec<SignalRow>>,
    /// What functions have done, in the order of tasks and keys.
    pub memos: BTreeMap<RunKey, Vec<MemoRow>>,
    /// Claims of workers, by worker.
    pub claims: BTreeMap<WorkerId, Vec<ClaimRef>>,
    /// Tasks that are ready or running, by tenant.
    pub admitted: BTreeMap<Tenant, usize>,
}

/// Looks at everything.
#[async_trait]
pub trait Inspection {
    /// Everything the store holds, in one snapshot.
    async fn dump(&self) -> Result<StoreDump, StoreError>;
}
