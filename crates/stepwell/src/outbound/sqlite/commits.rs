use async_trait::async_trait;
use rusqlite::params;
use stepwell_core::decide::{self, CancelAnswer, Happening};
use stepwell_core::id::{Node, RunKey};
use stepwell_core::run::AttemptState;

use super::rows::{self, is_small, key};
use super::transaction::Transaction;
use super::{SqliteStore, statements};
use crate::ports::{
    ClaimRef, ClaimRequest, CommitAnswer, CommitItem, Commits, Committed, Hint, Outcome, Payload,
    StoreError,
};

#[async_trait]
impl Commits for SqliteStore {
    async fn commit_and_claim(
        &self,
        items: Vec<CommitItem>,
        offer: Option<ClaimRequest>,
    ) -> Result<Committed, StoreError> {
        self.write(move |transaction| {
            let (answers, handed_over) = transaction.hand_over(offer.as_ref(), |transaction| {
                items.into_iter().map(|item| commit(transaction, item)).collect()
            })?;
            Ok(Committed { answers, handed_over })
        })
        .await
    }

    async fn cancel(&self, run: RunKey) -> Result<Option<CancelAnswer>, StoreError> {
        self.write(move |transaction| cancel(transaction, run)).await
    }
}

fn commit(
    transaction: &mut Transaction<'_, '_>,
    item: CommitItem,
) -> Result<CommitAnswer, StoreError> {
    let ClaimRef { run, node, .. } = item.claim;
    if !transaction.holds(item.claim)? {
        return repeated(transaction, item.claim);
    }
    let mut given = None;
    let happening = match item.outcome {
        Outcome::Completed { output, notes } => {
            // An empty one is what is read where there is none.
            given = Some(output).filter(|output| !output.codec.is_empty());
            Happening::Completed { notes }
        }
        Outcome::Failed { failure, notes, chance } => Happening::Failed { failure, notes, chance },
        Outcome::Skipped => Happening::Skipped,
        Outcome::Slept => Happening::Slept,
        Outcome::Released => Happening::Released,
    };
    let is_failure = matches!(happening, Happening::Failed { .. });
    transaction.happen(run, node, happening)?;
    if let Some(output) = given {
        keep_output(transaction, run, node, output)?;
    }
    if is_failure {
        // It may have cancelled others that run.
        transaction.earn(Hint::Claims);
    }
    Ok(CommitAnswer::Accepted)
}

/// A small output goes with the row of its task, which is about to be written anyway.
fn keep_output(
    transaction: &mut Transaction<'_, '_>,
    run: RunKey,
    node: Node,
    output: Payload,
) -> Result<(), StoreError> {
    let held = transaction.book.runs.by_key.get_mut(&run);
    let task = held.and_then(|held| held.tasks.get_mut(&node));
    if let Some(end) = task.and_then(|task| task.end.as_mut()) {
        end.is_large = !is_small(&output);
        if !end.is_large {
            end.output = Some(output);
            return Ok(());
        }
    }
    let row = params![key(run), node.0, output.codec.as_ref(), output.bytes.as_ref()];
    transaction.run(statements::INSERT_OUTPUT, row).map(drop)
}

/// The reply to an earlier commit may have been lost: then its attempt is there, ended by its
/// own worker.
fn repeated(
    transaction: &mut Transaction<'_, '_>,
    claim: ClaimRef,
) -> Result<CommitAnswer, StoreError> {
    // It may be earlier in the same batch.
    transaction.write_rows()?;
    let row = params![key(claim.run), claim.node.0, rows::token(claim.token)];
    let read = |row: &rusqlite::Row<'_>| rows::attempt_state(row.get(0)?);
    let state = transaction.first(statements::FIND_ATTEMPT, row, read)?;
    Ok(match state {
        Some(AttemptState::Cancelled | AttemptState::Lost) | None => CommitAnswer::NotMine,
        Some(_) => CommitAnswer::Accepted,
    })
}

fn cancel(
    transaction: &mut Transaction<'_, '_>,
    run: RunKey,
) -> Result<Option<CancelAnswer>, StoreError> {
    let Some(held) = transaction.find_held(run)? else {
        return Ok(None);
    };
    let stored = held.row.definition;
    let stored = transaction.definition(stored)?;
    let open = transaction.hold_open(run)?;
    let mut image = transaction.image(run, &stored, open)?;
    let answer = decide::cancel(&mut image);
    transaction.write_run(image, &stored)?;
    transaction.earn(Hint::Claims);
    Ok(Some(answer))
}

impl Transaction<'_, '_> {
    /// Whether a claim still holds its task.
    pub(super) fn holds(&mut self, claim: ClaimRef) -> Result<bool, StoreError> {
        let task = self.held_task(claim.run, claim.node)?;
        Ok(task.is_some_and(|task| task.row.is_held_by(claim.token)))
    }
}
