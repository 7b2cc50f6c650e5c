use std::sync::Arc;

use async_trait::async_trait;
use stepwell_core::id::DefinitionId;
use stepwell_core::workflow::Definition;

use super::MemoryStore;
use super::tables::Tables;
use crate::ports::{Definitions, StoreError, StoredDefinition};

#[async_trait]
impl Definitions for MemoryStore {
    async fn register(&self, definition: &Definition) -> Result<Arc<StoredDefinition>, StoreError> {
        self.transact(|tables| register(tables, definition))
    }

    async fn definition(
        &self,
        id: DefinitionId,
    ) -> Result<Option<Arc<StoredDefinition>>, StoreError> {
        Ok(self.transact(|tables| tables.definitions.get(id.0 as usize).cloned()))
    }

    async fn latest(&self, workflow: &str) -> Result<Option<Arc<StoredDefinition>>, StoreError> {
        Ok(self.transact(|tables| {
            let of_workflow = |s: &&Arc<StoredDefinition>| s.definition.workflow == workflow;
            tables.definitions.iter().filter(of_workflow).max_by_key(|s| s.version).cloned()
        }))
    }
}

fn register(
    tables: &mut Tables,
    definition: &Definition,
) -> Result<Arc<StoredDefinition>, StoreError> {
    let of_workflow = |s: &&mut Arc<StoredDefinition>| s.definition.workflow == definition.workflow;
    let mut version_max = 0;
    for stored in tables.definitions.iter_mut().filter(of_workflow) {
        version_max = version_max.max(stored.version);
        if stored.definition.signature == definition.signature {
            return refresh(stored, definition);
        }
        if definition.version == Some(stored.version) {
            return Err(StoreError::version_conflict(definition, stored.version));
        }
    }
    let stored = Arc::new(StoredDefinition {
        id: DefinitionId(u32::try_from(tables.definitions.len()).unwrap_or(u32::MAX)),
        version: definition.version.unwrap_or(version_max + 1),
        definition: definition.clone(),
    });
    tables.definitions.push(Arc::clone(&stored));
    Ok(stored)
}

/// Takes over the given policies into a stored structure.
fn refresh(
    stored: &mut Arc<StoredDefinition>,
    definition: &Definition,
) -> Result<Arc<StoredDefinition>, StoreError> {
    if definition.version.is_some_and(|version| version != stored.version) {
        return Err(StoreError::version_conflict(definition, stored.version));
    }
    let policy = stored.definition.policy_of(definition);
    if policy != stored.definition.policy {
        let mut fresh = (**stored).clone();
        fresh.definition.policy = policy;
        *stored = Arc::new(fresh);
    }
    Ok(Arc::clone(stored))
}
