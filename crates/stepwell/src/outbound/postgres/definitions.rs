use std::sync::Arc;

use async_trait::async_trait;
use stepwell_core::id::DefinitionId;
use stepwell_core::workflow::{self, Definition, KnownVersion, Registration};

use super::rows::{definition, int32, json, read_all};
use super::session::{Done, Params, PgResult, Session};
use super::sql::{self, Sql};
use super::wake::pending::WakeKinds;
use super::{PostgresStore, Role};
use crate::ports::{Definitions, StoreError, StoredDefinition};

const LOCK_DEFINITIONS: Sql = sql::DEFINITION.named("lock_definitions");
const READ_DEFINITIONS: Sql = sql::DEFINITION.named("read_definitions");
const INSERT_STEPS: Sql = sql::DEFINITION.named("insert_steps");
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
    /// Whether other policies, or another version, were replaced.
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

/// Stores a definition, or takes over its policies and version.
async fn register(session: &Session, given: &Definition) -> PgResult<Registered> {
    let known = of_workflow(session, &given.workflow).await?;
    let versions: Vec<KnownVersion<'_>> = known.iter().map(StoredDefinition::known).collect();
    let registration = workflow::register(&versions, given)
        .map_err(|conflict| StoreError::version_conflict(given, conflict))?;
    let (stored, is_replaced) = match registration {
        Registration::Same { index } => (known[index].clone(), false),
        Registration::Refresh { index, version, definition } => {
            let (id, body) = (known[index].id, json(&definition)?);
            let params: Params<'_> = &[&int32(id.0), &int32(version), &body];
            session.run(UPDATE_DEFINITION, params).await?;
            (StoredDefinition { id, version, definition }, true)
        }
        Registration::New { version, definition } => {
            let (signature, body) = (definition.signature.0.as_slice(), json(&definition)?);
            let params: Params<'_> = &[&definition.workflow, &int32(version), &signature, &body];
            let row = session.one(INSERT_DEFINITION, params).await?;
            let id = row.as_ref().map(definition::read_id).transpose()?;
            let id = id.unwrap_or(DefinitionId(0));
            insert_steps(session, id, &definition).await?;
            (StoredDefinition { id, version, definition }, false)
        }
    };
    Ok(Registered { stored: Arc::new(stored), is_replaced })
}

/// Writes the names of steps down where views find them.
async fn insert_steps(
    session: &Session,
    id: DefinitionId,
    definition: &Definition,
) -> PgResult<()> {
    let (nodes, names): (Vec<i32>, Vec<&str>) =
        definition.named_nodes().map(|(node, name)| (int32(node.0), name)).unzip();
    session.run(INSERT_STEPS, &[&int32(id.0), &nodes, &names]).await
}
