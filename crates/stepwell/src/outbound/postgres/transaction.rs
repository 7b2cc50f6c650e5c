//! One transaction, as the calls of the store see it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use stepwell_core::id::DefinitionId;
use stepwell_core::time::Timestamp;
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

/// One transaction. Dropped without a commit, its connection is closed and not used again, so
/// that nothing of it can leak into another.
pub(super) struct Transaction {
    client: Option<Client>,
    shared: Arc<Shared>,
    /// The store's time of this transaction.
    pub(super) now: Timestamp,
    earned_hints: Vec<Hint>,
}

impl Transaction {
    pub(super) async fn begin(client: Client, shared: &Arc<Shared>) -> Result<Self, StoreError> {
        Self::begin_as(&shared.pool.begin, client, shared).await
    }

    pub(super) async fn begin_snapshot(
        client: Client,
        shared: &Arc<Shared>,
    ) -> Result<Self, StoreError> {
        Self::begin_as("begin isolation level repeatable read read only", client, shared).await
    }

    async fn begin_as(
        begin: &str,
        client: Client,
        shared: &Arc<Shared>,
    ) -> Result<Self, StoreError> {
        shared.traffic.transaction();
        client.batch_execute(begin).await?;
        let mut transaction = Self {
            client: Some(client),
            shared: Arc::clone(shared),
            now: Timestamp::EPOCH,
            earned_hints: Vec::new(),
        };
        transaction.now = if let Some(clock) = &shared.pool.clock {
            clock.now()
        } else {
            let row = transaction.one(statements::READ_NOW, &[]).await?;
            row.map_or(Timestamp::EPOCH, |row| Timestamp::from_micros(row.get(0)))
        };
        Ok(transaction)
    }

    /// Commits and gives what others should be told.
    pub(super) async fn commit(mut self) -> Result<Vec<Hint>, StoreError> {
        self.client()?.batch_execute("commit").await?;
        // Back to the pool instead of being closed.
        drop(self.client.take());
        Ok(std::mem::take(&mut self.earned_hints))
    }

    fn client(&self) -> Result<&Client, StoreError> {
        self.client.as_ref().ok_or_else(|| corrupt("the transaction has ended"))
    }

    /// The rows of a statement.
    pub(super) async fn all(
        &self,
        sql: &'static str,
        params: Params<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        let statement = self.prepare(sql).await?;
        Ok(self.client()?.query(&statement, params).await?)
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
    pub(super) async fn run(
        &self,
        sql: &'static str,
        params: Params<'_>,
    ) -> Result<(), StoreError> {
        let statement = self.prepare(sql).await?;
        self.client()?.execute(&statement, params).await?;
        Ok(())
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

    pub(super) fn cache(
        &self,
    ) -> std::sync::MutexGuard<'_, HashMap<DefinitionId, Arc<StoredDefinition>>> {
        self.shared.definitions.lock().expect("no holder of the lock panics")
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            // Taken out of the pool, the connection closes and the server rolls back.
            drop(Client::take(client));
        }
    }
}
