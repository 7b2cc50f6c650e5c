//! Definitions that were read before, for all threads of a store.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::{Arc, Mutex, MutexGuard};

use stepwell_core::id::DefinitionId;

use crate::outbound::sqlite::file::{File, KeyHasher, corrupt};
use crate::outbound::sqlite::rows;
use crate::ports::{StoreError, StoredDefinition};

type Definitions = HashMap<DefinitionId, Arc<StoredDefinition>, BuildHasherDefault<KeyHasher>>;

/// Definitions by their number, as long as none of them changes. Clones share one cache.
#[derive(Clone, Default)]
pub(crate) struct DefinitionCache(Arc<Mutex<Revision>>);

/// Definitions of one revision.
#[derive(Default)]
struct Revision {
    number: Option<i64>,
    definitions: Definitions,
}

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
        if let Some(known) = self.lock().definitions.get(&id) {
            return Ok(Some(Arc::clone(known)));
        }
        let found = rows::definition::load(file, id)?.map(Arc::new);
        if let Some(stored) = &found {
            self.lock().definitions.insert(id, Arc::clone(stored));
        }
        Ok(found)
    }

    /// Lets all be read again, unless they have this revision still: another process may have
    /// changed them, or have restored an older file.
    pub(crate) fn keep_for(&self, revision: i64) {
        let mut known = self.lock();
        if known.number != Some(revision) {
            *known = Revision { number: Some(revision), definitions: Definitions::default() };
        }
    }

    fn lock(&self) -> MutexGuard<'_, Revision> {
        self.0.lock().expect("no holder of the lock panics")
    }
}
