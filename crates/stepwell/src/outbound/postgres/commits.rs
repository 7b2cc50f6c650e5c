use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use stepwell_core::decide::{CancelAnswer, Happening};
use stepwell_core::id::{Node, RunKey, Token};
use stepwell_core::run::AttemptState;
use uuid::Uuid;

use super::batch::{Accepted, Decided, Happened, Happenings};
use super::error::conflict;
use super::hand_over::Hands;
use super::rows::{self, int32, key, node, read_token, run_key, token};
use super::transaction::Transaction;
use super::write::{Payloads, Written};
use super::{PostgresStore, Role, statements};
use crate::ports::{
    ClaimRef, ClaimRequest, CommitAnswer, CommitItem, Commits, Committed, Hint, Outcome, Payload,
    StoreError,
};

#[async_trait]
impl Commits for PostgresStore {
    async fn commit_and_claim(
        &self,
        items: Vec<CommitItem>,
        offer: Option<ClaimRequest>,
    ) -> Result<Committed, StoreError> {
        self.with_retries(|| self.commit_once(&items, offer.as_ref())).await
    }

    async fn cancel(&self, run: RunKey) -> Result<Option<CancelAnswer>, StoreError> {
        self.with_retries(|| self.cancel_once(run)).await
    }
}

impl PostgresStore {
    async fn commit_once(
        &self,
        items: &[CommitItem],
        offer: Option<&ClaimRequest>,
    ) -> Result<Committed, StoreError> {
        let mut happenings = Happenings::new();
        for item in items {
            let happened = Happened {
                node: item.claim.node,
                token: Some(item.claim.token),
                happening: happening(&item.outcome),
            };
            happenings.entry(item.claim.run).or_default().push(happened);
        }
        let mut transaction = self.take(Role::Work).await?;
        let answer = commit(&mut transaction, items, happenings, offer).await;
        self.conclude(transaction, answer).await
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

/// Decides what was handed in and commits what follows.
async fn commit(
    transaction: &mut Transaction,
    items: &[CommitItem],
    happenings: Happenings,
    offer: Option<&ClaimRequest>,
) -> Result<Committed, StoreError> {
    let (decided, hands) = decide(transaction, happenings, offer).await?;
    let Decided { accepted, written, tenants } = decided;
    // A claim may stand twice in a batch: its first item counted, the others are answered as
    // those of a repeated commit are.
    let (first, repeated) = first_of_claims(items);
    let is_late = |claim: &&ClaimRef| !accepted.contains(&fenced(**claim));
    let late = first.iter().map(|item| &item.claim).filter(is_late);
    let late: Vec<ClaimRef> = late.copied().collect();
    let mut earlier = earlier(transaction, &late).await?;
    if !repeated.is_empty() {
        earlier.extend(written.iter().flat_map(Written::ended_claims));
    }
    if items.iter().any(|item| matches!(item.outcome, Outcome::Failed { .. })) {
        // It may have cancelled others that run.
        transaction.earn(Hint::Claims);
    }
    let outputs = outputs(&first, &accepted);
    let payloads = Payloads::Outputs(&outputs);
    let handed_over =
        transaction.write_and_hand_over(written, tenants, payloads, true, hands).await?;
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
    Ok(Committed { answers: items.iter().map(answer).collect(), handed_over })
}

/// Opens the transaction, locks the runs, reads what is needed and decides. If this process
/// remembers the runs, all of that is asked for in one go.
async fn decide<'o>(
    transaction: &mut Transaction,
    happenings: Happenings,
    offer: Option<&'o ClaimRequest>,
) -> Result<(Decided, Option<Hands<'o>>), StoreError> {
    let keys: Vec<RunKey> = happenings.keys().copied().collect();
    let guess = transaction.guess(&happenings);
    let gathered = async {
        match &guess {
            Some(needed) => transaction.gather(needed).await.map(Some),
            None => Ok(None),
        }
    };
    let (now, hands, runs, gathered) = tokio::join!(
        biased;
        transaction.open_in_service(),
        transaction.idle(offer),
        transaction.lock_runs(&keys),
        gathered,
    );
    let (now, hands, runs, gathered) = (now?, hands?, runs?, gathered?);
    transaction.now = now;
    let gathered = if let Some(gathered) = gathered {
        gathered
    } else {
        let needed = transaction.needed_by(&runs, &happenings).await?;
        transaction.gather(&needed).await?
    };
    if guess.is_some_and(|needed| !needed.is_right_about(&runs)) {
        transaction.known().forget_runs();
        return Err(conflict("runs are not what they were"));
    }
    Ok((transaction.decide(runs, gathered, happenings).await?, hands))
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

/// The outputs that were accepted and have to be stored: an empty one is what is read where there
/// is none.
fn outputs<'i>(items: &[&'i CommitItem], accepted: &Accepted) -> Vec<(RunKey, Node, &'i Payload)> {
    let output = |item: &&'i CommitItem| match &item.outcome {
        Outcome::Completed { output, .. }
            if !output.codec.is_empty() && accepted.contains(&fenced(item.claim)) =>
        {
            Some((item.claim.run, item.claim.node, output))
        }
        _ => None,
    };
    items.iter().filter_map(output).collect()
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
