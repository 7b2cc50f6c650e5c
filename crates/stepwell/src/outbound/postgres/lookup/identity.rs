//! Whether what a process remembers is about the database that answers.
//!
//! A database may be restored from a dump, made anew, or be taken over by a standby that lacks the
//! last commits: then numbers stand for something else, or for nothing. So every transaction that
//! uses what is remembered reads along what tells: the revision of the definitions, which is drawn
//! by chance whenever one of them changes, and the mark of the last tenant that is remembered.
//! Tenants are only ever added, one after the other, so whoever finds that one finds all before it.

use stepwell_core::id::Mark;

use super::super::rows::server::{self, Identity};
use super::super::rows::{Param, int32};
use super::super::session::{Conflict, PgResult};
use super::super::sql::{self, Sql};
use super::{IdCache, IdLookup, PlanCache};

const READ_IDENTITY: Sql = sql::SESSION.named("read_identity");
const LOCK_SERVING_SHARED: Sql = sql::WORKER.named("lock_serving_shared");

/// What a process believes of the database. Taken before anything remembered is used.
#[derive(Clone, Copy)]
pub(crate) struct Beliefs {
    /// Which memory this is: it changes whenever all is forgotten.
    generation: u64,
    /// That of the definitions; `None` if none was read yet.
    revision: Option<i64>,
    last_tenant: Option<(u32, Mark)>,
}

impl Beliefs {
    pub(crate) fn of(ids: &IdCache, plans: &PlanCache) -> Self {
        let (generation, revision) = plans.generation();
        Self { generation, revision, last_tenant: ids.last_tenant() }
    }

    /// The number of the last tenant that is remembered, as statements take it.
    pub(crate) fn tenant_no(&self) -> i32 {
        self.last_tenant.map_or(-1, |(no, _)| int32(no))
    }

    /// Whether nothing was forgotten between these and the others.
    pub(crate) fn is_same_memory(&self, other: Self) -> bool {
        self.generation == other.generation
    }

    fn are_right(&self, found: Identity) -> bool {
        let mark = self.last_tenant.map(|(_, mark)| mark);
        self.revision == Some(found.revision) && (mark.is_none() || mark == found.tenant_mark)
    }
}

impl IdLookup<'_> {
    /// Opens the transaction and reads its time. What is remembered of another database is
    /// forgotten; nothing of it may have been used yet.
    pub(crate) async fn open(&self) -> PgResult<()> {
        let tenant_no: Param<'_> = &self.beliefs.tenant_no();
        let row = self.session.open_asking(READ_IDENTITY, &[tenant_no]).await?;
        let found = server::read_identity(&row)?;
        self.session.set_now(found.now);
        let mut generation = self.beliefs.generation;
        if !self.beliefs.are_right(found) {
            generation = self.forget(found.revision);
        }
        self.session.trust(generation);
        Ok(())
    }

    /// Opens the transaction, reads its time and holds still what live workers serve, in one round
    /// trip. What this process remembers is used from here on, or was before.
    pub(crate) async fn open_serving(&self) -> PgResult<()> {
        let (schema, tenant_no) = (&self.session.pool().schema, self.beliefs.tenant_no());
        let row = self.session.open_asking(LOCK_SERVING_SHARED, &[schema, &tenant_no]).await?;
        let found = server::read_identity(&row)?;
        self.session.set_now(found.now);
        self.check(found)
    }

    /// As [`open_serving`](Self::open_serving), for what reads the time later.
    pub(crate) async fn begin_serving(&self) -> PgResult<()> {
        let (schema, tenant_no) = (&self.session.pool().schema, self.beliefs.tenant_no());
        let row = self.session.open_asking(LOCK_SERVING_SHARED, &[schema, &tenant_no]).await?;
        self.check(server::read_identity(&row)?)
    }

    /// Holds still what live workers serve, so that no task is parked behind the back of a worker
    /// that registers. Called before anything else is locked.
    pub(crate) async fn lock_serving_shared(&self) -> PgResult<()> {
        let (schema, tenant_no) = (&self.session.pool().schema, self.beliefs.tenant_no());
        let row = self.session.one(LOCK_SERVING_SHARED, &[schema, &tenant_no]).await?;
        row.as_ref().map_or(Ok(()), |row| self.check(server::read_identity(row)?))
    }

    /// Makes sure that this is the database that is remembered.
    pub(crate) fn check(&self, found: Identity) -> PgResult<()> {
        if !self.beliefs.are_right(found) {
            return Err(Conflict::OtherDatabase(found.revision).into());
        }
        self.session.trust(self.beliefs.generation);
        Ok(())
    }

    /// Forgets all that is remembered, since definitions have this revision by now, or tenants are
    /// others. Says which memory the next one is.
    pub(crate) fn forget(&self, revision: i64) -> u64 {
        forget(self.cache, self.plans, revision)
    }

    /// Whether what is remembered holds in this transaction.
    pub(super) fn is_trusted(&self) -> bool {
        self.session.trusted() == Some(self.plans.generation().0)
    }
}

/// As [`IdLookup::forget`].
pub(crate) fn forget(ids: &IdCache, plans: &PlanCache, revision: i64) -> u64 {
    let generation = plans.forget(revision);
    ids.forget();
    generation
}
