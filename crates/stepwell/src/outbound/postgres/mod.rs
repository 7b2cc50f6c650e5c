//! The PostgreSQL store: many processes on many machines.
//!
//! A call is one transaction of a few set-based statements, however many runs it concerns: lock
//! the runs, load what the rules need, decide in the core, write everything that follows.
//! Database time decides what is due or expired.
//!
//! The port files parse a request, call, and answer. They stand on `run` and `lead`, those on
//! `queue`, that on `lookup`, that on `session`, that on `connection`; `sql` and `rows` know the
//! tables. None knows what stands on it.

mod claims;
mod commits;
mod connection;
mod definitions;
mod inspection;
mod lead;
mod leadership;
mod lookup;
mod memos;
mod open;
#[cfg(feature = "testing")]
mod probe;
mod progress;
mod queue;
mod rows;
mod run;
mod runs;
mod schema;
mod session;
mod signals;
mod sql;
mod starts;
mod tenants;
mod timers;
mod wake;
mod workers;

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub use connection::options::PostgresOptions;
use connection::pool::Pool;
use connection::role::Role;
use lookup::tenants::open_and_number;
use lookup::{Beliefs, Guesses, IdCache, IdLookup, PlanCache, identity};
use queue::positions::insert_missing_positions;
use queue::watermark::Watermarks;
use queue::{LimitsSeen, QueueSet};
use run::RunSet;
use session::{Conflict, Done, Params, PgError, PgResult, Session, retry};
use sql::Sql;
use stepwell_core::id::Tenant;
use tokio_postgres::Row;
use wake::pending::PendingWakes;

use crate::ports::{HintSet, Hints, Store, StoreError, Traffic};

/// A store in a PostgreSQL schema. Clones share one pool of connections.
#[derive(Clone)]
pub struct PostgresStore {
    shared: Arc<Shared>,
}

struct Shared {
    pool: Arc<Pool>,
    wakes: Arc<PendingWakes>,
    /// Rows that do not change.
    ids: IdCache,
    plans: Arc<PlanCache>,
    guesses: Guesses,
    watermarks: Watermarks,
    /// Whether an engine of this store led when it last asked.
    leads: AtomicBool,
}

impl Shared {
    fn new(pool: Pool, steps_per_round: u64) -> Self {
        Self {
            pool: Arc::new(pool),
            wakes: Arc::default(),
            ids: IdCache::default(),
            plans: Arc::default(),
            guesses: Guesses::default(),
            watermarks: Watermarks::new(steps_per_round),
            leads: AtomicBool::new(false),
        }
    }

    /// What this process believes of the database, before it uses anything that it remembers.
    fn beliefs(&self) -> Beliefs {
        Beliefs::of(&self.ids, &self.plans)
    }

    fn ids<'s>(&'s self, session: &'s Session) -> IdLookup<'s> {
        self.ids_by(session, self.beliefs())
    }

    fn ids_by<'s>(&'s self, session: &'s Session, beliefs: Beliefs) -> IdLookup<'s> {
        IdLookup { session, cache: &self.ids, plans: &self.plans, beliefs }
    }

    fn queues<'s>(&'s self, session: &'s Session) -> QueueSet<'s> {
        let (guesses, watermarks) = (&self.guesses, &self.watermarks);
        QueueSet { session, guesses, watermarks, limits_seen: LimitsSeen::default() }
    }

    fn runs<'s>(&'s self, session: &'s Session) -> RunSet<'s> {
        self.runs_by(session, self.beliefs())
    }

    /// As [`runs`](Self::runs), for what used what is remembered before, by these beliefs.
    fn runs_by<'s>(&'s self, session: &'s Session, beliefs: Beliefs) -> RunSet<'s> {
        let ids = self.ids_by(session, beliefs);
        RunSet { session, ids, queues: self.queues(session) }
    }
}

impl PostgresStore {
    /// What this store has sent to the server so far.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.shared.pool.traffic.read()
    }

    /// A transaction that is yet to be opened.
    async fn unopened(&self, role: Role) -> PgResult<Session> {
        Session::unopened(&self.shared.pool, role).await
    }

    /// Begins a transaction and reads its time.
    async fn begin(&self, role: Role) -> PgResult<Session> {
        let session = self.unopened(role).await?;
        self.shared.ids(&session).open().await?;
        Ok(session)
    }

    /// As [`begin`](Self::begin), for what takes a leader longer than a look.
    async fn begin_duty(&self) -> PgResult<Session> {
        let session = Session::unopened_duty(&self.shared.pool).await?;
        self.shared.ids(&session).open().await?;
        Ok(session)
    }

    /// The numbers of tenants; new ones get theirs in a transaction of their own.
    async fn tenant_nos(&self, tenants: &[Tenant]) -> PgResult<HashMap<Tenant, u32>> {
        if let Some(cached) = self.shared.ids.cached_tenant_nos(tenants) {
            return Ok(cached);
        }
        let session = self.unopened(Role::Work).await?;
        let numbers = open_and_number(&self.shared.ids(&session), tenants).await?;
        session.end();
        Ok(numbers)
    }

    /// What this process believes, by which it looked up something since `before`.
    fn beliefs_since(&self, before: Beliefs) -> Beliefs {
        let now = self.shared.beliefs();
        // If all was forgotten meanwhile, what was looked up before is not of what is known now.
        if now.is_same_memory(before) { now } else { before }
    }

    /// Commits.
    async fn commit_session(&self, session: Session) -> PgResult<()> {
        session.close().await?;
        session.end();
        Ok(())
    }

    /// Ends a transaction that closed itself if all went well. If it met another one, it is rolled
    /// back before it is tried again: it must not wait for its own locks.
    async fn commit_or_roll_back<T>(
        &self,
        session: Session,
        answer: PgResult<Done<T>>,
    ) -> PgResult<Done<T>> {
        match &answer {
            Ok(_) => session.end(),
            Err(PgError::Conflict(_)) => session.roll_back().await?,
            Err(_) => {}
        }
        answer
    }

    /// A look at the store that changes nothing, or one row at most: one statement in one round
    /// trip.
    async fn query_once(&self, role: Role, sql: Sql, params: Params<'_>) -> PgResult<Vec<Row>> {
        let session = self.unopened(role).await?;
        let (opened, rows, closed) = tokio::join!(
            biased;
            session.open_timeless(),
            session.all(sql, params),
            session.close(),
        );
        let rows = opened.and(rows)?;
        closed?;
        session.end();
        Ok(rows)
    }

    /// Tries a transaction again as long as it conflicts with others. When it has gone through,
    /// tells others what there is to see.
    async fn with_retries<T, F>(&self, call: impl FnMut() -> F) -> Result<T, StoreError>
    where
        F: Future<Output = PgResult<Done<T>>>,
    {
        let done = retry::with_retries(call, |conflict| self.repair(conflict)).await?;
        self.shared.guesses.learn(&done.learned);
        self.give_hints(&done.hints);
        Ok(done.answer)
    }

    /// Repairs what a conflict names, so that the same does not happen again.
    async fn repair(&self, conflict: Conflict) -> Result<(), StoreError> {
        let Shared { pool, ids, guesses, plans, .. } = &*self.shared;
        match conflict {
            Conflict::TenantHasLimit(tenants) => guesses.remember_limits(tenants),
            Conflict::WorkerChanged(changed) => guesses.remember_worker(changed.0, changed.1),
            Conflict::RunIdTaken => guesses.remember_taken_id(),
            Conflict::OutOfPositions(full) => guesses.remember_full(full),
            Conflict::WrongFailures(failures) => guesses.remember_failures(failures),
            Conflict::RunsChanged => ids.forget_runs(),
            Conflict::OtherDatabase(revision) => {
                identity::forget(ids, plans, revision);
            }
            Conflict::NoPositionRow(missing) => insert_missing_positions(pool, &missing).await?,
            Conflict::Deadlock(_) | Conflict::SettingsChanged | Conflict::RunGone => {}
        }
        Ok(())
    }

    fn give_hints(&self, earned: &HintSet) {
        if earned.is_empty() {
            return;
        }
        self.shared.wakes.hints.give_all(earned);
        self.shared.wakes.tell(earned);
    }
}

impl Store for PostgresStore {
    fn hints(&self) -> Hints {
        self.shared.wakes.hints.subscribe()
    }
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresStore").finish_non_exhaustive()
    }
}
