//! Sending signals to runs, and reading what runs wait for.

use async_trait::async_trait;
use stepwell_core::decide::{NewSignal, SignalAnswer};
use stepwell_core::id::{RunId, RunKey, Tenant};
use stepwell_core::run::{SignalRow, WaitRow};

use super::{Payload, StoreError};

/// A signal to send.
#[derive(Clone, Debug)]
pub struct SignalRequest {
    /// The run it is for.
    pub to: SignalTarget,
    /// Name, key and attributes.
    pub signal: NewSignal,
    /// The payload.
    pub payload: Payload,
}

/// Names the run that a signal is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignalTarget {
    /// By the engine's key.
    Key(RunKey),
    /// By the names its caller knows it by.
    Id(Tenant, RunId),
}

/// A signal with its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSignal {
    /// Number, name, key, attributes, and who got it.
    pub row: SignalRow,
    /// The payload, with the signal's name beside it.
    pub payload: Payload,
}

/// Which runs are asked for that wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingRuns {
    /// Of this tenant.
    pub tenant: Tenant,
    /// Of this workflow, whatever its version.
    pub workflow: String,
    /// For this signal.
    pub signal: String,
}

/// Sends signals and reads waits.
#[async_trait]
pub trait Signals {
    /// Sends signals in one transaction, each as if alone and in their order: it is stored, and
    /// given to the oldest open wait of its run that is for it, with everything that follows.
    /// Answers come in the order of the requests, `None` where there is no such run.
    ///
    /// Repeating a request whose outcome is unknown is safe: the key tells. What is answered as
    /// stored is never lost, and given once.
    async fn signal(
        &self,
        requests: Vec<SignalRequest>,
    ) -> Result<Vec<Option<SignalAnswer>>, StoreError>;

    /// Every signal that was sent to a run, in order of their numbers.
    async fn signals(&self, run: RunKey) -> Result<Vec<StoredSignal>, StoreError>;

    /// The open waits of a run, oldest first.
    async fn waits(&self, run: RunKey) -> Result<Vec<WaitRow>, StoreError>;

    /// Up to `rows_max` runs that have an open wait for a signal, in the order of their keys, from
    /// after `after`. Each once, however many of its waits are for the signal.
    async fn waiting_runs(
        &self,
        asked: &WaitingRuns,
        after: Option<RunKey>,
        rows_max: usize,
    ) -> Result<Vec<RunKey>, StoreError>;
}
