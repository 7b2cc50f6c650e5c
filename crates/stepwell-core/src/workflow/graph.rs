//! The graph of a workflow as tables of numbers.
//!
//! Completing a task looks at its children only, so its cost is its out-degree, however large
//! the graph is. Parents and children lie in two flat lists with an offset per node.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::id::Node;

/// What a node does when it becomes ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum NodeKind {
    /// A worker executes it.
    Step,
    /// A timer completes it; no worker is needed.
    Sleep,
    /// A worker evaluates its conditions, then a timer completes it.
    ConditionalSleep,
    /// A signal completes it, or a time-out. What it waits for is policy; if code says it, a
    /// worker is asked first.
    Wait,
    /// Nothing: an earlier structure of the workflow had a step of this number, this one has not.
    /// The number stays taken, so that it never means another step.
    Gone,
}

impl NodeKind {
    /// Whether a timer alone completes a task of this kind.
    #[must_use]
    pub const fn is_sleep(self) -> bool {
        matches!(self, Self::Sleep | Self::ConditionalSleep)
    }

    /// Whether a task of this kind may come to wait for a signal.
    #[must_use]
    pub const fn may_wait(self) -> bool {
        matches!(self, Self::Step | Self::Wait)
    }
}

/// One end of a dependency, seen from the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Edge {
    /// The node at the far end: the parent in a list of parents, the child in one of children.
    pub node: Node,
    /// Whether the child cannot do without this parent: it is skipped when the parent is.
    pub needed: bool,
}

/// One node as it goes into [`Graph::new`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphNode {
    /// The step's name.
    pub name: String,
    /// What it does when it becomes ready.
    pub kind: NodeKind,
    /// Its parents, in the order the author gave them.
    pub parents: Vec<Edge>,
}

/// The graph of a workflow. Nodes are numbered from 0; numbers of steps that are gone are left
/// out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Graph {
    names: Vec<String>,
    kinds: Vec<NodeKind>,
    parents: Adjacency,
    children: Adjacency,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Adjacency {
    /// Where each node's edges begin, with one more entry for the end.
    offsets: Vec<u32>,
    edges: Vec<Edge>,
}

impl Adjacency {
    fn of(&self, node: Node) -> &[Edge] {
        match (self.offsets.get(node.index()), self.offsets.get(node.index() + 1)) {
            (Some(from), Some(to)) => &self.edges[*from as usize..*to as usize],
            _ => &[],
        }
    }
}

impl Graph {
    /// Lays out checked nodes. Every parent must be one of them.
    #[must_use]
    pub fn new(nodes: Vec<GraphNode>) -> Self {
        let mut n_children = vec![0_u32; nodes.len() + 1];
        for edge in nodes.iter().flat_map(|node| &node.parents) {
            n_children[edge.node.index() + 1] += 1;
        }
        for ix in 1..n_children.len() {
            n_children[ix] += n_children[ix - 1];
        }
        let n_edges = n_children.last().copied().unwrap_or(0);
        let blank = Edge { node: Node(0), needed: false };
        let mut children =
            Adjacency { offsets: n_children.clone(), edges: vec![blank; n_edges as usize] };
        let mut parents = Adjacency { offsets: vec![0], edges: Vec::new() };
        let mut next = n_children;
        for (child, node) in (0_u32..).zip(&nodes) {
            for edge in &node.parents {
                let slot = &mut next[edge.node.index()];
                children.edges[*slot as usize] = Edge { node: Node(child), needed: edge.needed };
                *slot += 1;
                parents.edges.push(*edge);
            }
            parents.offsets.push(u32::try_from(parents.edges.len()).unwrap_or(u32::MAX));
        }
        let kinds = nodes.iter().map(|node| node.kind).collect();
        let names = nodes.into_iter().map(|node| node.name).collect();
        Self { names, kinds, parents, children }
    }

    /// How many nodes there are.
    #[must_use]
    pub fn n_nodes(&self) -> usize {
        self.nodes().count()
    }

    /// How many numbers are taken, those of steps that are gone included.
    #[must_use]
    pub fn n_numbers(&self) -> usize {
        self.names.len()
    }

    /// All nodes, in order of their numbers.
    pub fn nodes(&self) -> impl Iterator<Item = Node> + Clone {
        let live = (0_u32..).map(Node).zip(&self.kinds);
        live.filter(|(_, kind)| **kind != NodeKind::Gone).map(|(node, _)| node)
    }

    /// A node's name; `None` for a node the graph does not have.
    #[must_use]
    pub fn name(&self, node: Node) -> Option<&str> {
        self.names.get(node.index()).map(String::as_str)
    }

    /// The node of this name. Looks through all names, so it is not for the hot path.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Node> {
        self.nodes().find(|node| self.name(*node) == Some(name))
    }

    /// All nodes by name, to look up many.
    #[must_use]
    pub fn by_name(&self) -> BTreeMap<&str, Node> {
        self.nodes().filter_map(|node| Some((self.name(node)?, node))).collect()
    }

    /// The same structure under other numbers: `number_of` gives each node its new one. Numbers
    /// up to `n_numbers` that no node gets are gone.
    #[must_use]
    pub(super) fn renumbered(
        &self,
        n_numbers: usize,
        number_of: &BTreeMap<Node, Node>,
        gone: &BTreeMap<Node, String>,
    ) -> Self {
        let blank = |ix: u32| GraphNode {
            name: gone.get(&Node(ix)).cloned().unwrap_or_default(),
            kind: NodeKind::Gone,
            parents: Vec::new(),
        };
        let n_numbers = u32::try_from(n_numbers).unwrap_or(u32::MAX);
        let mut nodes: Vec<GraphNode> = (0..n_numbers).map(blank).collect();
        for node in self.nodes() {
            let parents = self.parents(node).iter();
            nodes[number_of[&node].index()] = GraphNode {
                name: self.name(node).unwrap_or_default().into(),
                kind: self.kind(node),
                parents: parents
                    .map(|edge| Edge { node: number_of[&edge.node], ..*edge })
                    .collect(),
            };
        }
        Self::new(nodes)
    }

    /// What a node does; tasks the engine inserts count as steps.
    #[must_use]
    pub fn kind(&self, node: Node) -> NodeKind {
        self.kinds.get(node.index()).copied().unwrap_or(NodeKind::Step)
    }

    /// A node's parents, in the order the author gave them.
    #[must_use]
    pub fn parents(&self, node: Node) -> &[Edge] {
        self.parents.of(node)
    }

    /// A node's children.
    #[must_use]
    pub fn children(&self, node: Node) -> &[Edge] {
        self.children.of(node)
    }

    /// Everything that can be reached from the given nodes by way of children, without them.
    #[must_use]
    pub fn descendants(&self, nodes: impl IntoIterator<Item = Node>) -> BTreeSet<Node> {
        let mut found = BTreeSet::new();
        let mut open: Vec<Node> = nodes.into_iter().collect();
        while let Some(node) = open.pop() {
            for child in self.children(node) {
                if found.insert(child.node) {
                    open.push(child.node);
                }
            }
        }
        found
    }

    /// Whether `ancestor` lies upstream of `node`.
    #[must_use]
    pub fn is_ancestor(&self, ancestor: Node, node: Node) -> bool {
        let mut seen = BTreeSet::new();
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            for parent in self.parents(node) {
                if parent.node == ancestor {
                    return true;
                }
                if seen.insert(parent.node) {
                    open.push(parent.node);
                }
            }
        }
        false
    }
}
