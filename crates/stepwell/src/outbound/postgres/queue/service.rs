//! What live workers serve: held still by all who enqueue, changed by workers that come and go.

use super::super::rows;
use super::super::rows::queue::read;
use super::super::rows::read_all;
use super::super::session::{PgResult, Session};
use super::super::sql::{self, Sql};
use super::QueueSet;
use super::positions::Arrivals;

const LOCK_SERVING_SHARED: Sql = sql::WORKER.named("lock_serving_shared");
const LOCK_SERVING_EXCLUSIVE: Sql = sql::WORKER.named("lock_serving_exclusive");
const UNPARK: Sql = sql::QUEUE.named("unpark");
const WITHDRAW_UNSERVED: Sql = sql::QUEUE.named("withdraw_unserved");

/// Opens a transaction, reads its time and holds still what live workers serve, in one round trip.
pub(crate) async fn open_serving(session: &Session) -> PgResult<()> {
    let now = open_and_share(session).await?;
    session.set_now(now);
    Ok(())
}

/// As [`open_serving`], for what reads the time later.
pub(crate) async fn begin_serving(session: &Session) -> PgResult<()> {
    open_and_share(session).await.map(drop)
}

async fn open_and_share(session: &Session) -> PgResult<i64> {
    let schema = &session.pool().schema;
    let params: [rows::Param<'_>; 1] = [schema];
    let (begun, shared) = tokio::join!(
        biased;
        session.open_timeless(),
        session.one(LOCK_SERVING_SHARED, &params),
    );
    begun?;
    let now = shared?.as_ref().map(rows::server::read_now).transpose()?;
    Ok(now.unwrap_or_default())
}

/// Holds still what live workers serve, so that no task is parked behind the back of a worker
/// that registers. Called before anything else is locked.
pub(crate) async fn lock_serving_shared(session: &Session) -> PgResult<()> {
    session.all(LOCK_SERVING_SHARED, &[&session.pool().schema]).await.map(drop)
}

/// Waits for everybody who enqueues tasks. Called before anything else is locked.
pub(crate) async fn lock_serving_exclusive(session: &Session) -> PgResult<()> {
    session.all(LOCK_SERVING_EXCLUSIVE, &[&session.pool().schema]).await.map(drop)
}

impl QueueSet<'_> {
    /// Parked tasks that are served by now are enqueued again, stamped anew, and ready ones that
    /// nobody serves any more are parked.
    pub(crate) async fn park_and_unpark(&self) -> PgResult<()> {
        let back = self.session.all(UNPARK, &[]).await?;
        let mut back = read_all(&back, read)?;
        back.sort_by_key(|task| task.number);
        self.enqueue(back, Arrivals::UnderWay).await?;
        let unserved = self.session.all(WITHDRAW_UNSERVED, &[]).await?;
        let unserved = read_all(&unserved, read)?;
        self.return_positions(&unserved).await?;
        let gone: Vec<_> = unserved.iter().map(|task| (task.run, task.node)).collect();
        self.enqueue(unserved, Arrivals::UnderWay).await?;
        self.free_admissions(&gone).await.map(drop)
    }
}
