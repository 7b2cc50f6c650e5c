use std::sync::Arc;

use async_trait::async_trait;
use stepwell_core::id::DefinitionId;
use stepwell_core::workflow::Definition;

use super::rows::{definition, int32, json, read_all};
use super::session::{Done, Params, PgResult, Session};
use super::sql::{self, Sql};
use super::wake::pending::WakeKinds;
use super::{PostgresStore, Role};
use crate::ports::{Definitions, StoreError, StoredDefinition};

const LOCK_DEFINITIONS: Sql = sql::DEFINITION.named("lock_definitions");
const READ_DEFINITIONS: Sql = sql::DEFINITION.named("read_definitions");
const INSERT_DEFINITION: Sql = sql::DEFINITION.named("insert_definition");
const UPDATE_DEFINITION: Sql = sql::DEFINITION.named("update_definition");

#[async_trait]
impl Definitions for PostgresStore {
    async fn register(&self, definition: &Definition) -> Result<Arc<StoredDefinition>, StoreError> {
        let registered = self.with_retries(|| self.register_definition_once(definition)).await?;
        if registered.is_replaced {
            self.shared.wakes.tell(WakeKinds::POLICIES);
        }
        self.shared.plans.remember(&registered.stored);
        Ok(registered.stored)
    }

    async fn definition(
        &self,
        id: DefinitionId,
    ) -> Result<Option<Arc<StoredDefinition>>, StoreError> {
        let session = self.begin(Role::Work).await?;
        let found = self.shared.ids(&session).find_plan(id).await?;
        self.commit_session(session).await?;
        Ok(found)
    }

    async fn latest(&self, workflow: &str) -> Result<Option<Arc<StoredDefinition>>, StoreError> {
        let session = self.begin(Role::Work).await?;
        let found = of_workflow(&session, workflow).await?.pop();
        self.commit_session(session).await?;
        Ok(found.map(Arc::new))
    }
}

/// A definition that is stored.
struct Registered {
    stored: Arc<StoredDefinition>,
    /// Whether other policies were replaced.
    is_replaced: bool,
}

impl PostgresStore {
    async fn register_definition_once(
        &self,
        definition: &Definition,
    ) -> PgResult<Done<Registered>> {
        let session = self.begin(Role::Work).await?;
        session.run(LOCK_DEFINITIONS, &[]).await?;
        let registered = register(&session, definition).await?;
        self.commit_session(session).await?;
        Ok(Done::quiet(registered))
    }
}

/// The definitions of a workflow, oldest first.
async fn of_workflow(session: &Session, workflow: &str) -> PgResult<Vec<StoredDefinition>> {
    let rows = session.all(READ_DEFINITIONS, &[&workflow]).await?;
    Ok(read_all(&rows, definition::read)?)
}

/// Stores a definition, or takes over its policies.
async fn register(session: &Session, definition: &Definition) -> PgResult<Registered> {
    let known = of_workflow(session, &definition.workflow).await?;
    let version_max = known.last().map_or(0, |stored| stored.version);
    let is_same = |stored: &&StoredDefinition| stored.definition.signature == definition.signature;
    if let Some(stored) = known.iter().find(is_same) {
        return refresh(session, stored.clone(), definition).await;
    }
    let version = definition.version.unwrap_or(version_max + 1);
    if known.iter().any(|stored| stored.version == version) {
        return Err(StoreError::version_conflict(definition, version).into());
    }
    let (signature, body) = (definition.signature.0.as_slice(), json(definition)?);
    let params: Params<'_> = &[&definition.workflow, &int32(version), &signature, &body];
    let row = session.one(INSERT_DEFINITION, params).await?;
    let id = row.as_ref().map(definition::read_id).transpose()?.unwrap_or(DefinitionId(0));
    let stored = StoredDefinition { id, version, definition: definition.clone() };
    Ok(Registered { stored: Arc::new(stored), is_replaced: false })
}

/// Takes over the given policies into a stored structure.
async fn refresh(
    session: &Session,
    mut stored: StoredDefinition,
    definition: &Definition,
) -> PgResult<Registered> {
    if definition.version.is_some_and(|version| version != stored.version) {
        return Err(StoreError::version_conflict(definition, stored.version).into());
    }
    let policy = stored.definition.policy_of(definition);
    let is_replaced = policy != stored.definition.policy;
    if is_replaced {
        stored.definition.policy = policy;
        let (id, body) = (int32(stored.id.0), json(&stored.definition)?);
        session.run(UPDATE_DEFINITION, &[&id, &body]).await?;
    }
    Ok(Registered { stored: Arc::new(stored), is_replaced })
}
