//! One transaction, as the calls of the store see it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use stepwell_core::id::{DefinitionId, Queue};
use stepwell_core::time::Timestamp;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement};

use super::error::corrupt;
use super::pool::Client;
use super::{Shared, rows, statements};
use crate::ports::{Hint, StoreError, StoredDefinition};

/// Definitions that were read before.
pub(super) type DefinitionCache = Arc<Mutex<HashMap<DefinitionId, Arc<StoredDefinition>>>>;

/// Parameters of a statement.
pub(super) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// The answer to a statement. Boxed, so that calls which join many of them stay small.
type Answer<'t, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 't>>;

/// One transaction. Dropped without a commit it is rolled back beside the caller, and only then is
/// its connection used again, so that nothing of it can leak into another.
///
/// Statements that are polled together (`tokio::join!` with `biased`) go out in the order in which
/// they are written, without waiting for each other's answers: one round trip for all of them.
/// Nothing that writes goes out with the begin: if that alone failed, nothing would undo the rest.
pub(super) struct Transaction {
    client: Option<Client>,
    shared: Arc<Shared>,
    /// The store's time of this transaction.
    pub(super) now: Timestamp,
    earned_hints: Vec<Hint>,
    /// Held by whoever prepares and sends next. It is handed on in the order of asking.
    sending: tokio::sync::Mutex<()>,
}

impl Transaction {
    /// A transaction that is yet to be [opened](Self::open).
    pub(super) fn on(client: Client, shared: &Arc<Shared>) -> Self {
        Self {
            client: Some(client),
            shared: Arc::clone(shared),
            now: Timestamp::EPOCH,
            earned_hints: Vec::new(),
            sending: tokio::sync::Mutex::default(),
        }
    }

    pub(super) async fn begin(client: Client, shared: &Arc<Shared>) -> Result<Self, StoreError> {
        let mut transaction = Self::on(client, shared);
        transaction.now = transaction.open().await?;
        Ok(transaction)
    }

    pub(super) async fn begin_snapshot(
        client: Client,
        shared: &Arc<Shared>,
    ) -> Result<Self, StoreError> {
        let mut transaction = Self::on(client, shared);
        let begin = "begin isolation level repeatable read read only";
        transaction.now = transaction.open_as(begin).await?;
        Ok(transaction)
    }

    /// Begins, and gives the store's time. What is joined behind this goes out with it.
    pub(super) async fn open(&self) -> Result<Timestamp, StoreError> {
        self.open_as(&self.shared.pool.begin).await
    }

    /// Begins, for what needs no time or reads it along with something else.
    pub(super) async fn open_timeless(&self) -> Result<(), StoreError> {
        self.shared.traffic.transaction();
        self.tell(&self.shared.pool.begin).await
    }

    /// As [`open`](Self::open), and holds still what live workers serve.
    pub(super) async fn open_in_service(&self) -> Result<Timestamp, StoreError> {
        self.shared.traffic.transaction();
        let params: Params<'_> = &[&self.shared.pool.schema];
        let (begun, shared) = tokio::join!(
            biased;
            self.tell(&self.shared.pool.begin),
            self.one(statements::SHARE_SERVICE, params),
        );
        begun?;
        let micros = shared?.map(|row| row.try_get(0)).transpose()?;
        let injected = self.shared.pool.clock.as_ref().map(|clock| clock.now());
        Ok(injected.unwrap_or_else(|| Timestamp::from_micros(micros.unwrap_or_default())))
    }

    async fn open_as(&self, begin: &str) -> Result<Timestamp, StoreError> {
        self.shared.traffic.transaction();
        let (begun, now) = tokio::join!(biased; self.tell(begin), self.read_now());
        begun.and(now)
    }

    async fn read_now(&self) -> Result<Timestamp, StoreError> {
        if let Some(clock) = &self.shared.pool.clock {
            return Ok(clock.now());
        }
        let row = self.one(statements::READ_NOW, &[]).await?;
        let micros = row.map(|row| row.try_get(0)).transpose()?;
        Ok(Timestamp::from_micros(micros.unwrap_or_default()))
    }

    /// Commits and gives what others should be told.
    pub(super) async fn commit(self) -> Result<Vec<Hint>, StoreError> {
        self.close().await?;
        Ok(self.ended())
    }

    /// Commits. What is joined before this goes out with it, and the commit counts only if all of
    /// that succeeded: a failed transaction is rolled back without a word.
    pub(super) async fn close(&self) -> Result<(), StoreError> {
        self.tell("commit").await
    }

    /// The transaction was [closed](Self::close). Gives what others should be told.
    pub(super) fn ended(mut self) -> Vec<Hint> {
        // Back to the pool.
        drop(self.client.take());
        std::mem::take(&mut self.earned_hints)
    }

    /// Gives up, and waits until nothing is locked any more.
    pub(super) async fn roll_back(mut self) -> Result<(), StoreError> {
        self.tell("rollback").await?;
        drop(self.client.take());
        Ok(())
    }

    fn client(&self) -> Result<&Client, StoreError> {
        self.client.as_ref().ok_or_else(|| corrupt("the transaction has ended"))
    }

    /// The rows of a statement.
    pub(super) fn all<'t>(&'t self, sql: &'static str, params: Params<'t>) -> Answer<'t, Vec<Row>> {
        Box::pin(async move {
            let turn = self.sending.lock().await;
            let statement = self.prepare(sql).await?;
            Ok(sent(self.client()?.query(&statement, params), turn).await?)
        })
    }

    /// Runs a statement that inserts rows. Says whether none of their keys was taken; if one was,
    /// the transaction has failed.
    pub(super) fn insert<'t>(&'t self, sql: &'static str, params: Params<'t>) -> Answer<'t, bool> {
        Box::pin(async move {
            let turn = self.sending.lock().await;
            let statement = self.prepare(sql).await?;
            match sent(self.client()?.execute(&statement, params), turn).await {
                Ok(_) => Ok(true),
                Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => Ok(false),
                Err(error) => Err(error.into()),
            }
        })
    }

    /// The first row of a statement.
    pub(super) async fn one(
        &self,
        sql: &'static str,
        params: Params<'_>,
    ) -> Result<Option<Row>, StoreError> {
        Ok(self.all(sql, params).await?.into_iter().next())
    }

    /// Runs a statement that gives no rows.
    pub(super) fn run<'t>(&'t self, sql: &'static str, params: Params<'t>) -> Answer<'t, ()> {
        Box::pin(async move {
            let turn = self.sending.lock().await;
            let statement = self.prepare(sql).await?;
            sent(self.client()?.execute(&statement, params), turn).await?;
            Ok(())
        })
    }

    /// Sends a command as it is.
    fn tell<'t>(&'t self, command: &'t str) -> Answer<'t, ()> {
        Box::pin(async move {
            let turn = self.sending.lock().await;
            Ok(sent(self.client()?.batch_execute(command), turn).await?)
        })
    }

    /// A statement of this connection. Behind a pooler the next transaction may be on another
    /// one, so there it lives as short as the caller holds it.
    async fn prepare(&self, sql: &'static str) -> Result<Statement, StoreError> {
        self.shared.traffic.statement();
        let (client, sql) = (self.client()?, self.shared.pool.sql(sql));
        if self.shared.pool.is_pooled {
            return Ok(client.prepare(&sql).await?);
        }
        Ok(client.prepare_cached(&sql).await?)
    }

    /// Holds still what live workers serve, so that no task is parked behind the back of a worker
    /// that registers. Called before anything else is locked.
    pub(super) async fn share_service(&self) -> Result<(), StoreError> {
        self.all(statements::SHARE_SERVICE, &[&self.shared.pool.schema]).await.map(drop)
    }

    /// Waits for everybody who puts tasks into line. Called before anything else is locked.
    pub(super) async fn change_service(&self) -> Result<(), StoreError> {
        self.all(statements::CHANGE_SERVICE, &[&self.shared.pool.schema]).await.map(drop)
    }

    pub(super) fn earn(&mut self, hint: Hint) {
        if !self.earned_hints.contains(&hint) {
            self.earned_hints.push(hint);
        }
    }

    /// A definition. Policies may be changed by other processes, so what is known is only kept
    /// within this one until it registers anew; structure never changes.
    pub(super) async fn definition(
        &self,
        id: DefinitionId,
    ) -> Result<Arc<StoredDefinition>, StoreError> {
        let found = self.find_definition(id).await?;
        found.ok_or_else(|| corrupt(format!("definition {} is missing", id.0)))
    }

    pub(super) async fn find_definition(
        &self,
        id: DefinitionId,
    ) -> Result<Option<Arc<StoredDefinition>>, StoreError> {
        if let Some(known) = self.cache().get(&id) {
            return Ok(Some(Arc::clone(known)));
        }
        let number = rows::int32(id.0);
        let row = self.one(statements::READ_DEFINITION, &[&number]).await?;
        let Some(row) = row else { return Ok(None) };
        let stored = Arc::new(rows::definition(&row)?);
        self.cache().insert(id, Arc::clone(&stored));
        Ok(Some(stored))
    }

    /// Those of these definitions that were read before.
    pub(super) fn known_definitions(
        &self,
        ids: &BTreeSet<DefinitionId>,
    ) -> BTreeMap<DefinitionId, Arc<StoredDefinition>> {
        self.shared.known_definitions(ids)
    }

    /// Whether starts lately named runs that were there already.
    pub(super) fn ids_repeat(&self) -> &AtomicBool {
        &self.shared.ids_repeat
    }

    /// Rows that do not change.
    pub(super) fn known(&self) -> std::sync::MutexGuard<'_, super::known::Known> {
        self.shared.known()
    }

    /// What was taken from queues that may not be passed yet.
    pub(super) fn passing(&self) -> std::sync::MutexGuard<'_, super::passed::Passing> {
        self.shared.passing()
    }

    /// Tenants that were seen to be new to a queue.
    pub(super) fn strangers(&self) -> std::sync::MutexGuard<'_, BTreeSet<(u32, Queue)>> {
        self.shared.strangers()
    }

    /// Tenants that were seen to have a limit.
    pub(super) fn limited(&self) -> std::sync::MutexGuard<'_, HashSet<u32>> {
        self.shared.limited.lock().expect("no holder of the lock panics")
    }

    pub(super) fn cache(
        &self,
    ) -> std::sync::MutexGuard<'_, HashMap<DefinitionId, Arc<StoredDefinition>>> {
        self.shared.definitions.lock().expect("no holder of the lock panics")
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let Some(client) = self.client.take() else { return };
        self.shared.pool.driver.spawn(async move {
            if client.batch_execute("rollback").await.is_err() {
                // Taken out of the pool, the connection closes and the server rolls back.
                drop(Client::take(client));
            }
        });
    }
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
pub(super) fn first_error<const N: usize>(
    answers: [Result<(), StoreError>; N],
) -> Result<(), StoreError> {
    answers.into_iter().find(Result::is_err).unwrap_or(Ok(()))
}
