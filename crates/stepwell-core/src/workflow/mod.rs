//! What an author declares: drafts, their checks, and the graph that runs are executed on.
//!
//! A [`Draft`] collects declarations in the order they were written. [`Draft::resolve`] binds
//! chains, checks everything and gives a [`Definition`]: numbered nodes, compact adjacency,
//! policies, and a signature over the structure.

mod chain;
mod definition;
mod draft;
mod error;
mod graph;
mod registration;
mod signature;
mod validate;

pub use chain::{Anchor, Insertion};
pub use definition::{Definition, MovedFrom, OutputRule, StepPolicy, WaitPolicy, WorkflowPolicy};
pub use draft::{Draft, DraftStep, ParentRef, Placement, workflow_hash};
pub use error::DefinitionError;
pub use graph::{Edge, Graph, GraphNode, NodeKind};
pub use registration::{KnownVersion, Registration, VersionConflict, register};
pub use signature::Signature;

/// The name under which a workflow's failure handler appears among the tasks of a run.
pub const ON_FAILURE_NAME: &str = "on_failure";
