use async_trait::async_trait;
use rusqlite::params;
use stepwell_core::decide::{self, CancelAnswer, Happening};
use stepwell_core::id::RunKey;
use stepwell_core::run::{AttemptState, RunImage};

use super::rows::{self, key};
use super::transaction::Transaction;
use super::{SqliteStore, statements};
use crate::ports::{ClaimRef, CommitAnswer, CommitItem, Commits, Hint, Outcome, StoreError};

#[async_trait]
impl Commits for SqliteStore {
    async fn commit(&self, items: Vec<CommitItem>) -> Result<Vec<CommitAnswer>, StoreError> {
        self.write(move |transaction| {
            items.into_iter().map(|item| commit(transaction, item)).collect()
        })
        .await
    }

    async fn cancel(&self, run: RunKey) -> Result<Option<CancelAnswer>, StoreError> {
        self.write(move |transaction| cancel(transaction, run)).await
    }
}

fn commit(transaction: &mut Transaction<'_>, item: CommitItem) -> Result<CommitAnswer, StoreError> {
    let ClaimRef { run, node, token } = item.claim;
    let claim = params![key(run), node.0, rows::token(token)];
    if transaction.first(statements::HOLDS_CLAIM, claim, |_| Ok(()))?.is_none() {
        return repeated(transaction, item.claim);
    }
    let happening = match item.outcome {
        Outcome::Completed { output, notes } => {
            // An empty one is what is read where there is none.
            if !output.codec.is_empty() {
                let row = params![key(run), node.0, output.codec.as_ref(), output.bytes.as_ref()];
                transaction.run(statements::INSERT_OUTPUT, row)?;
            }
            Happening::Completed { notes }
        }
        Outcome::Failed { failure, notes, chance } => Happening::Failed { failure, notes, chance },
        Outcome::Skipped => Happening::Skipped,
        Outcome::Slept => Happening::Slept,
        Outcome::Released => Happening::Released,
    };
    let is_failure = matches!(happening, Happening::Failed { .. });
    transaction.happen(run, vec![(node, happening)])?;
    if is_failure {
        // It may have cancelled others that run.
        transaction.earn(Hint::Claims);
    }
    Ok(CommitAnswer::Accepted)
}

/// The reply to an earlier commit may have been lost: then its attempt is there, ended by its
/// own worker.
fn repeated(transaction: &Transaction<'_>, claim: ClaimRef) -> Result<CommitAnswer, StoreError> {
    let row = params![key(claim.run), claim.node.0, rows::token(claim.token)];
    let read = |row: &rusqlite::Row<'_>| rows::attempt_state(row.get(0)?);
    let state = transaction.first(statements::FIND_ATTEMPT, row, read)?;
    Ok(match state {
        Some(AttemptState::Cancelled | AttemptState::Lost) | None => CommitAnswer::NotMine,
        Some(_) => CommitAnswer::Accepted,
    })
}

fn cancel(
    transaction: &mut Transaction<'_>,
    run: RunKey,
) -> Result<Option<CancelAnswer>, StoreError> {
    let Some(stored_run) = transaction.stored_run(run)? else {
        return Ok(None);
    };
    let stored = transaction.definition(stored_run.row.definition)?;
    let tasks = transaction.tasks(run, true)?;
    let mut image = RunImage::new(&stored.definition, transaction.now, stored_run.row, tasks);
    let answer = decide::cancel(&mut image);
    transaction.write_run(image, &stored, stored_run.group)?;
    transaction.earn(Hint::Claims);
    Ok(Some(answer))
}
