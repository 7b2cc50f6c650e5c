//! What becomes of a definition that a program registers: versions, policies and node numbers.
//!
//! Numbers belong to the workflow. A step keeps its number from structure to structure, by its name
//! or by an alias; a new step gets the next number, and the number of one that vanished is never
//! given again. So what is stored about a task means the same step in every version.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use core::fmt;

use super::Definition;
use crate::id::Node;

/// A structure of the workflow that is stored already.
#[derive(Clone, Copy, Debug)]
pub struct KnownVersion<'k> {
    /// Its version.
    pub version: u32,
    /// Structure and policies.
    pub definition: &'k Definition,
}

/// What a store does with a registered definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Registration {
    /// The structure is new: it is stored under this version and with these node numbers.
    New {
        /// The author's version, or the workflow's next one.
        version: u32,
        /// The definition under the workflow's numbers.
        definition: Definition,
    },
    /// The structure is known, but its policies or its version are others now.
    Refresh {
        /// Which of the known ones it is.
        index: usize,
        /// Its version from now on.
        version: u32,
        /// The stored structure with the policies given.
        definition: Definition,
    },
    /// All of it is known.
    Same {
        /// Which of the known ones it is.
        index: usize,
    },
}

/// The author's version belongs to another structure, or is older than that of this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionConflict {
    /// The version that was asked for.
    pub asked: u32,
    /// The version that stands against it.
    pub stored: u32,
}

impl fmt::Display for VersionConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { asked, stored } = self;
        write!(f, "version {asked} was asked for, the store knows version {stored}")
    }
}

impl core::error::Error for VersionConflict {}

/// Tells what becomes of a definition, given all structures of its workflow that are stored.
///
/// A known structure under a greater version takes that version: so an old build is shipped again.
///
/// # Errors
/// When the author's version is that of another structure, or smaller than that of this one.
pub fn register(
    known: &[KnownVersion<'_>],
    given: &Definition,
) -> Result<Registration, VersionConflict> {
    let is_same = |known: &KnownVersion<'_>| known.definition.signature == given.signature;
    let of_another =
        |known: &&KnownVersion<'_>| !is_same(known) && given.version == Some(known.version);
    if let Some(other) = known.iter().find(of_another) {
        return Err(VersionConflict { asked: other.version, stored: other.version });
    }
    let Some(index) = known.iter().position(is_same) else {
        let next = known.iter().map(|known| known.version).max().unwrap_or(0) + 1;
        let version = given.version.unwrap_or(next);
        return Ok(Registration::New { version, definition: numbered(known, given) });
    };
    let stored = known[index];
    let version = given.version.unwrap_or(stored.version);
    if version < stored.version {
        return Err(VersionConflict { asked: version, stored: stored.version });
    }
    let policy = stored.definition.policy_of(given);
    if policy == stored.definition.policy && version == stored.version {
        return Ok(Registration::Same { index });
    }
    let definition = Definition { policy, ..stored.definition.clone() };
    Ok(Registration::Refresh { index, version, definition })
}

/// A new structure under the numbers of its workflow.
fn numbered(known: &[KnownVersion<'_>], given: &Definition) -> Definition {
    let mut taken: BTreeMap<&str, Node> = BTreeMap::new();
    for known in known {
        taken.extend(known.definition.graph.by_name());
    }
    let n_known = known.iter().map(|known| known.definition.graph.n_numbers()).max().unwrap_or(0);
    let mut free: BTreeSet<Node> = taken.values().copied().collect();
    let mut number_of: BTreeMap<Node, Node> = BTreeMap::new();
    for node in given.graph.nodes() {
        let name = given.graph.name(node).and_then(|name| taken.get(name));
        if let Some(number) = name.filter(|number| free.remove(number)) {
            number_of.insert(node, *number);
        }
    }
    let mut n_numbers = n_known;
    for node in given.graph.nodes() {
        if number_of.contains_key(&node) {
            continue;
        }
        let aliases = given.step_policy(node).map(|policy| &policy.aliases);
        let former = aliases.into_iter().flatten().filter_map(|alias| taken.get(alias.as_str()));
        let number = former.copied().find(|number| free.remove(number)).unwrap_or_else(|| {
            n_numbers += 1;
            Node(u32::try_from(n_numbers - 1).unwrap_or(u32::MAX))
        });
        number_of.insert(node, number);
    }
    let gone = taken.into_iter().filter(|(_, number)| free.contains(number));
    let gone: BTreeMap<Node, String> = gone.map(|(name, number)| (number, name.into())).collect();
    given.renumbered(n_numbers, &number_of, &gone)
}
