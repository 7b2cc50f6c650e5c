//! The definitions that runs are decided on.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

use stepwell_core::id::DefinitionId;
use stepwell_core::run::RunRow;

use super::super::rows::{corrupt, definition, int32};
use super::super::session::PgResult;
use super::super::sql::{self, Sql};
use super::IdLookup;
use crate::ports::StoredDefinition;

const READ_DEFINITION: Sql = sql::DEFINITION.named("read_definition");

/// A number that is drawn anew whenever a definition is added or policies are replaced.
pub(crate) const READ_REVISION: Sql = sql::DEFINITION.named("read_revision");

/// Definitions that were read before. Their structure never changes. Their policies may be replaced
/// by other processes, so they are read anew when their revision is another.
pub(crate) struct PlanCache(Mutex<Plans>);

struct Plans {
    known: HashMap<DefinitionId, Arc<StoredDefinition>>,
    /// What [`READ_REVISION`] gave when these were read.
    revision: Option<i64>,
    /// How often all was forgotten, from 1 on.
    generation: u64,
}

impl Default for PlanCache {
    fn default() -> Self {
        Self(Mutex::new(Plans { known: HashMap::new(), revision: None, generation: 1 }))
    }
}

impl PlanCache {
    /// Those of these definitions that were read before.
    pub(crate) fn cached(
        &self,
        ids: &BTreeSet<DefinitionId>,
    ) -> BTreeMap<DefinitionId, Arc<StoredDefinition>> {
        let Plans { known, .. } = &*self.plans();
        ids.iter().filter_map(|id| Some((*id, Arc::clone(known.get(id)?)))).collect()
    }

    /// Remembers a definition, unless all was forgotten since it was read.
    pub(crate) fn remember(&self, stored: &Arc<StoredDefinition>, generation: Option<u64>) {
        let mut plans = self.plans();
        if generation == Some(plans.generation) {
            plans.known.insert(stored.id, Arc::clone(stored));
        }
    }

    /// How often all was forgotten, and the revision of the definitions since.
    pub(super) fn generation(&self) -> (u64, Option<i64>) {
        let plans = self.plans();
        (plans.generation, plans.revision)
    }

    /// Forgets definitions if any has changed since the last look, perhaps by another process: what
    /// is read next is fresh.
    pub(crate) fn saw_revision(&self, revision: i64) {
        if self.generation().1 != Some(revision) {
            self.forget(revision);
        }
    }

    /// Forgets all definitions, since they have this revision by now.
    pub(crate) fn forget(&self, revision: i64) -> u64 {
        let mut plans = self.plans();
        plans.known.clear();
        plans.revision = Some(revision);
        plans.generation += 1;
        plans.generation
    }

    fn plans(&self) -> MutexGuard<'_, Plans> {
        self.0.lock().expect("no holder of the lock panics")
    }
}

impl IdLookup<'_> {
    /// The definition that a run is decided on.
    pub(crate) async fn plan_of(&self, run: &RunRow) -> PgResult<Arc<StoredDefinition>> {
        self.plan(run.definition).await
    }

    /// The definitions that runs are decided on.
    pub(crate) async fn plans_of(
        &self,
        runs: impl Iterator<Item = &RunRow>,
    ) -> PgResult<HashMap<DefinitionId, Arc<StoredDefinition>>> {
        let ids: BTreeSet<DefinitionId> = runs.map(|run| run.definition).collect();
        let mut plans = HashMap::with_capacity(ids.len());
        for id in ids {
            plans.insert(id, self.plan(id).await?);
        }
        Ok(plans)
    }

    async fn plan(&self, id: DefinitionId) -> PgResult<Arc<StoredDefinition>> {
        let found = self.find_plan(id).await?;
        Ok(found.ok_or_else(|| corrupt(format!("definition {} is missing", id.0)))?)
    }

    /// A definition, if it is stored.
    pub(crate) async fn find_plan(
        &self,
        id: DefinitionId,
    ) -> PgResult<Option<Arc<StoredDefinition>>> {
        if self.is_trusted() {
            let cached = self.plans.plans().known.get(&id).map(Arc::clone);
            if cached.is_some() {
                return Ok(cached);
            }
        }
        let row = self.session.one(READ_DEFINITION, &[&int32(id.0)]).await?;
        let Some(row) = row else { return Ok(None) };
        let stored = Arc::new(definition::read(&row)?);
        self.plans.remember(&stored, self.session.trusted());
        Ok(Some(stored))
    }
}
