use std::sync::Arc;

use async_trait::async_trait;
use stepwell_core::id::{DefinitionId, Mark};
use stepwell_core::workflow::{self, Definition, KnownVersion, Registration};

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

fn register(tables: &mut Tables, given: &Definition) -> Result<Arc<StoredDefinition>, StoreError> {
    let is_of_workflow =
        |stored: &&Arc<StoredDefinition>| stored.definition.workflow == given.workflow;
    let known: Vec<Arc<StoredDefinition>> =
        tables.definitions.iter().filter(is_of_workflow).cloned().collect();
    let versions: Vec<KnownVersion<'_>> = known.iter().map(|stored| stored.known()).collect();
    let registration = workflow::register(&versions, given)
        .map_err(|conflict| StoreError::version_conflict(given, conflict))?;
    Ok(match registration {
        Registration::Same { index } => Arc::clone(&known[index]),
        Registration::Refresh { index, version, definition } => {
            let StoredDefinition { id, mark, .. } = *known[index];
            let stored = Arc::new(StoredDefinition { id, version, definition, mark });
            tables.definitions[stored.id.0 as usize] = Arc::clone(&stored);
            // Steps may have other queues now.
            tables.serve_what_lives();
            stored
        }
        Registration::New { version, definition } => {
            let id = DefinitionId(u32::try_from(tables.definitions.len()).unwrap_or(u32::MAX));
            // It lives as long as its process, so no number is ever given twice.
            let mark = Mark(i64::from(id.0));
            let stored = Arc::new(StoredDefinition { id, version, definition, mark });
            tables.definitions.push(Arc::clone(&stored));
            stored
        }
    })
}
