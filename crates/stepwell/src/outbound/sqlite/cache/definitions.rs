//! Definitions that were read before, for all threads of a store.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::{Arc, Mutex, MutexGuard};

use stepwell_core::id::DefinitionId;

use crate::outbound::sqlite::file::{File, KeyHasher, corrupt};
use crate::outbound::sqlite::rows;
use crate::ports::{StoreError, StoredDefinition};

type Definitions = HashMap<DefinitionId, Arc<StoredDefinition>, BuildHasherDefault<KeyHasher>>;

/// Definitions by their number. They change only when policies do. Clones share one cache.
#[derive(Clone, Default)]
pub(crate) struct DefinitionCache(Arc<Mutex<Definitions>>);

impl DefinitionCache {
    /// What a run is decided on: the definition that its row names.
    pub(crate) fn plan_of(
        &self,
        file: File<'_, '_>,
        named: DefinitionId,
    ) -> Result<Arc<StoredDefinition>, StoreError> {
        let found = self.find(file, named)?;
        found.ok_or_else(|| corrupt(format!("definition {} is missing", named.0)))
    }

    /// A definition, which is read if it is not known yet.
    pub(crate) fn find(
        &self,
        file: File<'_, '_>,
        id: DefinitionId,
    ) -> Result<Option<Arc<StoredDefinition>>, StoreError> {
        if let Some(known) = self.lock().get(&id) {
            return Ok(Some(Arc::clone(known)));
        }
        let found = rows::definition::load(file, id)?.map(Arc::new);
        if let Some(stored) = &found {
            self.lock().insert(id, Arc::clone(stored));
        }
        Ok(found)
    }

    /// Lets one be read again.
    pub(crate) fn forget(&self, id: DefinitionId) {
        self.lock().remove(&id);
    }

    /// Lets all be read again.
    pub(crate) fn forget_all(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, Definitions> {
        self.0.lock().expect("no holder of the lock panics")
    }
}
