use std::sync::Arc;

use async_trait::async_trait;
use stepwell_core::id::DefinitionId;
use stepwell_core::workflow::Definition;

use super::writer::Transaction;
use super::{SqliteStore, rows};
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
        self.read(move |transaction| transaction.definitions.find(transaction.file, id)).await
    }

    async fn latest(&self, workflow: &str) -> Result<Option<Arc<StoredDefinition>>, StoreError> {
        let workflow = workflow.to_owned();
        self.read(move |transaction| {
            let known = rows::definition::of_workflow(transaction.file, &workflow)?;
            Ok(known.into_iter().next_back().map(Arc::new))
        })
        .await
    }
}

fn register(
    transaction: &mut Transaction<'_, '_>,
    definition: Definition,
) -> Result<Arc<StoredDefinition>, StoreError> {
    let file = transaction.file;
    let known = rows::definition::of_workflow(file, &definition.workflow)?;
    let version_max = known.last().map_or(0, |stored| stored.version);
    let is_same = |stored: &&StoredDefinition| stored.definition.signature == definition.signature;
    if let Some(stored) = known.iter().find(is_same) {
        return refresh(transaction, stored.clone(), &definition);
    }
    let version = definition.version.unwrap_or(version_max + 1);
    if known.iter().any(|stored| stored.version == version) {
        return Err(StoreError::version_conflict(&definition, version));
    }
    let id = rows::definition::insert(file, version, &definition)?;
    Ok(Arc::new(StoredDefinition { id, version, definition }))
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
        rows::definition::update(transaction.file, &stored)?;
        // What is read next is fresh; should this transaction not stand, that reads the old.
        transaction.definitions.forget(stored.id);
    }
    Ok(Arc::new(stored))
}
