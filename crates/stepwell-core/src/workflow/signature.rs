//! The digest of a workflow's structure.
//!
//! Names, kinds, edges and whether there is a failure handler count. Policies do not, and
//! neither does the order of declaration, so that moving a line in the source is no new version.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Graph, NodeKind};
use crate::id::Node;

/// SHA-256 over the structure of a workflow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Signature(pub [u8; 32]);

impl Signature {
    /// The signature of a workflow's graph. A failure handler is a task of its own, so a program
    /// without it has another structure and is not handed such runs.
    #[must_use]
    pub fn of(workflow: &str, graph: &Graph, on_failure: bool) -> Self {
        let mut sha = Sha256::new();
        put(&mut sha, workflow);
        sha.update([u8::from(on_failure)]);
        let mut nodes: Vec<Node> = graph.nodes().collect();
        nodes.sort_by_key(|node| graph.name(*node));
        for node in nodes {
            put(&mut sha, graph.name(node).unwrap_or_default());
            sha.update([match graph.kind(node) {
                NodeKind::Step => 1,
                NodeKind::Sleep => 2,
                NodeKind::ConditionalSleep => 3,
                NodeKind::Wait => 4,
                NodeKind::Gone => 0,
            }]);
            let mut parents: Vec<(&str, bool)> = graph
                .parents(node)
                .iter()
                .map(|edge| (graph.name(edge.node).unwrap_or_default(), edge.needed))
                .collect();
            parents.sort_unstable();
            sha.update((parents.len() as u64).to_le_bytes());
            for (parent, needed) in parents {
                put(&mut sha, parent);
                sha.update([u8::from(needed)]);
            }
        }
        Self(sha.finalize().into())
    }

    /// The first eight hex digits, for people.
    #[must_use]
    pub fn short(&self) -> String {
        let mut hex = self.to_string();
        hex.truncate(8);
        hex
    }
}

/// Lengths go in front, so that two names never read as one.
fn put(sha: &mut Sha256, text: &str) {
    sha.update((text.len() as u64).to_le_bytes());
    sha.update(text.as_bytes());
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signature({})", self.short())
    }
}
