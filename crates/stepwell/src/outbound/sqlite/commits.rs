use async_trait::async_trait;
use stepwell_core::decide::{
    CancelAnswer, CancelRequest, Happening, RunHappening, TaskHappening, Verdict,
};
use stepwell_core::id::RunKey;

use super::file::corrupt;
use super::queue::hand_over::hand_over;
use super::run::happen::happen;
use super::run::inputs;
use super::run::write::{keep_output, keep_round};
use super::writer::Transaction;
use super::{SqliteStore, rows};
use crate::ports::{
    ClaimRef, ClaimRequest, CommitAnswer, CommitItem, Commits, Committed, StoreError,
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

    async fn cancel(
        &self,
        run: RunKey,
        request: CancelRequest,
    ) -> Result<Option<CancelAnswer>, StoreError> {
        self.write(move |transaction| cancel(transaction, run, request)).await
    }
}

fn commit(
    transaction: &mut Transaction<'_, '_>,
    item: CommitItem,
) -> Result<CommitAnswer, StoreError> {
    let (file, cache) = (transaction.file, &mut *transaction.cache);
    let ClaimRef { run, node, token } = item.claim;
    let task = cache.runs.find_task(file, run, node)?;
    let Some(task) = task.filter(|task| task.row.is_held_by(token)) else {
        // An earlier commit of it may be in the same batch.
        cache.write_rows(file)?;
        return Ok(CommitAnswer::of_earlier(rows::attempt::ended(file, item.claim)?));
    };
    let given = item.outcome.output().cloned();
    let (mut happening, output) = item.outcome.split();
    if let TaskHappening::Failed { failures, .. } = &mut happening {
        // The row is at hand, so nothing has to be guessed.
        *failures = task.row.failures;
    }
    let continues = matches!(happening, TaskHappening::Continued { .. });
    happen(transaction, run, Happening::Task(node, happening))?;
    if let Some(given) = given {
        transaction.earned.add_output(run, node, &given);
    }
    match output {
        Some(input) if continues => keep_round(transaction, run, node, &input)?,
        Some(output) => keep_output(transaction, run, node, output)?,
        None => {}
    }
    Ok(CommitAnswer::Accepted)
}

fn cancel(
    transaction: &mut Transaction<'_, '_>,
    run: RunKey,
    request: CancelRequest,
) -> Result<Option<CancelAnswer>, StoreError> {
    if transaction.cache.runs.find(transaction.file, run)?.is_none() {
        return Ok(None);
    }
    match happen(transaction, run, Happening::Run(RunHappening::Cancelled(request)))? {
        Verdict::Cancel(answer) => Ok(Some(answer)),
        _ => Err(corrupt("a request to cancel was not answered")),
    }
}
