use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use stepwell_core::decide::{CancelAnswer, Happening};
use stepwell_core::id::{Node, RunKey, Token};
use stepwell_core::run::AttemptState;
use uuid::Uuid;

use super::queue::service::lock_serving_shared;
use super::rows::{Param, TaskKeys, attempt, read_all, token};
use super::run::happen::{Accepted, DecidedBatch};
use super::run::write::{Payloads, RunUpdate, Write};
use super::run::{Happened, Happenings};
use super::session::{Done, PgResult, Session};
use super::sql::{self, Sql};
use super::{PostgresStore, Role};
use crate::ports::{
    ClaimRef, ClaimRequest, CommitAnswer, CommitItem, Commits, Committed, Hint, Outcome, Payload,
    StoreError,
};

const FIND_ATTEMPTS: Sql = sql::ATTEMPT.named("find_attempts");

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
    ) -> PgResult<Done<Committed>> {
        let session = self.unopened(Role::Work).await?;
        let answer = self.commit_within(&session, items, offer).await;
        self.commit_or_roll_back(session, answer).await
    }

    /// Decides what was handed in and commits what follows.
    async fn commit_within(
        &self,
        session: &Session,
        items: &[CommitItem],
        offer: Option<&ClaimRequest>,
    ) -> PgResult<Done<Committed>> {
        let runs = self.shared.runs(session);
        let (decided, idle) = runs.open_and_decide(happenings(items), offer).await?;
        let DecidedBatch { accepted, updates, tenants } = decided;
        // A claim may stand twice in a batch: its first item counted, the others are answered as
        // those of a repeated commit are.
        let (first, repeated) = first_of_claims(items);
        let is_late = |claim: &&ClaimRef| !accepted.contains(&fenced(**claim));
        let late = first.iter().map(|item| &item.claim).filter(is_late);
        let late: Vec<ClaimRef> = late.copied().collect();
        let mut earlier = find_earlier(session, &late).await?;
        if !repeated.is_empty() {
            earlier.extend(updates.iter().flat_map(RunUpdate::ended_claims));
        }
        let outputs = outputs(&first, &accepted);
        let (payloads, closes) = (Payloads::Outputs(&outputs), true);
        let outcome = runs.write(Write { updates, tenants, payloads, closes, idle }).await?;
        let mut hints = outcome.hints;
        if items.iter().any(|item| matches!(item.outcome, Outcome::Failed { .. })) {
            // It may have cancelled others that run.
            hints.insert(Hint::Claims);
        }
        let answers = answers(items, &accepted, &earlier);
        let answer = Committed { answers, handed_over: outcome.handed_over };
        Ok(Done { answer, hints, learned: runs.queues.learned() })
    }

    async fn cancel_once(&self, run: RunKey) -> PgResult<Done<Option<CancelAnswer>>> {
        let session = self.begin(Role::Work).await?;
        lock_serving_shared(&session).await?;
        let runs = self.shared.runs(&session);
        let (answer, hints) = runs.cancel(run).await?;
        let learned = runs.queues.learned();
        self.commit_session(session).await?;
        Ok(Done { answer, hints: hints.with(Hint::Claims), learned })
    }
}

/// What happened, by run.
fn happenings(items: &[CommitItem]) -> Happenings {
    let mut happenings = Happenings::new();
    for item in items {
        let happened = Happened {
            node: item.claim.node,
            token: Some(item.claim.token),
            happening: happening(&item.outcome),
        };
        happenings.entry(item.claim.run).or_default().push(happened);
    }
    happenings
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

/// A claim as [`Accepted`] lists it.
fn fenced(claim: ClaimRef) -> (RunKey, Node, Option<Token>) {
    (claim.run, claim.node, Some(claim.token))
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
async fn find_earlier(
    session: &Session,
    late: &[ClaimRef],
) -> PgResult<BTreeMap<ClaimRef, AttemptState>> {
    if late.is_empty() {
        return Ok(BTreeMap::new());
    }
    let tasks = TaskKeys::of(late.iter().map(|claim| (claim.run, claim.node)));
    let tokens: Vec<Uuid> = late.iter().map(|claim| token(claim.token)).collect();
    let [runs, nodes] = tasks.params();
    let params: [Param<'_>; 3] = [runs, nodes, &tokens];
    let rows = session.all(FIND_ATTEMPTS, &params).await?;
    Ok(read_all(&rows, attempt::read_end)?.into_iter().collect())
}

/// What each item is answered, given how attempts had ended before.
fn answers(
    items: &[CommitItem],
    accepted: &Accepted,
    earlier: &BTreeMap<ClaimRef, AttemptState>,
) -> Vec<CommitAnswer> {
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
    items.iter().map(answer).collect()
}
