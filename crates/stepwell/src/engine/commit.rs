//! The committer: outcomes of finished attempts go into the store in batches.

use std::sync::Arc;

use stepwell_core::decide::Notes;
use stepwell_core::failure::{Failure, FailureKind, RetryAdvice};
use tokio::sync::oneshot;

use super::Parts;
use super::batch::{Answer, Batcher, Carries, Patience, answer_all, is_about_data, run_batches};
use crate::ports::{ClaimRef, CommitAnswer, CommitItem, Committed, Outcome, StoreError};
use crate::worker::Hands;

/// Commits under way at once: while one waits for the disk, the next one works.
const COMMITS_MAX: usize = 2;

/// Takes outcomes and commits whatever is waiting as one transaction.
#[derive(Clone)]
pub(crate) struct Committer(Batcher<Ended, AnswerTo>);

/// An outcome, and how many tasks may become ready by it.
#[derive(Clone)]
struct Ended {
    item: CommitItem,
    n_next: usize,
}

impl Carries for Ended {
    fn bytes(&self) -> usize {
        match &self.item.outcome {
            Outcome::Completed { output, .. } => output.bytes.len(),
            _ => 0,
        }
    }
}

/// Who hears how a commit went.
enum AnswerTo {
    Caller(oneshot::Sender<Answer<CommitAnswer>>),
    /// The worker, which holds the claim until then. All claims of a batch are dropped at once.
    Worker(ClaimRef),
}

impl Committer {
    /// Starts the committing loops. They end when the last clone of the committer is gone, so that
    /// nothing handed in is ever dropped.
    pub(crate) fn start(parts: &Arc<Parts>, hands: &Arc<Hands>) -> Self {
        let items_max = parts.config.commit_batch_max;
        let (batcher, requests) = Batcher::new(items_max);
        for _ in 0..COMMITS_MAX {
            let (requests, patience) = (Arc::clone(&requests), Patience::new(parts, None));
            let (parts, hands, held_by) = (Arc::clone(parts), Arc::clone(hands), Arc::clone(hands));
            let spawner = Arc::clone(&parts.spawner);
            let call = move |ended| {
                let (parts, hands) = (Arc::clone(&parts), Arc::clone(&hands));
                async move { commit(&parts, &hands, ended).await }
            };
            let answer = move |answers| tell(&held_by, answers);
            spawner.spawn(Box::pin(run_batches(requests, items_max, patience, call, answer)));
        }
        Self(batcher)
    }

    /// Commits an outcome.
    pub(crate) async fn commit(&self, item: CommitItem) -> Result<CommitAnswer, StoreError> {
        let (answer_to, answer) = oneshot::channel();
        self.hand_in_to(AnswerTo::Caller(answer_to), item, 0).await?;
        answer.await.map_err(|_| closed())?
    }

    /// Hands in an outcome by which so many tasks may become ready; waits only while too many
    /// others wait to be committed. The worker holds the claim until it is.
    pub(crate) async fn hand_in(&self, item: CommitItem, n_next: usize) -> Result<(), StoreError> {
        self.hand_in_to(AnswerTo::Worker(item.claim), item, n_next).await
    }

    async fn hand_in_to(
        &self,
        answer_to: AnswerTo,
        item: CommitItem,
        n_next: usize,
    ) -> Result<(), StoreError> {
        self.0.submit(Ended { item, n_next }, answer_to).await.ok_or_else(closed)
    }
}

/// Commits outcomes, and takes what becomes ready by them as far as there are free slots. A single
/// one that the store refuses becomes a failure of the step, or the task would look as if it still
/// ran.
async fn commit(
    parts: &Parts,
    hands: &Hands,
    ended: Vec<Ended>,
) -> Result<Vec<CommitAnswer>, StoreError> {
    let single = (ended.len() == 1).then(|| ended[0].item.claim);
    match (commit_all(parts, hands, ended).await, single) {
        (Err(error), Some(claim)) if is_about_data(&error) => {
            tracing::error!(?claim, %error, "outcome refused by the store");
            let outcome = refused(parts, &error);
            parts.store.commit(vec![CommitItem { claim, outcome }]).await
        }
        (answers, _) => answers,
    }
}

async fn commit_all(
    parts: &Parts,
    hands: &Hands,
    ended: Vec<Ended>,
) -> Result<Vec<CommitAnswer>, StoreError> {
    let n_next = ended.iter().map(|ended| ended.n_next).sum();
    let items = ended.into_iter().map(|ended| ended.item).collect();
    let Some((request, offer)) = hands.offer(n_next).await else {
        return parts.store.commit(items).await;
    };
    let Committed { answers, handed_over } =
        parts.store.commit_and_claim(items, Some(request)).await?;
    // Before anybody hears of the answers: a worker that drains must see what it holds.
    offer.accept(handed_over);
    Ok(answers)
}

/// What is left to say of a task about which the store refuses to hear anything else.
pub(crate) fn refused(parts: &Parts, error: &StoreError) -> Outcome {
    let failure =
        Failure::new(FailureKind::Payload, "", &error.to_string()).with_retry(RetryAdvice::Never);
    // It is final whatever happened before, so the count does not matter.
    Outcome::Failed { failure, notes: Notes::new(), chance: parts.chance(), failures: 0 }
}

/// Tells how commits went.
fn tell(hands: &Hands, answers: Vec<(AnswerTo, Answer<CommitAnswer>)>) {
    let (mut callers, mut claims) = (Vec::new(), Vec::with_capacity(answers.len()));
    for (answer_to, answer) in answers {
        match answer_to {
            AnswerTo::Caller(caller) => callers.push((caller, answer)),
            AnswerTo::Worker(claim) => {
                log(claim, &answer);
                claims.push(claim);
            }
        }
    }
    hands.drop_claims(&claims);
    answer_all(callers);
}

fn log(claim: ClaimRef, answer: &Answer<CommitAnswer>) {
    match answer {
        Ok(CommitAnswer::Accepted) => {}
        Ok(CommitAnswer::NotMine) => tracing::info!(?claim, "late outcome refused"),
        Err(error) => tracing::error!(?claim, %error, "outcome not committed"),
    }
}

fn closed() -> StoreError {
    StoreError::Unavailable { operation: "commit", why: "closed".into() }
}
