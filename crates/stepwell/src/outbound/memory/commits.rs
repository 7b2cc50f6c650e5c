use async_trait::async_trait;
use stepwell_core::decide::{self, CancelAnswer, Happening};
use stepwell_core::id::RunKey;
use stepwell_core::run::RunImage;

use super::MemoryStore;
use super::claims::hand_over;
use super::tables::{Tables, load_open};
use crate::ports::{
    ClaimRef, ClaimRequest, CommitAnswer, CommitItem, Commits, Committed, Hint, Outcome, StoreError,
};

#[async_trait]
impl Commits for MemoryStore {
    async fn commit_and_claim(
        &self,
        items: Vec<CommitItem>,
        offer: Option<ClaimRequest>,
    ) -> Result<Committed, StoreError> {
        let (answers, handed_over) = self.transact(|tables| {
            hand_over(tables, offer.as_ref(), |tables| {
                items.into_iter().map(|item| commit(tables, item)).collect()
            })
        })?;
        Ok(Committed { answers, handed_over })
    }

    async fn cancel(&self, run: RunKey) -> Result<Option<CancelAnswer>, StoreError> {
        self.transact(|tables| cancel(tables, run))
    }
}

fn commit(tables: &mut Tables, item: CommitItem) -> Result<CommitAnswer, StoreError> {
    let ClaimRef { run, node, token } = item.claim;
    let Some(book) = tables.runs.get_mut(&run) else {
        return Ok(CommitAnswer::NotMine);
    };
    if !book.tasks.get(&node).is_some_and(|task| task.is_held_by(token)) {
        // The reply to an earlier commit may have been lost: its attempt is there.
        let is_known = book.attempts.iter().any(|a| a.node == node && a.claim.token == token);
        let was_mine = is_known && !was_taken(book, item.claim);
        return Ok(if was_mine { CommitAnswer::Accepted } else { CommitAnswer::NotMine });
    }
    let happening = match item.outcome {
        Outcome::Completed { output, notes } => {
            book.outputs.insert(node, output);
            Happening::Completed { notes }
        }
        Outcome::Failed { failure, notes, chance } => Happening::Failed { failure, notes, chance },
        Outcome::Skipped => Happening::Skipped,
        Outcome::Slept => Happening::Slept,
        Outcome::Released => Happening::Released,
    };
    let is_fail_fast = matches!(happening, Happening::Failed { .. });
    tables.happen(run, vec![(node, happening)])?;
    if is_fail_fast {
        tables.earn(Hint::Claims);
    }
    Ok(CommitAnswer::Accepted)
}

/// Whether an attempt ended without its worker's doing: lost or cancelled.
fn was_taken(book: &super::tables::RunBook, claim: ClaimRef) -> bool {
    use stepwell_core::run::AttemptState::{Cancelled, Lost};
    let of_claim =
        |a: &&stepwell_core::run::AttemptRow| a.node == claim.node && a.claim.token == claim.token;
    book.attempts.iter().find(of_claim).is_some_and(|a| matches!(a.state, Cancelled | Lost))
}

fn cancel(tables: &mut Tables, run: RunKey) -> Result<Option<CancelAnswer>, StoreError> {
    let Some(book) = tables.runs.get(&run) else {
        return Ok(None);
    };
    let stored = tables.definition(book.row.definition)?;
    let tasks = load_open(book);
    let mut image = RunImage::new(&stored.definition, tables.now, book.row.clone(), tasks);
    let answer = decide::cancel(&mut image);
    tables.write(image, &stored);
    tables.earn(Hint::Claims);
    Ok(Some(answer))
}
