use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::params;
use stepwell_core::id::DefinitionId;
use stepwell_core::workflow::Definition;

use super::rows::{self, json};
use super::transaction::Transaction;
use super::{SqliteStore, statements};
use crate::ports::{Definitions, StoreError, StoredDefinition};

#[async_trait]
impl Definitions for SqliteStore {
    async fn register(&self, definition: &Definition) -> Result<Arc<StoredDefinition>, StoreError> {
        let definition = definition.clone();
        self.write(move |transaction| register(transaction, definition)).await
    }

    async fn definition(
        &self,
        id: DefinitionId,
    ) -> Result<Option<Arc<StoredDefinition>>, StoreError> {
        self.read(move |transaction| transaction.find_definition(id)).await
    }

    async fn latest(&self, workflow: &str) -> Result<Option<Arc<StoredDefinition>>, StoreError> {
        let workflow = workflow.to_owned();
        self.read(move |transaction| Ok(of_workflow(transaction, &workflow)?.pop().map(Arc::new)))
            .await
    }
}

/// The definitions of a workflow, oldest first.
fn of_workflow(
    transaction: &Transaction<'_, '_>,
    workflow: &str,
) -> Result<Vec<StoredDefinition>, StoreError> {
    transaction.all(statements::READ_DEFINITIONS, [workflow], rows::definition)
}

fn register(
    transaction: &mut Transaction<'_, '_>,
    definition: Definition,
) -> Result<Arc<StoredDefinition>, StoreError> {
    let known = of_workflow(transaction, &definition.workflow)?;
    let version_max = known.last().map_or(0, |stored| stored.version);
    let is_same = |stored: &&StoredDefinition| stored.definition.signature == definition.signature;
    if let Some(stored) = known.iter().find(is_same) {
        return refresh(transaction, stored.clone(), &definition);
    }
    let version = definition.version.unwrap_or(version_max + 1);
    if known.iter().any(|stored| stored.version == version) {
        return Err(StoreError::version_conflict(&definition, version));
    }
    let signature = definition.signature.0;
    let body = json(&definition)?;
    let id = transaction.first(
        statements::INSERT_DEFINITION,
        params![definition.workflow, version, signature, body],
        |row| rows::count(row, 0),
    )?;
    let id = DefinitionId(id.unwrap_or_default());
    let stored = Arc::new(StoredDefinition { id, version, definition });
    Ok(stored)
}

/// Takes over the given policies into a stored structure.
fn refresh(
    transaction: &mut Transaction<'_, '_>,
    mut stored: StoredDefinition,
    definition: &Definition,
) -> Result<Arc<StoredDefinition>, StoreError> {
    if definition.version.is_some_and(|version| version != stored.version) {
        return Err(StoreError::version_conflict(definition, stored.version));
    }
    let policy = stored.definition.policy_of(definition);
    if policy != stored.definition.policy {
        stored.definition.policy = policy;
        let body = json(&stored.definition)?;
        transaction.run(statements::UPDATE_DEFINITION, params![stored.id.0, body])?;
        // What is read next is fresh; should this transaction not stand, that reads the old.
        transaction.cache().remove(&stored.id);
    }
    Ok(Arc::new(stored))
}
