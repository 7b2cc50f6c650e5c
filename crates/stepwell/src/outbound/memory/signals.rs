use std::ops::Bound;

use async_trait::async_trait;
use stepwell_core::decide::{Happening, RunHappening, SignalAnswer, Verdict};
use stepwell_core::id::RunKey;
use stepwell_core::run::{Resumed, WaitRow};

use super::tables::{StoredRun, Tables};
use super::{MemoryStore, corrupt};
use crate::ports::{
    Payload, SignalRequest, SignalTarget, Signals, StoreError, StoredSignal, WaitingRuns,
};

#[async_trait]
impl Signals for MemoryStore {
    async fn signal(
        &self,
        requests: Vec<SignalRequest>,
    ) -> Result<Vec<Option<SignalAnswer>>, StoreError> {
        self.transact(|tables| requests.into_iter().map(|request| send(tables, request)).collect())
    }

    async fn signals(&self, run: RunKey) -> Result<Vec<StoredSignal>, StoreError> {
        Ok(self.transact(|tables| {
            let signals = tables.runs.get(&run).map(|run| run.signals.values());
            signals.into_iter().flatten().cloned().collect()
        }))
    }

    async fn waits(&self, run: RunKey) -> Result<Vec<WaitRow>, StoreError> {
        Ok(self.transact(|tables| tables.runs.get(&run).map(waits).unwrap_or_default()))
    }

    async fn waiting_runs(
        &self,
        asked: &WaitingRuns,
        after: Option<RunKey>,
        rows_max: usize,
    ) -> Result<Vec<RunKey>, StoreError> {
        Ok(self.transact(|tables| {
            let from = after.map_or(Bound::Unbounded, Bound::Excluded);
            let keys = tables.run_keys.range((from, Bound::Unbounded)).copied();
            keys.filter(|key| is_asked_for(tables, *key, asked)).take(rows_max).collect()
        }))
    }
}

fn send(tables: &mut Tables, request: SignalRequest) -> Result<Option<SignalAnswer>, StoreError> {
    let SignalRequest { to, signal, payload } = request;
    let run = match to {
        SignalTarget::Key(run) => Some(run),
        SignalTarget::Id(tenant, id) => tables.run_ids.get(&(tenant, id)).copied(),
    };
    let Some(run) = run.filter(|run| tables.runs.contains_key(run)) else { return Ok(None) };
    tables.payloads_of_signals.insert((run, signal.key.clone()), payload);
    let verdict = tables.happen(run, Happening::Run(RunHappening::Signalled(signal)));
    tables.payloads_of_signals.clear();
    match verdict? {
        Verdict::Signal(answer) => Ok(Some(answer)),
        _ => Err(corrupt("a signal was not answered")),
    }
}

/// The open waits of a run, oldest first.
pub(super) fn waits(run: &StoredRun) -> Vec<WaitRow> {
    let mut waits: Vec<WaitRow> = run.waits.values().cloned().collect();
    waits.sort_by_key(WaitRow::age);
    waits
}

fn is_asked_for(tables: &Tables, key: RunKey, asked: &WaitingRuns) -> bool {
    let Some(run) = tables.runs.get(&key) else { return false };
    let is_of_workflow =
        tables.plan_of(run).is_ok_and(|plan| plan.definition.workflow == asked.workflow);
    let is_for = |wait: &WaitRow| wait.signals.contains(&asked.signal);
    run.row.tenant == asked.tenant && is_of_workflow && run.waits.values().any(is_for)
}

/// What ended a task's wait, as it is read.
pub(super) fn resumed_with(run: &StoredRun, resumed: Resumed) -> Payload {
    match resumed {
        Resumed::TimedOut => Payload::timed_out(),
        Resumed::Signal(number) => {
            run.signals.get(&number).map_or_else(Payload::empty, |signal| signal.payload.clone())
        }
    }
}
