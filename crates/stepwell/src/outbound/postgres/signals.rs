use std::collections::HashMap;

use async_trait::async_trait;
use stepwell_core::decide::{Happening, RunHappening, SignalAnswer, Verdict};
use stepwell_core::id::RunKey;
use stepwell_core::run::WaitRow;
use uuid::Uuid;

use super::lookup::IdLookup;
use super::rows::run::RunNames;
use super::rows::{corrupt, key, read_all, rows_max as limit, run, signal, wait};
use super::run::happen::DecidedBatch;
use super::run::inbox::READ_WAITS;
use super::run::write::{Payloads, Write};
use super::run::{Happened, Happenings};
use super::session::{Done, Params, PgResult, Session};
use super::sql::{self, Sql};
use super::{PostgresStore, Role};
use crate::ports::{
    Payload, SignalRequest, SignalTarget, Signals, StoreError, StoredSignal, WaitingRuns,
};

const FIND_RUN_KEYS: Sql = sql::RUN.named("find_run_keys");
pub(super) const READ_SIGNALS: Sql = sql::SIGNAL.named("read_signals");
const WAITING_RUNS: Sql = sql::WAIT.named("waiting_runs");

#[async_trait]
impl Signals for PostgresStore {
    async fn signal(
        &self,
        requests: Vec<SignalRequest>,
    ) -> Result<Vec<Option<SignalAnswer>>, StoreError> {
        self.with_retries(|| self.signal_once(&requests)).await
    }

    async fn signals(&self, run: RunKey) -> Result<Vec<StoredSignal>, StoreError> {
        let rows = self.query_once(Role::Work, READ_SIGNALS, &[&key(run)]).await?;
        read_all(&rows, signal::read_stored)
    }

    async fn waits(&self, run: RunKey) -> Result<Vec<WaitRow>, StoreError> {
        let rows = self.query_once(Role::Work, READ_WAITS, &[&vec![key(run)]]).await?;
        read_all(&rows, |row| Ok(wait::read(row)?.1))
    }

    async fn waiting_runs(
        &self,
        asked: &WaitingRuns,
        after: Option<RunKey>,
        rows_max: usize,
    ) -> Result<Vec<RunKey>, StoreError> {
        let WaitingRuns { tenant, workflow, signal } = asked;
        let after = after.map_or(Uuid::nil(), key);
        let params: Params<'_> = &[&tenant.as_str(), workflow, signal, &after, &limit(rows_max)];
        let rows = self.query_once(Role::Work, WAITING_RUNS, params).await?;
        read_all(&rows, run::read_key)
    }
}

impl PostgresStore {
    async fn signal_once(
        &self,
        requests: &[SignalRequest],
    ) -> PgResult<Done<Vec<Option<SignalAnswer>>>> {
        let session = self.unopened(Role::Work).await?;
        let answer = self.signal_within(&session, requests).await;
        self.commit_or_roll_back(session, answer).await
    }

    /// Decides what was sent and commits what follows.
    async fn signal_within(
        &self,
        session: &Session,
        requests: &[SignalRequest],
    ) -> PgResult<Done<Vec<Option<SignalAnswer>>>> {
        let runs = self.shared.runs(session);
        let names = names_of(requests);
        let is_open = !names.is_empty();
        let named = if is_open { open_and_find(&runs.ids, &names).await? } else { HashMap::new() };
        let targets: Vec<Option<RunKey>> = requests
            .iter()
            .map(|request| match &request.to {
                SignalTarget::Key(run) => Some(*run),
                SignalTarget::Id(tenant, id) => named.get(&(tenant.clone(), id.clone())).copied(),
            })
            .collect();
        let happenings = happenings(requests, &targets);
        let DecidedBatch { mut verdicts, updates, tenants } =
            runs.decide_signals(happenings, is_open).await?;
        let answer = |target: &Option<RunKey>| match target.and_then(|run| verdicts.next(run)) {
            Some(Verdict::Signal(answer)) => Ok(Some(answer)),
            Some(_) => Err(corrupt("a signal was not answered")),
            None => Ok(None),
        };
        let answers: Vec<Option<SignalAnswer>> =
            targets.iter().map(answer).collect::<Result<_, _>>()?;
        let stored = stored_payloads(requests, &targets, &answers);
        let (payloads, closes, idle) = (Payloads::Signals(&stored), true, None);
        let outcome = runs.write(Write { updates, tenants, payloads, closes, idle }).await?;
        Ok(Done { answer: answers, hints: outcome.hints, learned: runs.queues.learned() })
    }
}

/// The names of runs that are not addressed by their keys.
fn names_of(requests: &[SignalRequest]) -> Vec<(&str, &str)> {
    let names = requests.iter().filter_map(|request| match &request.to {
        SignalTarget::Key(_) => None,
        SignalTarget::Id(tenant, id) => Some((tenant.as_str(), id.as_str())),
    });
    let mut names: Vec<(&str, &str)> = names.collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Opens the transaction and finds runs by their names, which never change.
async fn open_and_find(
    ids: &IdLookup<'_>,
    names: &[(&str, &str)],
) -> PgResult<HashMap<RunNames, RunKey>> {
    let (tenants, run_ids): (Vec<&str>, Vec<&str>) = names.iter().copied().unzip();
    let params: Params<'_> = &[&tenants, &run_ids];
    let (begun, found) = tokio::join!(
        biased;
        ids.begin_serving(),
        ids.session.all(FIND_RUN_KEYS, params),
    );
    begun?;
    Ok(read_all(&found?, run::read_named)?.into_iter().collect())
}

/// What happened, by run and in the order of the requests.
fn happenings(requests: &[SignalRequest], targets: &[Option<RunKey>]) -> Happenings {
    let mut happenings = Happenings::new();
    for (request, target) in requests.iter().zip(targets) {
        let Some(run) = target else { continue };
        let happening = Happening::Run(RunHappening::Signalled(request.signal.clone()));
        happenings.entry(*run).or_default().push(Happened { token: None, happening });
    }
    happenings
}

/// What signals brought that are stored, by run and number.
fn stored_payloads<'r>(
    requests: &'r [SignalRequest],
    targets: &[Option<RunKey>],
    answers: &[Option<SignalAnswer>],
) -> HashMap<(RunKey, u64), &'r Payload> {
    let stored = requests.iter().zip(targets).zip(answers);
    let payload = |((request, target), answer): ((&'r SignalRequest, _), &_)| match answer {
        Some(SignalAnswer::Stored { number, .. }) => {
            let run: &Option<RunKey> = target;
            Some((((*run)?, *number), &request.payload))
        }
        _ => None,
    };
    stored.filter_map(payload).collect()
}
