//! Starting runs.

use async_trait::async_trait;
use stepwell_core::code::Code;
use stepwell_core::decide::RunSeed;
use stepwell_core::id::{Mark, RunKey};

use super::{ClaimRequest, HandedOver, Payload, StoreError};

/// A run to start.
#[derive(Clone, Debug)]
pub struct StartRequest {
    /// Key, tenant, id and definition.
    pub seed: RunSeed,
    /// That of the definition. Refused with `SW0012` if the store has none of this number and mark:
    /// register it anew.
    pub mark: Mark,
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

/// What became of requests to start runs.
#[derive(Clone, Debug, Default)]
pub struct Started {
    /// What became of each, in the order of the requests.
    pub answers: Vec<StartAnswer>,
    /// What went straight to the worker that offered to take it.
    pub handed_over: HandedOver,
}

/// A run that is stored under the id of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExistingRun<'a> {
    pub(crate) key: RunKey,
    pub(crate) workflow: &'a str,
    pub(crate) input_digest: &'a [u8; 32],
}

impl StartAnswer {
    /// Whether the store has not the definition that the request means.
    pub(crate) fn is_of_unknown_definition(&self) -> bool {
        matches!(self, Self::Refused(error) if error.is_unknown_definition())
    }
}

impl StartRequest {
    /// The id was used before: is this the same start again, or another one?
    pub(crate) fn compare_with(
        &self,
        workflow: &str,
        existing: ExistingRun<'_>,
    ) -> Result<StartAnswer, StoreError> {
        let (tenant, id) = (self.seed.tenant.as_str(), self.seed.id.as_str());
        let refuse = |why: String| StoreError::Refused {
            code: Code::RunIdConflict,
            message: format!("run {id:?} of tenant {tenant:?} {why}"),
        };
        if existing.workflow != workflow {
            let other = existing.workflow;
            return Err(refuse(format!("exists as a run of workflow {other:?}, not {workflow:?}")));
        }
        if *existing.input_digest != self.input_digest {
            return Err(refuse("was started before with another input".into()));
        }
        Ok(StartAnswer::AlreadyStarted(existing.key))
    }
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
    ///
    /// A worker may offer to take the roots: see [`HandedOver`].
    async fn start_and_claim(
        &self,
        requests: Vec<StartRequest>,
        offer: Option<ClaimRequest>,
    ) -> Result<Started, StoreError>;

    /// [`start_and_claim`](Self::start_and_claim) without an offer.
    async fn start(&self, requests: Vec<StartRequest>) -> Result<Vec<StartAnswer>, StoreError> {
        Ok(self.start_and_claim(requests, None).await?.answers)
    }
}
