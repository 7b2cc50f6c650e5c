use std::collections::{BTreeMap, BTreeSet, HashMap};

use async_trait::async_trait;
use stepwell_core::decide::{Happening, HeardWait, TaskHappening, Verdict};
use stepwell_core::id::RunKey;
use stepwell_core::run::{MemoRow, Resumed};
use stepwell_core::time::Timestamp;
use tokio_postgres::Row;

use super::rows::memo::{self, ClaimKeys, MemoArrays, MemoKeys};
use super::rows::signal::{SignalNumbers, read_brought};
use super::rows::{Param, corrupt, read_all};
use super::run::inputs::READ_BROUGHT;
use super::run::{Happened, Happenings};
use super::session::{Done, PgResult, Session};
use super::sql::{self, Sql};
use super::{PostgresStore, Role};
use crate::ports::{
    ClaimRef, Heard, ListenAnswer, ListenRequest, MemoAnswer, MemoRequest, Memos, Payload,
    StoreError, StoredMemo,
};

const FORGIVE_LOSSES: Sql = sql::MEMO.named("forgive_losses");
const STORE_MEMOS: Sql = sql::MEMO.named("store_memos");
const FIND_MEMOS: Sql = sql::MEMO.named("find_memos");
const READ_MEMOS_OF_RUN: Sql = sql::MEMO.named("read_memos_of_run");

#[async_trait]
impl Memos for PostgresStore {
    async fn store_memos(&self, requests: Vec<MemoRequest>) -> Result<Vec<MemoAnswer>, StoreError> {
        let stored = self.with_retries(|| self.store_once(&requests)).await?;
        let is_held = |request: &MemoRequest| stored.held.contains_key(&request.claim);
        let asked = requests.iter().filter(|r| stored.is_partial || !is_held(r));
        let before = self.stored_before(asked).await?;
        let answer = |request: &MemoRequest| {
            let at = match stored.held.get(&request.claim) {
                Some(now) => Some(heard_at(request, &before).unwrap_or(*now)),
                None => stored_at(request, &before),
            };
            at.map_or(MemoAnswer::NotMine, MemoAnswer::Stored)
        };
        Ok(requests.iter().map(answer).collect())
    }

    async fn listen(&self, requests: Vec<ListenRequest>) -> Result<Vec<ListenAnswer>, StoreError> {
        self.with_retries(|| self.listen_once(&requests)).await
    }

    async fn memos(&self, run: RunKey) -> Result<Vec<StoredMemo>, StoreError> {
        let params: [Param<'_>; 1] = [&super::rows::key(run)];
        let rows = self.query_once(Role::Work, READ_MEMOS_OF_RUN, &params).await?;
        read_memos_of(&rows)
    }
}

/// All memos of a run, with their payloads.
pub(super) async fn read_memos(session: &Session, run: RunKey) -> PgResult<Vec<StoredMemo>> {
    let rows = session.all(READ_MEMOS_OF_RUN, &[&super::rows::key(run)]).await?;
    Ok(read_memos_of(&rows)?)
}

fn read_memos_of(rows: &[Row]) -> Result<Vec<StoredMemo>, StoreError> {
    let memos = read_all(rows, memo::read_stored)?;
    Ok(memos.into_iter().map(|(_, memo)| memo).collect())
}

/// What became of a write.
struct Stored {
    /// Claims that hold, and when their memos were stored.
    held: HashMap<ClaimRef, Timestamp>,
    /// Whether not all of those were stored: some were there before.
    is_partial: bool,
}

/// Memos that were stored before, by the claims they were stored under.
type StoredBefore = HashMap<(ClaimRef, String), MemoRow>;

/// When a memo was stored that is sent once more.
fn repeated_at(
    request: &MemoRequest,
    memo: &StoredMemo,
    before: &StoredBefore,
) -> Option<Timestamp> {
    let known = before.get(&(request.claim, memo.row.key.clone()))?;
    memo.row.is_repeat_of(known).then_some(known.at)
}

/// When the last memo of a request was stored, if all of them were stored before.
fn stored_at(request: &MemoRequest, before: &StoredBefore) -> Option<Timestamp> {
    let at = request.memos.iter().map(|memo| repeated_at(request, memo, before));
    at.collect::<Option<Vec<_>>>()?.into_iter().max()
}

/// When what a function hears of was stored, if it was stored before.
fn heard_at(request: &MemoRequest, before: &StoredBefore) -> Option<Timestamp> {
    let heard = request.memos.iter().filter(|memo| memo.row.number > 0);
    heard.filter_map(|memo| repeated_at(request, memo, before)).max()
}

impl PostgresStore {
    async fn store_once(&self, requests: &[MemoRequest]) -> PgResult<Done<Stored>> {
        // In the order of tasks, against deadlocks. Of several memos of one key the last one
        // stands, but none that a function may have heard of is replaced.
        let claims: BTreeSet<ClaimRef> = requests.iter().map(|request| request.claim).collect();
        let mut last: BTreeMap<(ClaimRef, &str), &StoredMemo> = BTreeMap::new();
        for request in requests {
            for memo in &request.memos {
                let stands = last.entry((request.claim, &memo.row.key)).or_insert(memo);
                if stands.row.number == 0 {
                    *stands = memo;
                }
            }
        }
        let mut arrays = MemoArrays::default();
        for ((claim, _), memo) in &last {
            arrays.push((*claim).into(), &memo.row, memo.payload.as_ref())?;
        }
        let forgiven = requests.iter().filter(|request| request.forgives);
        let forgiven = ClaimKeys::of(forgiven.map(|request| request.claim));
        let asked = ClaimKeys::of(claims);
        let session = self.unopened(Role::Work).await?;
        let now = session.pool().injected_now();
        let mut params = arrays.params();
        params.extend(asked.params());
        params.push(&now);
        let forgive = async {
            if forgiven.is_empty() {
                return Ok(());
            }
            session.run(FORGIVE_LOSSES, &forgiven.params()).await
        };
        // All that is stored goes by one statement, so it may go out with the begin.
        let (opened, forgave, rows, closed) = tokio::join!(
            biased;
            session.open_timeless(),
            forgive,
            session.all(STORE_MEMOS, &params),
            session.close(),
        );
        let answer = opened.and(forgave).and(rows).and_then(|rows| {
            let rows = read_all(&rows, memo::read_held)?;
            let n_stored = rows.first().map_or(0, |(.., n_stored)| *n_stored);
            let held: HashMap<ClaimRef, Timestamp> =
                rows.into_iter().map(|(claim, now, _)| (claim, now)).collect();
            let n_sent = last.keys().filter(|(claim, _)| held.contains_key(claim)).count() as u64;
            closed?;
            Ok(Done::quiet(Stored { held, is_partial: n_stored < n_sent }))
        });
        drop(params);
        self.commit_or_roll_back(session, answer).await
    }

    /// What is there of requests that are perhaps repeated: the reply to an earlier one may have
    /// been lost.
    async fn stored_before<'r>(
        &self,
        requests: impl Iterator<Item = &'r MemoRequest> + Send,
    ) -> Result<StoredBefore, StoreError> {
        let asked: Vec<(ClaimRef, &str)> = requests
            .flat_map(|r| r.memos.iter().map(|memo| (r.claim, memo.row.key.as_str())))
            .collect();
        if asked.is_empty() {
            return Ok(StoredBefore::new());
        }
        let asked = MemoKeys::under(asked);
        let rows = self.query_once(Role::Work, FIND_MEMOS, &asked.params_under()).await?;
        Ok(read_all(&rows, memo::read_found)?.into_iter().collect())
    }

    async fn listen_once(&self, requests: &[ListenRequest]) -> PgResult<Done<Vec<ListenAnswer>>> {
        let session = self.unopened(Role::Work).await?;
        let answer = self.listen_within(&session, requests).await;
        self.commit_or_roll_back(session, answer).await
    }

    async fn listen_within(
        &self,
        session: &Session,
        requests: &[ListenRequest],
    ) -> PgResult<Done<Vec<ListenAnswer>>> {
        let mut happenings = Happenings::new();
        for ListenRequest { claim, listening } in requests {
            let listens = TaskHappening::Listens(Box::new(listening.clone()));
            let happening = Happening::Task(claim.node, listens);
            let happened = Happened { token: Some(claim.token), happening };
            happenings.entry(claim.run).or_default().push(happened);
        }
        let (mut verdicts, hints) = self.shared.runs(session).open_and_happen(happenings).await?;
        let verdict = |request: &ListenRequest| verdicts.next(request.claim.run);
        let verdicts: Vec<Option<Verdict>> = requests.iter().map(verdict).collect();
        let brought = read_heard(session, requests, &verdicts).await?;
        session.close().await?;
        let answer = |(request, verdict): (&ListenRequest, Option<Verdict>)| {
            let Some(Verdict::Listening(heard)) = verdict else { return Ok(ListenAnswer::NotMine) };
            let Some(HeardWait { place, resumed }) = heard else {
                return Ok(ListenAnswer::Listening(None));
            };
            let payload = match resumed {
                Some(Resumed::TimedOut) => Some(Payload::timed_out()),
                Some(Resumed::Signal(number)) => {
                    let payload = brought.get(&(request.claim.run, number)).cloned();
                    Some(payload.ok_or_else(|| corrupt("a signal has no payload"))?)
                }
                None => None,
            };
            Ok(ListenAnswer::Listening(Some(Heard { place, payload, at: session.now() })))
        };
        let answers = requests.iter().zip(verdicts).map(answer).collect::<PgResult<_>>()?;
        Ok(Done { hints, ..Done::quiet(answers) })
    }
}

/// What signals brought that functions heard of.
async fn read_heard(
    session: &Session,
    requests: &[ListenRequest],
    verdicts: &[Option<Verdict>],
) -> PgResult<HashMap<(RunKey, u64), Payload>> {
    let numbers = requests.iter().zip(verdicts).filter_map(|(request, verdict)| match verdict {
        Some(Verdict::Listening(Some(HeardWait { resumed: Some(resumed), .. }))) => match resumed {
            Resumed::Signal(number) => Some((request.claim.run, *number)),
            Resumed::TimedOut => None,
        },
        _ => None,
    });
    let numbers = SignalNumbers::of(numbers);
    if numbers.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = session.all(READ_BROUGHT, &numbers.params()).await?;
    Ok(read_all(&rows, read_brought)?.into_iter().collect())
}
