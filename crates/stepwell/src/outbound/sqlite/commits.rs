use async_trait::async_trait;
use stepwell_core::decide::{CancelAnswer, Happening};
use stepwell_core::id::RunKey;
use stepwell_core::run::AttemptState;

use super::queue::claim::holds;
use super::queue::hand_over::hand_over;
use super::run::write::keep_output;
use super::run::{happen, inputs};
use super::writer::Transaction;
use super::{SqliteStore, rows};
use crate::ports::{
    ClaimRef, ClaimRequest, CommitAnswer, CommitItem, Commits, Committed, Hint, Outcome, StoreError,
};

#[async_trait]
impl Commits for SqliteStore {
    async fn commit_and_claim(
        &self,
        items: Vec<CommitItem>,
        offer: Option<ClaimRequest>,
    ) -> Result<Committed, StoreError> {
        self.write(move |transaction| {
            let (answers, mut handed_over) =
                hand_over(transaction, offer.as_ref(), |transaction| {
                    items.into_iter().map(|item| commit(transaction, item)).collect()
                })?;
            inputs::add_at_hand(transaction, &mut handed_over.tasks)?;
            Ok(Committed { answers, handed_over })
        })
        .await
    }

    async fn cancel(&self, run: RunKey) -> Result<Option<CancelAnswer>, StoreError> {
        self.write(move |transaction| {
            let answer = happen::cancel(transaction, run)?;
            if answer.is_some() {
                transaction.earn(Hint::Claims);
            }
            Ok(answer)
        })
        .await
    }
}

fn commit(
    transaction: &mut Transaction<'_, '_>,
    item: CommitItem,
) -> Result<CommitAnswer, StoreError> {
    let ClaimRef { run, node, .. } = item.claim;
    if !holds(transaction, item.claim)? {
        return repeated(transaction, item.claim);
    }
    let mut output = None;
    let happening = match item.outcome {
        Outcome::Completed { output: given, notes } => {
            // An empty output is what is read where there is none.
            output = Some(given).filter(|given| !given.codec.is_empty());
            Happening::Completed { notes }
        }
        Outcome::Failed { failure, notes, chance } => Happening::Failed { failure, notes, chance },
        Outcome::Skipped => Happening::Skipped,
        Outcome::Slept => Happening::Slept,
        Outcome::Released => Happening::Released,
    };
    let is_failure = matches!(happening, Happening::Failed { .. });
    happen::happen(transaction, run, node, happening)?;
    if let Some(output) = output {
        keep_output(transaction, run, node, output)?;
    }
    if is_failure {
        // It may have cancelled others that run.
        transaction.earn(Hint::Claims);
    }
    Ok(CommitAnswer::Accepted)
}

/// The reply to an earlier commit may have been lost: then its attempt is there, ended by its
/// own worker.
fn repeated(
    transaction: &mut Transaction<'_, '_>,
    claim: ClaimRef,
) -> Result<CommitAnswer, StoreError> {
    // It may be earlier in the same batch.
    transaction.cache.write_rows(transaction.file)?;
    Ok(match rows::attempt::ended(transaction.file, claim)? {
        Some(AttemptState::Cancelled | AttemptState::Lost) | None => CommitAnswer::NotMine,
        Some(_) => CommitAnswer::Accepted,
    })
}
