use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use stepwell_core::decide::{
    CancelAnswer, CancelRequest, Happening, RunHappening, TaskHappening, Verdict,
};
use stepwell_core::id::{Node, RunKey};
use stepwell_core::run::AttemptState;
use uuid::Uuid;

use super::rows::{Param, TaskKeys, attempt, corrupt, read_all, token};
use super::run::happen::DecidedBatch;
use super::run::write::{Payloads, RunUpdate, Write};
use super::run::{Happened, Happenings};
use super::session::{Done, PgResult, Session};
use super::sql::{self, Sql};
use super::{PostgresStore, Role};
use crate::ports::{
    ClaimRef, ClaimRequest, CommitAnswer, CommitItem, Commits, Committed, Payload, StoreError,
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

    async fn cancel(
        &self,
        run: RunKey,
        request: CancelRequest,
    ) -> Result<Option<CancelAnswer>, StoreError> {
        self.with_retries(|| self.cancel_once(run, &request)).await
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
        let (happenings, outputs) = self.happenings(items);
        let (decided, idle) = runs.open_and_decide(happenings, offer).await?;
        let DecidedBatch { mut verdicts, updates, tenants } = decided;
        let mut is_applied =
            |item: &CommitItem| verdicts.next(item.claim.run).is_some_and(Verdict::is_applied);
        let applied: Vec<bool> = items.iter().map(&mut is_applied).collect();
        let earlier = find_earlier(session, items, &applied, &updates).await?;
        let outputs: Vec<(RunKey, Node, &Payload)> = applied_outputs(items, &applied, &outputs);
        let (payloads, closes) = (Payloads::Outputs(&outputs), true);
        let mut outcome = runs.write(Write { updates, tenants, payloads, closes, idle }).await?;
        for (item, _) in items.iter().zip(&applied).filter(|(_, is_applied)| **is_applied) {
            if let Some(output) = item.outcome.output() {
                outcome.hints.add_output(item.claim.run, item.claim.node, output);
            }
        }
        let answer = |(item, is_applied): (&CommitItem, &bool)| {
            if *is_applied {
                return CommitAnswer::Accepted;
            }
            CommitAnswer::of_earlier(earlier.get(&item.claim).copied())
        };
        let answers = items.iter().zip(&applied).map(answer).collect();
        let answer = Committed { answers, handed_over: outcome.handed_over };
        Ok(Done { answer, hints: outcome.hints, learned: runs.queues.learned() })
    }

    /// What happened, by run, and the outputs that have to be stored, by item.
    fn happenings(&self, items: &[CommitItem]) -> (Happenings, Vec<Option<Payload>>) {
        let mut happenings = Happenings::new();
        let mut outputs = Vec::with_capacity(items.len());
        for CommitItem { claim, outcome } in items {
            let (mut happening, output) = outcome.clone().split();
            if let TaskHappening::Failed { failures, .. } = &mut happening {
                *failures = self.shared.guesses.failures(claim).unwrap_or(*failures);
            }
            let happening = Happening::Task(claim.node, happening);
            let happened = Happened { token: Some(claim.token), happening };
            happenings.entry(claim.run).or_default().push(happened);
            outputs.push(output);
        }
        (happenings, outputs)
    }

    async fn cancel_once(
        &self,
        run: RunKey,
        request: &CancelRequest,
    ) -> PgResult<Done<Option<CancelAnswer>>> {
        let session = self.begin(Role::Work).await?;
        self.shared.ids(&session).lock_serving_shared().await?;
        let runs = self.shared.runs(&session);
        let happening = Happening::Run(RunHappening::Cancelled(request.clone()));
        let happened = Happened { token: None, happening };
        let (mut verdicts, hints) = runs.happen(Happenings::from([(run, vec![happened])])).await?;
        let answer = match verdicts.next(run) {
            Some(Verdict::Cancel(answer)) => Some(answer),
            Some(_) => return Err(corrupt("a request to cancel was not answered").into()),
            None => None,
        };
        let learned = runs.queues.learned();
        self.commit_session(session).await?;
        Ok(Done { answer, hints, learned })
    }
}

/// The outputs of outcomes that took effect.
fn applied_outputs<'o>(
    items: &[CommitItem],
    applied: &[bool],
    outputs: &'o [Option<Payload>],
) -> Vec<(RunKey, Node, &'o Payload)> {
    let output = |((item, is_applied), output): ((&CommitItem, &bool), &'o Option<Payload>)| {
        let output = output.as_ref().filter(|_| *is_applied)?;
        Some((item.claim.run, item.claim.node, output))
    };
    items.iter().zip(applied).zip(outputs).filter_map(output).collect()
}

/// How attempts ended under the claims of items that changed nothing. The reply to an earlier
/// commit may have been lost, or a claim may stand twice in a batch, or another item may have
/// cancelled its task.
async fn find_earlier(
    session: &Session,
    items: &[CommitItem],
    applied: &[bool],
    updates: &[RunUpdate],
) -> PgResult<BTreeMap<ClaimRef, AttemptState>> {
    let mut late: BTreeSet<ClaimRef> = BTreeSet::new();
    let late_items = items.iter().zip(applied).filter(|(_, is_applied)| !**is_applied);
    late.extend(late_items.map(|(item, _)| item.claim));
    if late.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut earlier: BTreeMap<ClaimRef, AttemptState> =
        updates.iter().flat_map(RunUpdate::ended_claims).collect();
    late.retain(|claim| !earlier.contains_key(claim));
    if late.is_empty() {
        return Ok(earlier);
    }
    let tasks = TaskKeys::of(late.iter().map(|claim| (claim.run, claim.node)));
    let tokens: Vec<Uuid> = late.iter().map(|claim| token(claim.token)).collect();
    let [runs, nodes] = tasks.params();
    let params: [Param<'_>; 3] = [runs, nodes, &tokens];
    let rows = session.all(FIND_ATTEMPTS, &params).await?;
    earlier.extend(read_all(&rows, attempt::read_end)?);
    Ok(earlier)
}
