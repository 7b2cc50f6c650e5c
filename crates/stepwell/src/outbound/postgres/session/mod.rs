//! One transaction on one connection: what is sent in it, how it ends, and what is tried again.

pub(crate) mod error;
pub(crate) mod retry;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::task::Poll;

pub(crate) use error::{Conflict, PgError, PgResult};
pub(crate) use retry::{Done, Learned};
use stepwell_core::time::Timestamp;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Row, Statement};

use super::connection::patience::Patience;
use super::connection::pool::{Client, Pool};
use super::connection::role::Role;
use super::rows::{self, Param, corrupt};
use super::sql::{self, Sql};
use crate::ports::StoreError;

const READ_NOW: Sql = sql::SESSION.named("read_now");

/// Parameters of a statement.
pub(crate) type Params<'a> = &'a [Param<'a>];

/// The answer to a statement. Boxed, so that calls which join many of them stay small.
type Answer<'s, T> = Pin<Box<dyn Future<Output = PgResult<T>> + Send + 's>>;

/// One transaction. Dropped without a commit it is rolled back beside the caller, and only then is
/// its connection used again, so that nothing of it can leak into another.
///
/// Statements that are polled together (`tokio::join!` with `biased`) go out in the order in which
/// they are written, without waiting for each other's answers: one round trip for all of them.
/// Nothing that writes goes out with the begin: if that alone failed, nothing would undo the rest.
pub(crate) struct Session {
    client: Option<Client>,
    pool: Arc<Pool>,
    patience: Patience,
    /// An answer did not come in time, or was not waited for where it should have come soon, so the
    /// connection may be dark; or its server takes no writes any more.
    is_useless: AtomicBool,
    now_micros: AtomicI64,
    /// Which memory of this process was found to be of the database that answers; 0 for none.
    trusted: AtomicU64,
    /// Held by whoever prepares and sends next. It is handed on in the order of asking.
    sending: tokio::sync::Mutex<()>,
}

impl Session {
    /// A transaction that is yet to be [opened](Self::open), on a connection that is kept for this.
    pub(crate) async fn unopened(pool: &Arc<Pool>, role: Role) -> PgResult<Self> {
        match role {
            Role::Heartbeat | Role::Leader => Self::patient(pool, role, Patience::brief()).await,
            Role::Work | Role::Listen => Self::patient(pool, role, pool.patience).await,
        }
    }

    /// As [`unopened`](Self::unopened), for what takes a leader longer than a look.
    pub(crate) async fn unopened_duty(pool: &Arc<Pool>) -> PgResult<Self> {
        Self::patient(pool, Role::Leader, pool.patience).await
    }

    async fn patient(pool: &Arc<Pool>, role: Role, patience: Patience) -> PgResult<Self> {
        let client = patience.wait_for(pool.get(role)).await;
        Ok(Self {
            client: Some(client.ok_or_else(|| no_answer(patience))??),
            pool: Arc::clone(pool),
            patience,
            is_useless: AtomicBool::new(false),
            now_micros: AtomicI64::new(0),
            trusted: AtomicU64::new(0),
            sending: tokio::sync::Mutex::default(),
        })
    }

    /// Begins, and reads the store's time.
    pub(crate) async fn open(&self) -> PgResult<()> {
        self.open_as(&self.pool.begin).await
    }

    /// As [`open`](Self::open); all statements see one snapshot.
    pub(crate) async fn open_snapshot(&self) -> PgResult<()> {
        self.open_as("begin isolation level repeatable read read only").await
    }

    /// Begins, and asks a first question in the same round trip.
    pub(crate) async fn open_asking(&self, sql: Sql, params: Params<'_>) -> PgResult<Row> {
        let (begun, row) = tokio::join!(biased; self.open_timeless(), self.one(sql, params));
        begun?;
        Ok(row?.ok_or_else(|| corrupt("a question has no answer"))?)
    }

    /// What the process remembers in this memory holds in this transaction.
    pub(crate) fn trust(&self, generation: u64) {
        self.trusted.store(generation, Ordering::Release);
    }

    /// The memory that holds in this transaction.
    pub(crate) fn trusted(&self) -> Option<u64> {
        Some(self.trusted.load(Ordering::Acquire)).filter(|generation| *generation > 0)
    }

    /// Begins, for what needs no time or reads it along with something else. What is joined behind
    /// this goes out with it.
    pub(crate) async fn open_timeless(&self) -> PgResult<()> {
        self.pool.traffic.transaction();
        self.tell(&self.pool.begin).await
    }

    async fn open_as(&self, begin: &str) -> PgResult<()> {
        self.pool.traffic.transaction();
        let read_now = async {
            if self.pool.clock.is_some() {
                return Ok(0);
            }
            let row = self.one(READ_NOW, &[]).await?;
            PgResult::Ok(row.as_ref().map(rows::server::read_now).transpose()?.unwrap_or_default())
        };
        let (begun, now) = tokio::join!(biased; self.tell(begin), read_now);
        begun?;
        self.set_now(now?);
        Ok(())
    }

    /// The store's time of this transaction, once it is known: that of its begin, or that at which
    /// it had locked the runs that it decides about.
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.now_micros.load(Ordering::Relaxed))
    }

    /// The database's time, read along with something else; it never goes back. An injected clock
    /// knows better: it is asked when the answer is there, so that it waited for the same locks.
    pub(crate) fn set_now(&self, micros: i64) {
        let micros = self.pool.injected_now().unwrap_or(micros);
        self.now_micros.fetch_max(micros, Ordering::Relaxed);
    }

    /// The pool that the connection comes from.
    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Commits. What is joined before this goes out with it, and the commit counts only if all of
    /// that succeeded: a failed transaction is rolled back without a word.
    pub(crate) async fn close(&self) -> PgResult<()> {
        self.tell("commit").await
    }

    /// The transaction was [closed](Self::close): its connection goes back to the pool.
    pub(crate) fn end(mut self) {
        drop(self.client.take());
    }

    /// Gives up, and waits until nothing is locked any more.
    pub(crate) async fn roll_back(self) -> PgResult<()> {
        self.tell("rollback").await?;
        self.end();
        Ok(())
    }

    /// The rows of a statement.
    pub(crate) fn all<'s>(&'s self, sql: Sql, params: Params<'s>) -> Answer<'s, Vec<Row>> {
        Box::pin(self.answered(async move {
            let turn = self.sending.lock().await;
            let rows = match self.prepare(sql).await? {
                Prepared::Named(statement) => {
                    sent(self.client()?.query(&statement, &untyped(params)), turn).await
                }
                Prepared::Nameless(text) => {
                    sent(self.client()?.query_typed(text, &typed(params)), turn).await
                }
            };
            Ok(self.heard(rows)?)
        }))
    }

    /// The first row of a statement.
    pub(crate) async fn one(&self, sql: Sql, params: Params<'_>) -> PgResult<Option<Row>> {
        Ok(self.all(sql, params).await?.into_iter().next())
    }

    /// Runs a statement that gives no rows.
    pub(crate) fn run<'s>(&'s self, sql: Sql, params: Params<'s>) -> Answer<'s, ()> {
        Box::pin(self.answered(async move { Ok(self.execute(sql, params).await??) }))
    }

    /// Runs a statement that inserts rows. Says whether none of their keys was taken; if one was,
    /// the transaction has failed.
    pub(crate) fn insert<'s>(&'s self, sql: Sql, params: Params<'s>) -> Answer<'s, bool> {
        Box::pin(self.answered(async move {
            match self.execute(sql, params).await? {
                Ok(()) => Ok(true),
                Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => Ok(false),
                Err(error) => Err(error.into()),
            }
        }))
    }

    /// Runs a statement, and tells what the server says of it.
    async fn execute(
        &self,
        sql: Sql,
        params: Params<'_>,
    ) -> PgResult<Result<(), tokio_postgres::Error>> {
        let turn = self.sending.lock().await;
        let n_rows = match self.prepare(sql).await? {
            Prepared::Named(statement) => {
                sent(self.client()?.execute(&statement, &untyped(params)), turn).await
            }
            Prepared::Nameless(text) => {
                sent(self.client()?.execute_typed(text, &typed(params)), turn).await
            }
        };
        Ok(self.heard(n_rows).map(drop))
    }

    /// Sends a command as it is.
    fn tell<'s>(&'s self, command: &'s str) -> Answer<'s, ()> {
        Box::pin(self.answered(async move {
            let turn = self.sending.lock().await;
            Ok(self.heard(sent(self.client()?.batch_execute(command), turn).await)?)
        }))
    }

    /// Looks at what the server said. A primary may have become a standby without a word: then no
    /// connection to it is of use.
    fn heard<T>(
        &self,
        answer: Result<T, tokio_postgres::Error>,
    ) -> Result<T, tokio_postgres::Error> {
        let state = answer.as_ref().err().and_then(tokio_postgres::Error::code);
        if state.is_some_and(takes_no_writes) {
            self.is_useless.store(true, Ordering::Release);
        }
        answer
    }

    /// An answer of the server, unless it does not come in time.
    async fn answered<T>(&self, answer: impl Future<Output = PgResult<T>>) -> PgResult<T> {
        let waiting = Waiting(self);
        let answer = self.patience.wait_for(answer).await;
        std::mem::forget(waiting);
        answer.unwrap_or_else(|| {
            self.is_useless.store(true, Ordering::Release);
            Err(no_answer(self.patience).into())
        })
    }

    /// A statement of this connection. Behind a pooler the next transaction may be on another
    /// one, and a name that stays behind there is in everybody's way: there it gets none.
    async fn prepare(&self, sql: Sql) -> PgResult<Prepared<'_>> {
        self.pool.traffic.statement();
        let text = self.pool.texts.of(sql);
        if self.pool.is_pooled {
            return Ok(Prepared::Nameless(text));
        }
        Ok(Prepared::Named(self.client()?.prepare_cached(text).await?))
    }

    fn client(&self) -> Result<&Client, StoreError> {
        self.client.as_ref().ok_or_else(|| corrupt("the transaction has ended"))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let Some(client) = self.client.take() else { return };
        if self.is_useless.load(Ordering::Acquire) {
            // Taken out of the pool, the connection closes and the server rolls back.
            drop(Client::take(client));
            self.pool.discard_idle();
            return;
        }
        self.pool.driver.spawn(async move {
            let rolled_back = client.batch_execute("rollback");
            if !matches!(Patience::brief().wait_for(rolled_back).await, Some(Ok(()))) {
                drop(Client::take(client));
            }
        });
    }
}

/// A statement that can be sent.
enum Prepared<'s> {
    /// The server knows it by a name, for as long as the connection lasts.
    Named(Statement),
    /// It is sent whole.
    Nameless(&'s str),
}

fn untyped(params: Params<'_>) -> Vec<&(dyn ToSql + Sync)> {
    params.iter().map(|param| *param as &(dyn ToSql + Sync)).collect()
}

fn typed(params: Params<'_>) -> Vec<(&(dyn ToSql + Sync), Type)> {
    params.iter().map(|param| (*param as &(dyn ToSql + Sync), param.sql_type())).collect()
}

/// Somebody waits for an answer. Dropped, they have given it up: where answers come soon or not at
/// all, the connection is not used again; elsewhere many a reader goes away without a reason.
struct Waiting<'s>(&'s Session);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Patience::Until(_) = self.0.patience {
            self.0.is_useless.store(true, Ordering::Release);
        }
    }
}

/// Whether a server that answers so is a standby by now: it writes nothing, or does not even begin
/// what may write.
fn takes_no_writes(state: &SqlState) -> bool {
    [SqlState::READ_ONLY_SQL_TRANSACTION, SqlState::FEATURE_NOT_SUPPORTED].contains(state)
}

fn no_answer(patience: Patience) -> StoreError {
    StoreError::Unavailable { operation: "postgres", why: patience.words() }
}

/// Sends a statement, hands the turn to send on, and waits for the answer.
async fn sent<T>(
    answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    turn: tokio::sync::MutexGuard<'_, ()>,
) -> Result<T, tokio_postgres::Error> {
    let mut answer = std::pin::pin!(answer);
    // The first poll sends.
    let first = std::future::poll_fn(|cx| Poll::Ready(answer.as_mut().poll(cx))).await;
    drop(turn);
    match first {
        Poll::Ready(answer) => answer,
        Poll::Pending => answer.await,
    }
}

/// The first error of statements that went out together: those after it only say that the
/// transaction has failed.
pub(crate) fn first_error<const N: usize>(answers: [PgResult<()>; N]) -> PgResult<()> {
    answers.into_iter().find(Result::is_err).unwrap_or(Ok(()))
}
