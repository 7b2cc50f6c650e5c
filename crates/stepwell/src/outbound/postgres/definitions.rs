use std::sync::Arc;

use async_trait::async_trait;
use stepwell_core::id::DefinitionId;
use stepwell_core::workflow::Definition;

use super::notify::News;
use super::rows::{self, count, int32, json};
use super::transaction::Transaction;
use super::{PostgresStore, statements};
use crate::ports::{Definitions, StoreError, StoredDefinition};

#[async_trait]
impl Definitions for PostgresStore {
    async fn register(&self, definition: &Definition) -> Result<Arc<StoredDefinition>, StoreError> {
        self.with_retries(|| self.register_once_definition(definition)).await
    }

    async fn definition(
        &self,
        id: DefinitionId,
    ) -> Result<Option<Arc<StoredDefinition>>, StoreError> {
        let transaction = self.begin().await?;
        let found = transaction.find_definition(id).await?;
        self.commit_transaction(transaction).await?;
        Ok(found)
    }

    async fn latest(&self, workflow: &str) -> Result<Option<Arc<StoredDefinition>>, StoreError> {
        let transaction = self.begin().await?;
        let found = of_workflow(&transaction, workflow).await?.pop();
        self.commit_transaction(transaction).await?;
        Ok(found.map(Arc::new))
    }
}

impl PostgresStore {
    async fn register_once_definition(
        &self,
        definition: &Definition,
    ) -> Result<Arc<StoredDefinition>, StoreError> {
        let transaction = self.begin().await?;
        transaction.run(statements::LOCK_DEFINITIONS, &[]).await?;
        let (stored, is_replaced) = register(&transaction, definition).await?;
        self.commit_transaction(transaction).await?;
        if is_replaced {
            self.shared.outbox.tell(News::POLICIES);
        }
        let mut known = self.shared.definitions.lock().expect("no holder of the lock panics");
        known.insert(stored.id, Arc::clone(&stored));
        Ok(stored)
    }
}

/// The definitions of a workflow, oldest first.
async fn of_workflow(
    transaction: &Transaction,
    workflow: &str,
) -> Result<Vec<StoredDefinition>, StoreError> {
    let rows = transaction.all(statements::READ_DEFINITIONS, &[&workflow]).await?;
    rows::read_all(&rows, rows::definition)
}

/// Stores a definition, or takes over its policies; says whether others were replaced.
async fn register(
    transaction: &Transaction,
    definition: &Definition,
) -> Result<(Arc<StoredDefinition>, bool), StoreError> {
    let known = of_workflow(transaction, &definition.workflow).await?;
    let version_max = known.last().map_or(0, |stored| stored.version);
    let is_same = |stored: &&StoredDefinition| stored.definition.signature == definition.signature;
    if let Some(stored) = known.iter().find(is_same) {
        return refresh(transaction, stored.clone(), definition).await;
    }
    let version = definition.version.unwrap_or(version_max + 1);
    if known.iter().any(|stored| stored.version == version) {
        return Err(StoreError::version_conflict(definition, version));
    }
    let (signature, body) = (definition.signature.0.as_slice(), json(definition)?);
    let params: super::transaction::Params<'_> =
        &[&definition.workflow, &int32(version), &signature, &body];
    let row = transaction.one(statements::INSERT_DEFINITION, params).await?;
    let id = DefinitionId(row.map(|row| count(&row, 0)).transpose()?.unwrap_or_default());
    Ok((Arc::new(StoredDefinition { id, version, definition: definition.clone() }), false))
}

/// Takes over the given policies into a stored structure.
async fn refresh(
    transaction: &Transaction,
    mut stored: StoredDefinition,
    definition: &Definition,
) -> Result<(Arc<StoredDefinition>, bool), StoreError> {
    if definition.version.is_some_and(|version| version != stored.version) {
        return Err(StoreError::version_conflict(definition, stored.version));
    }
    let policy = stored.definition.policy_of(definition);
    let is_replaced = policy != stored.definition.policy;
    if is_replaced {
        stored.definition.policy = policy;
        let (id, body) = (int32(stored.id.0), json(&stored.definition)?);
        transaction.run(statements::UPDATE_DEFINITION, &[&id, &body]).await?;
    }
    Ok((Arc::new(stored), is_replaced))
}
