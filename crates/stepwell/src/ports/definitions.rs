//! Stored definitions.

use std::sync::Arc;

use async_trait::async_trait;
use stepwell_core::id::DefinitionId;
use stepwell_core::workflow::Definition;

use super::StoreError;

/// A definition as the store keeps it.
#[derive(Clone, Debug)]
pub struct StoredDefinition {
    /// The store's number.
    pub id: DefinitionId,
    /// The workflow's version: the author's, or the store's count of structures.
    pub version: u32,
    /// Structure and policies. Node numbers are those of the stored graph, which another program
    /// may have declared in another order.
    pub definition: Definition,
}

/// Keeps definitions.
#[async_trait]
pub trait Definitions {
    /// Stores a definition once per workflow and signature and gives the stored one. A known
    /// signature takes over the given policies, matched by step name, at once for all its runs.
    /// A new signature gets the author's version, or the workflow's next number.
    ///
    /// Refused with `SW0023`, and nothing changed, if the author's version is already that of
    /// another structure.
    async fn register(&self, definition: &Definition) -> Result<Arc<StoredDefinition>, StoreError>;

    /// The definition with this number.
    async fn definition(
        &self,
        id: DefinitionId,
    ) -> Result<Option<Arc<StoredDefinition>>, StoreError>;

    /// The definition of a workflow with the greatest version.
    async fn latest(&self, workflow: &str) -> Result<Option<Arc<StoredDefinition>>, StoreError>;
}
