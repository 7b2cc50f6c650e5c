//! The definitions that runs are decided on.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use stepwell_core::id::DefinitionId;
use stepwell_core::run::RunRow;

use super::super::rows::{corrupt, definition, int32};
use super::super::session::{Conflict, PgResult};
use super::super::sql::{self, Sql};
use super::IdLookup;
use crate::ports::StoredDefinition;

const READ_DEFINITION: Sql = sql::DEFINITION.named("read_definition");

/// A number that changes whenever a definition is added or policies are replaced.
pub(crate) const DEFINITION_REVISIONS: Sql = sql::DEFINITION.named("definition_revisions");

/// Definitions that were read before. Their structure never changes. Their policies may be replaced
/// by other processes, so they are read anew when that was seen.
pub(crate) struct PlanCache {
    plans: Mutex<HashMap<DefinitionId, Arc<StoredDefinition>>>,
    /// What [`DEFINITION_REVISIONS`] gave last.
    revisions: AtomicI64,
}

impl Default for PlanCache {
    fn default() -> Self {
        Self { plans: Mutex::default(), revisions: AtomicI64::new(-1) }
    }
}

impl PlanCache {
    /// Those of these definitions that were read before.
    pub(crate) fn cached(
        &self,
        ids: &BTreeSet<DefinitionId>,
    ) -> BTreeMap<DefinitionId, Arc<StoredDefinition>> {
        let plans = self.plans();
        ids.iter().filter_map(|id| Some((*id, Arc::clone(plans.get(id)?)))).collect()
    }

    pub(crate) fn remember(&self, stored: &Arc<StoredDefinition>) {
        self.plans().insert(stored.id, Arc::clone(stored));
    }

    /// What [`DEFINITION_REVISIONS`] gave last.
    fn revisions(&self) -> i64 {
        self.revisions.load(Ordering::Acquire)
    }

    /// Forgets definitions if policies have changed since the last look, perhaps by another
    /// process: what is read next is fresh.
    pub(crate) fn saw_revisions(&self, revisions: i64) {
        if self.revisions.swap(revisions, Ordering::AcqRel) != revisions {
            self.plans().clear();
        }
    }

    fn plans(&self) -> MutexGuard<'_, HashMap<DefinitionId, Arc<StoredDefinition>>> {
        self.plans.lock().expect("no holder of the lock panics")
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
        let cached = self.plans.plans().get(&id).map(Arc::clone);
        if cached.is_some() {
            return Ok(cached);
        }
        let revisions = self.plans.revisions();
        let row = self.session.one(READ_DEFINITION, &[&int32(id.0)]).await?;
        let Some(row) = row else { return Ok(None) };
        let stored = Arc::new(definition::read(&row)?);
        // Policies that were replaced while this was read: what is kept would stay old.
        if revisions == self.plans.revisions() {
            self.plans.remember(&stored);
        }
        Ok(Some(stored))
    }

    /// Makes sure that no policies were replaced since the definitions were read. A wait keeps what
    /// it opened with for as long as it is open, and this process may not have heard of a deploy.
    pub(crate) async fn check_policies(&self) -> PgResult<()> {
        let Some(row) = self.session.one(DEFINITION_REVISIONS, &[]).await? else { return Ok(()) };
        let revisions = definition::read_revisions(&row)?;
        if revisions == self.plans.revisions() {
            return Ok(());
        }
        Err(Conflict::PoliciesChanged(revisions).into())
    }
}
