//! Committing what became of attempts.

use async_trait::async_trait;
use stepwell_core::decide::{CancelAnswer, CancelRequest, Notes, Suspension, TaskHappening};
use stepwell_core::failure::Failure;
use stepwell_core::id::RunKey;
use stepwell_core::run::{AttemptState, WaitFor};

use super::{ClaimRef, ClaimRequest, HandedOver, Payload, StoreError};

/// What became of one claimed task.
#[derive(Clone, Debug)]
pub struct CommitItem {
    /// Which claim it is about.
    pub claim: ClaimRef,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of a claimed task.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It gave an output.
    Completed {
        /// The output.
        output: Payload,
        /// What the step noted about itself.
        notes: Notes,
    },
    /// It failed; the stored policy says whether it is tried again.
    Failed {
        /// Why.
        failure: Failure,
        /// What the step noted about itself.
        notes: Notes,
        /// A uniformly random number for the jitter of a retry.
        chance: u32,
        /// How many attempts had failed before, as the claim told.
        failures: u32,
        /// Memos of its function that go if it is tried again: the failures that ended it.
        forgets: Vec<String>,
    },
    /// Its own condition says that it is not executed.
    Skipped,
    /// It is a sleep node whose conditions let it sleep.
    Slept,
    /// It waits for a signal: a step is executed again then, a wait node is done.
    Waits {
        /// What for.
        wait_for: WaitFor,
        /// What the step noted about itself.
        notes: Notes,
    },
    /// Its function goes on when something that it waits for has ended.
    Suspended {
        /// What it waits for.
        suspension: Box<Suspension>,
        /// What the step noted about itself.
        notes: Notes,
    },
    /// Its function begins another round.
    Continued {
        /// The number of the round.
        round: u32,
        /// The input of the round.
        input: Payload,
        /// What the step noted about itself.
        notes: Notes,
    },
    /// Its worker hands it back, uncharged.
    Released,
}

impl Outcome {
    /// What a step gave that completed.
    pub(crate) const fn output(&self) -> Option<&Payload> {
        match self {
            Self::Completed { output, .. } => Some(output),
            _ => None,
        }
    }

    /// What happened to the task, and the output that has to be stored, or the input of the next
    /// round, which lies beside its memo. An empty output is what is read where there is none, so
    /// it is not stored.
    pub(crate) fn split(self) -> (TaskHappening, Option<Payload>) {
        match self {
            Self::Completed { output, notes } => {
                let output = Some(output).filter(|output| !output.codec.is_empty());
                (TaskHappening::Completed { notes }, output)
            }
            Self::Failed { failure, notes, chance, failures, forgets } => {
                (TaskHappening::Failed { failure, notes, chance, failures, forgets }, None)
            }
            Self::Skipped => (TaskHappening::Skipped, None),
            Self::Slept => (TaskHappening::Slept, None),
            Self::Waits { wait_for, notes } => (TaskHappening::Waits { wait_for, notes }, None),
            Self::Suspended { suspension, notes } => {
                (TaskHappening::Suspended { suspension, notes }, None)
            }
            Self::Continued { round, input, notes } => {
                (TaskHappening::Continued { round, notes }, Some(input))
            }
            Self::Released => (TaskHappening::Released, None),
        }
    }
}

/// Whether an outcome took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitAnswer {
    /// It did, now or by an earlier commit of the same claim.
    Accepted,
    /// The claim no longer held the task; nothing was changed.
    NotMine,
}

impl CommitAnswer {
    /// The answer to an outcome whose claim no longer holds its task, by how the attempt under
    /// that token ended. The reply to an earlier commit may have been lost: then its attempt is
    /// there, ended by its own worker.
    pub(crate) const fn of_earlier(attempt: Option<AttemptState>) -> Self {
        match attempt {
            None | Some(AttemptState::Cancelled | AttemptState::Lost) => Self::NotMine,
            Some(_) => Self::Accepted,
        }
    }
}

/// What became of a commit.
#[derive(Clone, Debug, Default)]
pub struct Committed {
    /// Whether each outcome took effect, in the order of the items.
    pub answers: Vec<CommitAnswer>,
    /// What went straight to the worker that offered to take it.
    pub handed_over: HandedOver,
}

/// Commits outcomes and cancellations.
#[async_trait]
pub trait Commits {
    /// Applies outcomes with everything that follows from them, in one transaction: states,
    /// counters, children that become ready or are skipped, timers, attempts, events and the end
    /// of runs. Answers come in the order of the items, each fenced by its own token.
    ///
    /// Repeating a commit whose outcome is unknown is safe: an attempt that is already stored
    /// under the token is answered as accepted and changes nothing.
    ///
    /// A worker may offer to take what becomes ready: see [`HandedOver`].
    async fn commit_and_claim(
        &self,
        items: Vec<CommitItem>,
        offer: Option<ClaimRequest>,
    ) -> Result<Committed, StoreError>;

    /// [`commit_and_claim`](Self::commit_and_claim) without an offer.
    async fn commit(&self, items: Vec<CommitItem>) -> Result<Vec<CommitAnswer>, StoreError> {
        Ok(self.commit_and_claim(items, None).await?.answers)
    }

    /// Cancels a run. When `Cancelled` is answered, no step of the run starts any more, no
    /// outcome of one is accepted, and its timers and waits are gone. A run in which a task had
    /// failed before still comes to fail, so its failure handler runs, unless the request has
    /// force. `None` if there is no such run.
    async fn cancel(
        &self,
        run: RunKey,
        request: CancelRequest,
    ) -> Result<Option<CancelAnswer>, StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_output_is_not_stored() {
        let given = |output| Outcome::Completed { output, notes: Notes::new() }.split().1;
        assert_eq!(given(Payload::empty()), None);
        let text = Payload::new("json".into(), *b"");
        assert_eq!(given(text.clone()), Some(text));
    }
}
