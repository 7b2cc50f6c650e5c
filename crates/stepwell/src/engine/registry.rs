//! The code an engine has, matched with the definitions its store has.

use std::collections::HashMap;
use std::sync::Arc;

use stepwell_core::failure::Failure;
use stepwell_core::id::{DefinitionId, Node, ServiceId};
use stepwell_core::workflow::{Definition, StepPolicy};

use super::Error;
use crate::ports::{BoxFuture, DynStore, Payload, StoredDefinition};
use crate::worker::TaskArgs;

/// What a step's closure has become once its types are gone.
#[derive(Clone)]
pub(crate) enum Code {
    /// Polled on the runtime.
    Async(Arc<dyn Fn(TaskArgs) -> BoxFuture<Result<Payload, Failure>> + Send + Sync>),
    /// Called on a thread that may block.
    Blocking(Arc<dyn Fn(TaskArgs) -> Result<Payload, Failure> + Send + Sync>),
    /// Nothing to call: a sleep node.
    Sleep,
}

/// Says whether a step is skipped, from its parents' outputs.
pub(crate) type Condition = Arc<dyn Fn(&TaskArgs) -> Result<bool, Failure> + Send + Sync>;

/// The code of one step.
#[derive(Clone)]
pub(crate) struct StepCode {
    pub(crate) code: Code,
    /// Any that says yes skips the step.
    pub(crate) skip_if: Vec<Condition>,
}

/// A workflow's code beside its definition as stored.
pub(crate) struct Registered {
    /// The definition as this program declares it: its order of steps and parents, its policies.
    pub(crate) declared: Definition,
    pub(crate) stored: Arc<StoredDefinition>,
    pub(crate) steps: Vec<StepCode>,
    pub(crate) on_failure: Option<Code>,
    /// How many steps are ready when a run starts.
    pub(crate) n_roots: usize,
    /// For every step as this program numbers it, the stored node.
    stored_of: Vec<Node>,
    /// The other way round.
    declared_of: Vec<Option<Node>>,
}

impl Registered {
    /// Stores a definition and matches its steps with the stored ones by name: another program
    /// may have declared them in another order.
    pub(crate) async fn register(
        store: &DynStore,
        declared: Definition,
        steps: Vec<StepCode>,
        on_failure: Option<Code>,
    ) -> Result<Self, Error> {
        let stored = store.register(&declared).await?;
        let by_name = stored.definition.graph.by_name();
        let stored_of: Vec<Node> = declared
            .graph
            .nodes()
            .filter_map(|node| by_name.get(declared.graph.name(node)?).copied())
            .collect();
        drop(by_name);
        let mut declared_of = vec![None; stored.definition.graph.n_numbers()];
        for (stored, declared) in stored_of.iter().zip(declared.graph.nodes()) {
            declared_of[stored.index()] = Some(declared);
        }
        let graph = &stored.definition.graph;
        let n_roots = graph.nodes().filter(|node| graph.parents(*node).is_empty()).count();
        Ok(Self { declared, stored, steps, on_failure, n_roots, stored_of, declared_of })
    }

    /// The code of a stored node.
    pub(crate) fn step(&self, node: Node) -> Option<StepCode> {
        if node == Node::ON_FAILURE {
            let code = self.on_failure.clone()?;
            return Some(StepCode { code, skip_if: Vec::new() });
        }
        self.steps.get(self.declared_node(node)?.index()).cloned()
    }

    /// How this program wants a stored node executed.
    pub(crate) fn policy(&self, node: Node) -> Option<&StepPolicy> {
        self.declared.step_policy(self.declared_node(node)?)
    }

    /// The stored numbers of a stored node's parents, in the order this program declares them.
    pub(crate) fn parents(&self, node: Node) -> impl Iterator<Item = Node> {
        let edges = self.declared_node(node).map(|declared| self.declared.graph.parents(declared));
        edges.unwrap_or_default().iter().filter_map(|edge| self.stored_node(edge.node))
    }

    /// How many steps may become ready when a stored node ends.
    pub(crate) fn n_children(&self, node: Node) -> usize {
        match node {
            Node::ON_FAILURE => 0,
            node => self.stored.definition.graph.children(node).len(),
        }
    }

    /// The number this program gives a stored node.
    fn declared_node(&self, stored: Node) -> Option<Node> {
        self.declared_of.get(stored.index()).copied().flatten()
    }

    /// The stored number of a step as this program numbers it.
    pub(crate) fn stored_node(&self, declared: Node) -> Option<Node> {
        self.stored_of.get(declared.index()).copied()
    }
}

/// All workflows whose code an engine has.
#[derive(Default)]
pub(crate) struct Registry(HashMap<DefinitionId, Arc<Registered>>);

impl Registry {
    pub(crate) fn new(workflows: impl IntoIterator<Item = Arc<Registered>>) -> Self {
        Self(workflows.into_iter().map(|workflow| (workflow.stored.id, workflow)).collect())
    }

    pub(crate) fn get(&self, id: DefinitionId) -> Option<Arc<Registered>> {
        self.0.get(&id).cloned()
    }

    /// How many steps are ready when a run of a definition starts.
    pub(crate) fn n_roots(&self, id: DefinitionId) -> usize {
        self.0.get(&id).map_or(0, |workflow| workflow.n_roots)
    }

    /// The workflow of this name, if this engine has its code.
    pub(crate) fn find(&self, workflow: &str) -> Option<Arc<Registered>> {
        self.0.values().find(|known| known.declared.workflow == workflow).cloned()
    }

    /// The services whose code this engine has.
    pub(crate) fn services(&self) -> Vec<ServiceId> {
        let mut services: Vec<ServiceId> = self.0.keys().map(|id| id.service()).collect();
        services.sort_unstable();
        services
    }
}
