//! One transaction, as the calls of the store see it.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::{Arc, Mutex, MutexGuard};

use rusqlite::{Params, Row};
use stepwell_core::id::DefinitionId;
use stepwell_core::time::Timestamp;

use super::book::{Book, KeyHasher};
use super::error::corrupt;
use super::file::File;
use super::seat::Seats;
use super::{rows, statements};
use crate::ports::{Hint, StoreError, StoredDefinition};

/// Definitions that were read before. They change only when policies do.
pub(super) type DefinitionCache = Arc<Mutex<Definitions>>;

type Definitions = HashMap<DefinitionId, Arc<StoredDefinition>, BuildHasherDefault<KeyHasher>>;

/// One transaction, or one call within a group of them.
pub(super) struct Transaction<'s, 'c> {
    pub(super) file: File<'s, 'c>,
    /// What is known of the file, and what is still to be written. Readers leave it empty.
    pub(super) book: &'s mut Book,
    /// The store's time of this transaction; it never goes back.
    pub(super) now: Timestamp,
    /// What to tell others once it is durable.
    pub(super) earned_hints: Vec<Hint>,
    pub(super) definitions: DefinitionCache,
    /// Which processes are alive.
    pub(super) seats: Arc<Seats>,
}

impl Transaction<'_, '_> {
    /// Runs a statement that gives no rows and says how many it changed.
    pub(super) fn run(&self, sql: &'static str, params: impl Params) -> Result<usize, StoreError> {
        self.file.run(sql, params)
    }

    /// The first row of a statement.
    pub(super) fn first<T>(
        &self,
        sql: &'static str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        self.file.first(sql, params, read)
    }

    /// All rows of a statement.
    pub(super) fn all<T>(
        &self,
        sql: &'static str,
        params: impl Params,
        read: impl Fn(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        self.file.all(sql, params, read)
    }

    pub(super) fn earn(&mut self, hint: Hint) {
        if !self.earned_hints.contains(&hint) {
            self.earned_hints.push(hint);
        }
    }

    /// A definition, from the cache if it was read before.
    pub(super) fn definition(&self, id: DefinitionId) -> Result<Arc<StoredDefinition>, StoreError> {
        let found = self.find_definition(id)?;
        found.ok_or_else(|| corrupt(format!("definition {} is missing", id.0)))
    }

    pub(super) fn find_definition(
        &self,
        id: DefinitionId,
    ) -> Result<Option<Arc<StoredDefinition>>, StoreError> {
        if let Some(known) = self.cache().get(&id) {
            return Ok(Some(Arc::clone(known)));
        }
        let found = self.first(statements::READ_DEFINITION, [id.0], rows::definition)?;
        let found = found.map(Arc::new);
        if let Some(stored) = &found {
            self.cache().insert(id, Arc::clone(stored));
        }
        Ok(found)
    }

    pub(super) fn cache(&self) -> MutexGuard<'_, Definitions> {
        self.definitions.lock().expect("no holder of the lock panics")
    }
}
