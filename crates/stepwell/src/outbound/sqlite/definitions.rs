use std::sync::Arc;

use async_trait::async_trait;
use stepwell_core::id::DefinitionId;
use stepwell_core::workflow::{self, Definition, KnownVersion, Registration};

use super::writer::Transaction;
use super::{SqliteStore, rows};
use crate::ports::{Definitions, StoreError, StoredDefinition};

#[async_trait]
impl Definitions for SqliteStore {
    async fn register(&self, definition: &Definition) -> Result<Arc<StoredDefinition>, StoreError> {
        let definition = definition.clone();
        let registered = self.write(move |transaction| register(transaction, &definition)).await?;
        if registered.is_replaced {
            // Steps may have other queues now.
            self.settle_some().await;
        }
        Ok(registered.stored)
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
            Ok(known.into_iter().max_by_key(|stored| stored.version).map(Arc::new))
        })
        .await
    }
}

/// A definition that is stored.
struct Registered {
    stored: Arc<StoredDefinition>,
    /// Whether other policies, or another version, were replaced.
    is_replaced: bool,
}

fn register(
    transaction: &mut Transaction<'_, '_>,
    given: &Definition,
) -> Result<Registered, StoreError> {
    let file = transaction.file;
    let mut known = rows::definition::of_workflow(file, &given.workflow)?;
    let versions: Vec<KnownVersion<'_>> = known.iter().map(StoredDefinition::known).collect();
    let registration = workflow::register(&versions, given)
        .map_err(|conflict| StoreError::version_conflict(given, conflict))?;
    let is_changed = !matches!(registration, Registration::Same { .. });
    let is_replaced = matches!(registration, Registration::Refresh { .. });
    let stored = match registration {
        Registration::Same { index } => known.swap_remove(index),
        Registration::Refresh { index, version, definition } => {
            let StoredDefinition { id, mark, .. } = known[index];
            let stored = StoredDefinition { id, version, definition, mark };
            rows::definition::update(file, &stored)?;
            stored
        }
        Registration::New { version, definition } => {
            let (id, mark) = rows::definition::insert(file, version, &definition)?;
            StoredDefinition { id, version, definition, mark }
        }
    };
    if is_changed {
        // What is read next is fresh; should this transaction not stand, that reads the old.
        let revision = rows::store::draw_revision(file)?;
        transaction.cache.counters().revision = revision;
        transaction.definitions.keep_for(revision);
    }
    Ok(Registered { stored: Arc::new(stored), is_replaced })
}
