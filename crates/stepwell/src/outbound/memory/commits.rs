use async_trait::async_trait;
use stepwell_core::decide::{
    CancelAnswer, CancelRequest, Happening, RunHappening, TaskHappening, Verdict,
};
use stepwell_core::id::RunKey;
use stepwell_core::run::ROUND_KEY;

use super::claims::hand_over;
use super::tables::Tables;
use super::{MemoryStore, corrupt};
use crate::ports::{
    ClaimRef, ClaimRequest, CommitAnswer, CommitItem, Commits, Committed, StoreError,
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

    async fn cancel(
        &self,
        run: RunKey,
        request: CancelRequest,
    ) -> Result<Option<CancelAnswer>, StoreError> {
        self.transact(|tables| cancel(tables, run, request))
    }
}

fn commit(tables: &mut Tables, item: CommitItem) -> Result<CommitAnswer, StoreError> {
    let ClaimRef { run, node, token } = item.claim;
    let Some(stored) = tables.runs.get_mut(&run) else {
        return Ok(CommitAnswer::NotMine);
    };
    let Some(task) = stored.tasks.get(&node).filter(|task| task.is_held_by(token)) else {
        let of_claim = stored.attempts.iter().find(|a| a.node == node && a.claim.token == token);
        return Ok(CommitAnswer::of_earlier(of_claim.map(|attempt| attempt.state)));
    };
    let given = item.outcome.output().cloned();
    let (mut happening, output) = item.outcome.split();
    if let TaskHappening::Failed { failures, .. } = &mut happening {
        // The row is at hand, so nothing has to be guessed.
        *failures = task.failures;
    }
    let continues = matches!(happening, TaskHappening::Continued { .. });
    tables.happen(run, Happening::Task(node, happening))?;
    if let Some(given) = given {
        tables.earned_hints.add_output(run, node, &given);
    }
    if let (Some(output), Some(stored)) = (output, tables.runs.get_mut(&run)) {
        let round = stored.memos.get_mut(&(node, ROUND_KEY.to_owned()));
        match round.filter(|_| continues) {
            Some(round) => round.memo.payload = Some(output),
            None => drop(stored.outputs.insert(node, output)),
        }
    }
    Ok(CommitAnswer::Accepted)
}

fn cancel(
    tables: &mut Tables,
    run: RunKey,
    request: CancelRequest,
) -> Result<Option<CancelAnswer>, StoreError> {
    if !tables.runs.contains_key(&run) {
        return Ok(None);
    }
    match tables.happen(run, Happening::Run(RunHappening::Cancelled(request)))? {
        Verdict::Cancel(answer) => Ok(Some(answer)),
        _ => Err(corrupt("a request to cancel was not answered")),
    }
}
