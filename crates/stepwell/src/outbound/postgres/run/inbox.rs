//! Loading the waits and signals that a decision needs.

use std::collections::HashMap;

use stepwell_core::decide::{Happening, InboxNeeds, RunHappening};
use stepwell_core::id::RunKey;
use stepwell_core::run::{Inbox, RunRow};
use tokio_postgres::Row;

use super::super::rows::signal::{self, SignalKeys};
use super::super::rows::{keys, read_all, wait};
use super::super::session::PgResult;
use super::super::sql::{self, Sql};
use super::{Happenings, RunSet};

pub(crate) const READ_WAITS: Sql = sql::WAIT.named("read_waits");
const FIND_SIGNALS: Sql = sql::SIGNAL.named("find_signals");
const UNCONSUMED_SIGNALS: Sql = sql::SIGNAL.named("unconsumed_signals");

/// Waits and signals of runs, as far as they were asked for.
pub(super) type Inboxes = HashMap<RunKey, Inbox>;

/// What of waits and signals has to be loaded to decide.
#[derive(Default)]
pub(super) struct InboxPlan<'h> {
    /// Runs whose open waits are needed.
    runs: Vec<RunKey>,
    /// Signals by the keys they were sent under.
    keys: Vec<(RunKey, &'h str)>,
    /// Runs whose signals are needed that nobody got yet.
    unconsumed: Vec<RunKey>,
}

impl<'h> InboxPlan<'h> {
    /// What signals need, by what they say: nothing has to be known of their runs before.
    pub(super) fn of_signals(happenings: &'h Happenings) -> Self {
        let mut plan = Self { runs: happenings.keys().copied().collect(), ..Self::default() };
        for (run, happened) in happenings {
            plan.keys.extend(happened.iter().filter_map(|happened| match &happened.happening {
                Happening::Run(RunHappening::Signalled(signal)) => {
                    Some((*run, signal.key.as_str()))
                }
                _ => None,
            }));
        }
        plan
    }

    /// Adds what a decision about a locked run needs.
    pub(super) fn add(&mut self, run: &RunRow, needs: &'h InboxNeeds) {
        self.runs.push(run.key);
        self.keys.extend(needs.keys.iter().map(|key| (run.key, key.as_str())));
        if needs.unconsumed && run.n_unconsumed > 0 {
            self.unconsumed.push(run.key);
        }
    }
}

impl RunSet<'_> {
    /// Loads waits and signals by later statements than the one that locked the runs, all in one
    /// go; asks for nothing that is not needed.
    pub(super) async fn read_inboxes(&self, plan: &InboxPlan<'_>) -> PgResult<Inboxes> {
        let (waits, by_key, unconsumed) = tokio::join!(
            biased;
            self.read_open_waits(&plan.runs),
            self.find_signals(&plan.keys),
            self.unconsumed_signals(&plan.unconsumed),
        );
        let mut inboxes = Inboxes::new();
        for (run, wait) in read_all(&waits?, wait::read)? {
            inboxes.entry(run).or_default().waits.push(wait);
        }
        for (run, signal) in read_all(&by_key?, signal::read)? {
            inboxes.entry(run).or_default().signals.push(signal);
        }
        for (run, signal) in read_all(&unconsumed?, signal::read)? {
            let known = &mut inboxes.entry(run).or_default().signals;
            if known.iter().all(|known| known.number != signal.number) {
                known.push(signal);
            }
        }
        Ok(inboxes)
    }

    async fn read_open_waits(&self, runs: &[RunKey]) -> PgResult<Vec<Row>> {
        if runs.is_empty() {
            return Ok(Vec::new());
        }
        self.session.all(READ_WAITS, &[&keys(runs)]).await
    }

    async fn find_signals(&self, asked: &[(RunKey, &str)]) -> PgResult<Vec<Row>> {
        let asked = SignalKeys::of(asked.iter().copied());
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        self.session.all(FIND_SIGNALS, &asked.params()).await
    }

    async fn unconsumed_signals(&self, runs: &[RunKey]) -> PgResult<Vec<Row>> {
        if runs.is_empty() {
            return Ok(Vec::new());
        }
        self.session.all(UNCONSUMED_SIGNALS, &[&keys(runs)]).await
    }
}
