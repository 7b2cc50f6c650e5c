use std::sync::Arc;

use async_trait::async_trait;
use stepwell_core::code::Code;
use stepwell_core::id::{DefinitionId, Node};
use stepwell_core::workflow::{Definition, OutputRule, WorkflowPolicy};

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

fn register(
    tables: &mut Tables,
    definition: &Definition,
) -> Result<Arc<StoredDefinition>, StoreError> {
    let of_workflow = |s: &&mut Arc<StoredDefinition>| s.definition.workflow == definition.workflow;
    let mut version_max = 0;
    for stored in tables.definitions.iter_mut().filter(of_workflow) {
        version_max = version_max.max(stored.version);
        if stored.definition.signature == definition.signature {
            return refresh(stored, definition);
        }
        if definition.version == Some(stored.version) {
            return Err(version_conflict(definition, stored.version));
        }
    }
    let stored = Arc::new(StoredDefinition {
        id: DefinitionId(u32::try_from(tables.definitions.len()).unwrap_or(u32::MAX)),
        version: definition.version.unwrap_or(version_max + 1),
        definition: definition.clone(),
    });
    tables.definitions.push(Arc::clone(&stored));
    Ok(stored)
}

/// Takes over the given policies into a stored structure.
fn refresh(
    stored: &mut Arc<StoredDefinition>,
    definition: &Definition,
) -> Result<Arc<StoredDefinition>, StoreError> {
    if definition.version.is_some_and(|version| version != stored.version) {
        return Err(version_conflict(definition, stored.version));
    }
    let policy = renumbered(&stored.definition, definition);
    if policy != stored.definition.policy {
        let mut fresh = (**stored).clone();
        fresh.definition.policy = policy;
        *stored = Arc::new(fresh);
    }
    Ok(Arc::clone(stored))
}

/// The policies of a definition under the node numbers of a stored one of the same structure.
fn renumbered(stored: &Definition, given: &Definition) -> WorkflowPolicy {
    let (given_nodes, stored_nodes) = (given.graph.by_name(), stored.graph.by_name());
    let steps = stored
        .graph
        .nodes()
        .map(|node| {
            let given_node = stored.graph.name(node).and_then(|name| given_nodes.get(name));
            let policy = given_node.and_then(|node| given.step_policy(*node));
            policy.or(stored.step_policy(node)).cloned().unwrap_or_default()
        })
        .collect();
    let stored_node =
        |node: Node| given.graph.name(node).and_then(|name| stored_nodes.get(name)).copied();
    let output = given.policy.output.and_then(|rule| {
        Some(OutputRule { node: stored_node(rule.node)?, required: rule.required })
    });
    WorkflowPolicy {
        fail_fast: given.policy.fail_fast,
        on_failure: given.policy.on_failure,
        output,
        steps,
    }
}

fn version_conflict(definition: &Definition, stored: u32) -> StoreError {
    StoreError::Refused {
        code: Code::VersionConflict,
        message: format!(
            "workflow {:?}: version {} was asked for, the store knows version {stored} with \
             another structure or number; give a new structure a new version",
            definition.workflow,
            definition.version.unwrap_or(stored),
        ),
    }
}
