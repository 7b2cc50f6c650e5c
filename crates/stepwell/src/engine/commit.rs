//! The committer: outcomes of finished attempts go into the store in batches.

use std::sync::Arc;

use stepwell_core::decide::Notes;
use stepwell_core::failure::{Failure, FailureKind, RetryAdvice};
use stepwell_core::id::{Node, RunKey};
use tokio::sync::oneshot;

use super::batch::{Answer, Batcher, HasPayload, answer_all, is_about_data, run_batches};
use super::store_retry::StoreRetry;
use super::{AwaitedRuns, Parts, WorkerSlots};
use crate::ports::{ClaimRef, CommitAnswer, CommitItem, Committed, Outcome, Payload, StoreError};

/// Commits under way at once: while one waits for the disk, the next one works.
const COMMITS_MAX: usize = 2;

/// Takes outcomes and commits all that wait as one transaction.
#[derive(Clone)]
pub(crate) struct Committer(Batcher<FinishedAttempt, AnswerTo>);

/// The outcome of an attempt, and how many tasks may become ready by it.
#[derive(Clone)]
struct FinishedAttempt {
    item: CommitItem,
    n_ready_max: usize,
}

impl FinishedAttempt {
    /// What the step gave, if it completed.
    fn output(&self) -> Option<(RunKey, Node, &Payload)> {
        let ClaimRef { run, node, .. } = self.item.claim;
        self.item.outcome.output().map(|output| (run, node, output))
    }
}

impl HasPayload for FinishedAttempt {
    fn payload_bytes(&self) -> usize {
        match &self.item.outcome {
            Outcome::Completed { output, .. } => output.bytes.len(),
            _ => 0,
        }
    }
}

/// Who is told how a commit went.
enum AnswerTo {
    Caller(oneshot::Sender<Answer<CommitAnswer>>),
    /// The worker, which holds the claim until then. All claims of a batch are dropped together.
    Worker(ClaimRef),
}

impl Committer {
    /// Starts the committing loops. They end when the last clone of the committer is gone, so that
    /// nothing handed in is ever dropped.
    pub(crate) fn start(
        parts: &Arc<Parts>,
        slots: &Arc<WorkerSlots>,
        awaited: &AwaitedRuns,
    ) -> Self {
        let items_max = parts.config.commit_batch_max;
        let (batcher, requests) = Batcher::new(parts, items_max);
        for _ in 0..COMMITS_MAX {
            let (requests, retry) = (Arc::clone(&requests), StoreRetry::endless(parts));
            let (parts, slots, held_in) = (Arc::clone(parts), Arc::clone(slots), Arc::clone(slots));
            let spawner = Arc::clone(&parts.spawner);
            let awaited = awaited.clone();
            let call = move |attempts: Vec<FinishedAttempt>| {
                let (parts, slots) = (Arc::clone(&parts), Arc::clone(&slots));
                let awaited = awaited.clone();
                async move {
                    let wanted = awaited.wanted(attempts.iter().map(FinishedAttempt::output));
                    let answers = commit(&parts, &slots, attempts).await?;
                    // A run may end later than the step whose output it gives.
                    let is_accepted = |ix: usize| answers.get(ix) == Some(&CommitAnswer::Accepted);
                    let kept = wanted.into_iter().filter(|(ix, _)| is_accepted(*ix));
                    awaited.keep(kept.map(|(_, kept)| kept));
                    Ok(answers)
                }
            };
            let answer = move |answers| deliver(&held_in, answers);
            spawner.spawn(Box::pin(run_batches(requests, items_max, retry, call, answer)));
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
    /// others wait to be committed. The worker holds the claim until the commit is answered.
    pub(crate) async fn hand_in(
        &self,
        item: CommitItem,
        n_ready_max: usize,
    ) -> Result<(), StoreError> {
        self.hand_in_to(AnswerTo::Worker(item.claim), item, n_ready_max).await
    }

    async fn hand_in_to(
        &self,
        answer_to: AnswerTo,
        item: CommitItem,
        n_ready_max: usize,
    ) -> Result<(), StoreError> {
        self.0.submit(FinishedAttempt { item, n_ready_max }, answer_to).await.ok_or_else(closed)
    }
}

/// Commits outcomes, and claims what becomes ready by them as far as there are free slots. A single
/// outcome that the store refuses becomes a failure of its step, or the task would look as if it
/// still ran.
async fn commit(
    parts: &Parts,
    slots: &WorkerSlots,
    attempts: Vec<FinishedAttempt>,
) -> Result<Vec<CommitAnswer>, StoreError> {
    let single = (attempts.len() == 1).then(|| attempts[0].item.claim);
    match (commit_all(parts, slots, attempts).await, single) {
        (Err(error), Some(claim)) if is_about_data(&error) => {
            tracing::error!(?claim, %error, "outcome refused by the store");
            let outcome = refused_outcome(parts, &error);
            parts.store.commit(vec![CommitItem { claim, outcome }]).await
        }
        (answers, _) => answers,
    }
}

async fn commit_all(
    parts: &Parts,
    slots: &WorkerSlots,
    attempts: Vec<FinishedAttempt>,
) -> Result<Vec<CommitAnswer>, StoreError> {
    let n_ready_max = attempts.iter().map(|attempt| attempt.n_ready_max).sum();
    let items = attempts.into_iter().map(|attempt| attempt.item).collect();
    let Some((request, offer)) = slots.offer(n_ready_max).await else {
        return parts.store.commit(items).await;
    };
    let Committed { answers, handed_over } =
        parts.store.commit_and_claim(items, Some(request)).await?;
    // Before the answers are delivered and claims dropped: a worker that drains must not look
    // empty while tasks that were handed over are still to be taken up.
    offer.accept(handed_over);
    Ok(answers)
}

/// The store refused an outcome, or could not read a task's inputs: the task is committed as
/// failed instead.
pub(crate) fn refused_outcome(parts: &Parts, error: &StoreError) -> Outcome {
    let failure =
        Failure::new(FailureKind::Payload, "", &error.to_string()).with_retry(RetryAdvice::Never);
    // It is final whatever happened before, so the count does not matter.
    let (notes, chance, forgets) = (Notes::new(), parts.chance(), Vec::new());
    Outcome::Failed { failure, notes, chance, failures: 0, forgets }
}

/// Tells callers and the worker how commits went.
fn deliver(slots: &WorkerSlots, answers: Vec<(AnswerTo, Answer<CommitAnswer>)>) {
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
    slots.drop_claims(&claims);
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
