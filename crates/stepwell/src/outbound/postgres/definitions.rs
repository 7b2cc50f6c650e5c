use std::sync::Arc;

use async_trait::async_trait;
use stepwell_core::id::DefinitionId;
use stepwell_core::workflow::{self, Definition, KnownVersion, Registration};

use super::rows::{corrupt, definition, int32, json, read_all};
use super::session::{Done, Params, PgResult, Session};
use super::sql::{self, Sql};
use super::wake::pending::WakeKinds;
use super::{PostgresStore, Role};
use crate::ports::{Definitions, StoreError, StoredDefinition};

const LOCK_DEFINITIONS: Sql = sql::DEFINITION.named("lock_definitions");
const READ_DEFINITIONS: Sql = sql::DEFINITION.named("read_definitions");
const INSERT_STEPS: Sql = sql::DEFINITION.named("insert_steps");
const INSERT_DEFINITION: Sql = sql::DEFINITION.named("insert_definition");
const DRAW_REVISION: Sql = sql::DEFINITION.named("draw_revision");
const UPDATE_DEFINITION: Sql = sql::DEFINITION.named("update_definition");

#[async_trait]
impl Definitions for PostgresStore {
    async fn register(&self, definition: &Definition) -> Result<Arc<StoredDefinition>, StoreError> {
        let registered = self.with_retries(|| self.register_definition_once(definition)).await?;
        let plans = &self.shared.plans;
        let mut generation = registered.trusted;
        if let Some(revision) = registered.revision {
            generation = Some(plans.forget(revision));
        }
        plans.remember(&registered.stored, generation);
        if registered.is_replaced {
            self.shared.wakes.tell(WakeKinds::POLICIES);
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
    /// What definitions have by now, if that changed.
    revision: Option<i64>,
    /// The memory of this process that held when it was stored.
    trusted: Option<u64>,
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
    let is_changed = !matches!(registration, Registration::Same { .. });
    let (stored, is_replaced) = match registration {
        Registration::Same { index } => (known[index].clone(), false),
        Registration::Refresh { index, version, definition } => {
            let (id, body) = (known[index].id, json(&definition)?);
            let params: Params<'_> = &[&int32(id.0), &int32(version), &body];
            session.run(UPDATE_DEFINITION, params).await?;
            let mark = known[index].mark;
            (StoredDefinition { id, version, definition, mark }, true)
        }
        Registration::New { version, definition } => {
            let (signature, body) = (definition.signature.0.as_slice(), json(&definition)?);
            let params: Params<'_> = &[&definition.workflow, &int32(version), &signature, &body];
            let row = session.one(INSERT_DEFINITION, params).await?;
            let row = row.ok_or_else(|| corrupt("a definition got no number"))?;
            let (id, mark) = definition::read_inserted(&row)?;
            insert_steps(session, id, &definition).await?;
            (StoredDefinition { id, version, definition, mark }, false)
        }
    };
    let mut revision = None;
    if is_changed {
        let row = session.one(DRAW_REVISION, &[]).await?;
        revision = row.as_ref().map(definition::read_revision).transpose()?;
    }
    let (stored, trusted) = (Arc::new(stored), session.trusted());
    Ok(Registered { stored, is_replaced, revision, trusted })
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
