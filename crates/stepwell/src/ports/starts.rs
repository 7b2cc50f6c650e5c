//! Starting runs.

use async_trait::async_trait;
use stepwell_core::decide::RunSeed;
use stepwell_core::id::RunKey;

use super::{Payload, StoreError};

/// A run to start.
#[derive(Clone, Debug)]
pub struct StartRequest {
    /// Key, tenant, id and definition.
    pub seed: RunSeed,
    /// The input.
    pub input: Payload,
    /// A digest of the input, by which a repeated start is told from another one.
    pub input_digest: [u8; 32],
}

/// What became of a request to start a run.
#[derive(Clone, Debug)]
pub enum StartAnswer {
    /// The run is stored and will be executed.
    Started,
    /// It had been started before, with the same workflow and input, under this key.
    AlreadyStarted(RunKey),
    /// Nothing was stored.
    Refused(StoreError),
}

/// Starts runs.
#[async_trait]
pub trait Starts {
    /// Starts runs in one transaction: run, all tasks, and the roots in their queues. Answers
    /// come in the order of the requests, each on its own: a refused one does not touch the
    /// others.
    ///
    /// A run id is unique per tenant. The same id with the same workflow and input finds the
    /// existing run; with another it is refused with `SW0011`. Repeating a request whose outcome
    /// is unknown is safe.
    async fn start(&self, requests: Vec<StartRequest>) -> Result<Vec<StartAnswer>, StoreError>;
}
