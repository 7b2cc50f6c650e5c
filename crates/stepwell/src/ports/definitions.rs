//! Stored definitions.

use std::sync::Arc;

use async_trait::async_trait;
use stepwell_core::id::{DefinitionId, Mark, ServiceId};
use stepwell_core::workflow::{Definition, KnownVersion};

use super::StoreError;

/// A definition as the store keeps it.
#[derive(Clone, Debug)]
pub struct StoredDefinition {
    /// The store's number.
    pub id: DefinitionId,
    /// The workflow's version: the author's, or the store's count of structures.
    pub version: u32,
    /// Structure and policies. Node numbers are those of the workflow; a program may have declared
    /// its steps in another order.
    pub definition: Definition,
    /// Tells it from another that has the same number in another database, or had it before this
    /// one was restored. It stays when policies or the version are replaced.
    pub mark: Mark,
}

/// A definition, as whoever starts runs on it remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MarkedDefinition {
    /// The store's number.
    pub id: DefinitionId,
    /// What tells it from others of that number.
    pub mark: Mark,
}

impl MarkedDefinition {
    /// The service whose code its tasks need.
    #[must_use]
    pub const fn service(self) -> MarkedService {
        MarkedService { id: self.id.service(), mark: self.mark }
    }
}

/// A service, as whoever has its code remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MarkedService {
    /// The store's number.
    pub id: ServiceId,
    /// That of the definition whose service it is.
    pub mark: Mark,
}

impl StoredDefinition {
    /// What is to be remembered of it.
    #[must_use]
    pub const fn marked(&self) -> MarkedDefinition {
        MarkedDefinition { id: self.id, mark: self.mark }
    }

    /// The service whose code its tasks need, to be remembered.
    #[must_use]
    pub const fn marked_service(&self) -> MarkedService {
        self.marked().service()
    }

    /// The service whose code its tasks need: that of this version of the workflow.
    #[must_use]
    pub const fn service(&self) -> ServiceId {
        self.id.service()
    }

    /// As the rule of registration sees it.
    pub(crate) const fn known(&self) -> KnownVersion<'_> {
        KnownVersion { version: self.version, definition: &self.definition }
    }
}

/// Keeps definitions.
#[async_trait]
pub trait Definitions {
    /// Stores a definition once per workflow and signature and gives the stored one. A known
    /// signature takes over the given policies, matched by step name, at once for all its runs.
    /// A new signature gets the author's version, or the workflow's next number; a known one takes
    /// a greater version of the author's. Steps keep their numbers by name or alias, new ones get
    /// the next, and numbers of those that vanished are not given again.
    ///
    /// Refused with `SW0023`, and nothing changed, if the author's version is already that of
    /// another structure, or smaller than that of this one.
    async fn register(&self, definition: &Definition) -> Result<Arc<StoredDefinition>, StoreError>;

    /// The definition with this number.
    async fn definition(
        &self,
        id: DefinitionId,
    ) -> Result<Option<Arc<StoredDefinition>>, StoreError>;

    /// The definition of a workflow with the greatest version.
    async fn latest(&self, workflow: &str) -> Result<Option<Arc<StoredDefinition>>, StoreError>;
}
