use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use stepwell_core::decide::{CancelAnswer, Happening};
use stepwell_core::id::{Node, RunKey, Token};
use stepwell_core::run::AttemptState;
use uuid::Uuid;

use super::batch::{Accepted, Happened, Happenings};
use super::rows::{self, int32, key, node, read_token, run_key, token};
use super::transaction::Transaction;
use super::{PostgresStore, statements};
use crate::ports::{
    ClaimRef, CommitAnswer, CommitItem, Commits, Hint, Outcome, Payload, StoreError,
};

#[async_trait]
impl Commits for PostgresStore {
    async fn commit(&self, items: Vec<CommitItem>) -> Result<Vec<CommitAnswer>, StoreError> {
        self.with_retries(|| self.commit_once(&items)).await
    }

    async fn cancel(&self, run: RunKey) -> Result<Option<CancelAnswer>, StoreError> {
        self.with_retries(|| self.cancel_once(run)).await
    }
}

impl PostgresStore {
    async fn commit_once(&self, items: &[CommitItem]) -> Result<Vec<CommitAnswer>, StoreError> {
        let mut transaction = self.begin().await?;
        transaction.share_service().await?;
        let mut happenings = Happenings::new();
        for item in items {
            let happened = Happened {
                node: item.claim.node,
                token: Some(item.claim.token),
                happening: happening(&item.outcome),
            };
            happenings.entry(item.claim.run).or_default().push(happened);
        }
        let accepted = transaction.happen(happenings).await?;
        // A claim may stand twice in a batch: its first item counted, the others are answered as
        // those of a repeated commit are.
        let (first, repeated) = first_of_claims(items);
        insert_outputs(&transaction, &first, &accepted).await?;
        let is_late = |claim: &&ClaimRef| !accepted.contains(&fenced(**claim));
        let late = first.iter().map(|item| &item.claim).filter(is_late);
        let late: Vec<ClaimRef> = late.chain(&repeated).copied().collect();
        let earlier = earlier(&transaction, &late).await?;
        if items.iter().any(|item| matches!(item.outcome, Outcome::Failed { .. })) {
            // It may have cancelled others that run.
            transaction.earn(Hint::Claims);
        }
        self.commit_transaction(transaction).await?;
        let mut seen = BTreeSet::new();
        let answer = |item: &CommitItem| {
            let is_now = seen.insert(item.claim) && accepted.contains(&fenced(item.claim));
            match earlier.get(&item.claim) {
                Some(AttemptState::Cancelled | AttemptState::Lost) => CommitAnswer::NotMine,
                Some(_) => CommitAnswer::Accepted,
                None if is_now => CommitAnswer::Accepted,
                None => CommitAnswer::NotMine,
            }
        };
        Ok(items.iter().map(answer).collect())
    }

    async fn cancel_once(&self, run: RunKey) -> Result<Option<CancelAnswer>, StoreError> {
        let mut transaction = self.begin().await?;
        transaction.share_service().await?;
        let answer = transaction.cancel_run(run).await?;
        transaction.earn(Hint::Claims);
        self.commit_transaction(transaction).await?;
        Ok(answer)
    }
}

/// A claim as [`Accepted`] lists it.
fn fenced(claim: ClaimRef) -> (RunKey, Node, Option<Token>) {
    (claim.run, claim.node, Some(claim.token))
}

fn happening(outcome: &Outcome) -> Happening {
    match outcome.clone() {
        Outcome::Completed { notes, .. } => Happening::Completed { notes },
        Outcome::Failed { failure, notes, chance } => Happening::Failed { failure, notes, chance },
        Outcome::Skipped => Happening::Skipped,
        Outcome::Slept => Happening::Slept,
        Outcome::Released => Happening::Released,
    }
}

/// The first item of every claim, and the claims of the other items.
fn first_of_claims(items: &[CommitItem]) -> (Vec<&CommitItem>, Vec<ClaimRef>) {
    let mut seen = BTreeSet::new();
    let (first, repeated): (Vec<_>, Vec<_>) =
        items.iter().partition(|item| seen.insert(item.claim));
    (first, repeated.into_iter().map(|item| item.claim).collect())
}

async fn insert_outputs(
    transaction: &Transaction,
    items: &[&CommitItem],
    accepted: &Accepted,
) -> Result<(), StoreError> {
    let (mut runs, mut nodes) = (Vec::new(), Vec::new());
    let (mut codecs, mut bytes): (Vec<&str>, Vec<&[u8]>) = (Vec::new(), Vec::new());
    for item in items {
        let Outcome::Completed { output: Payload { codec, bytes: content }, .. } = &item.outcome
        else {
            continue;
        };
        if accepted.contains(&fenced(item.claim)) {
            runs.push(key(item.claim.run));
            nodes.push(int32(item.claim.node.0));
            codecs.push(codec.as_ref());
            bytes.push(content.as_ref());
        }
    }
    if runs.is_empty() {
        return Ok(());
    }
    transaction.run(statements::INSERT_OUTPUTS, &[&runs, &nodes, &codecs, &bytes]).await
}

/// How attempts under the tokens of items that changed nothing now had ended before: the reply
/// to an earlier commit may have been lost.
async fn earlier(
    transaction: &Transaction,
    late: &[ClaimRef],
) -> Result<BTreeMap<ClaimRef, AttemptState>, StoreError> {
    let runs: Vec<Uuid> = late.iter().map(|claim| key(claim.run)).collect();
    let nodes: Vec<i32> = late.iter().map(|claim| int32(claim.node.0)).collect();
    let tokens: Vec<Uuid> = late.iter().map(|claim| token(claim.token)).collect();
    if runs.is_empty() {
        return Ok(BTreeMap::new());
    }
    let rows = transaction.all(statements::FIND_ATTEMPTS, &[&runs, &nodes, &tokens]).await?;
    let read = |row: &tokio_postgres::Row| {
        let (run, node) = (run_key(row, 0)?, node(row, 1)?);
        let claim = ClaimRef { run, node, token: read_token(row, 2)? };
        Ok((claim, rows::attempt_state(row, 3)?))
    };
    Ok(rows::read_all(&rows, read)?.into_iter().collect())
}
