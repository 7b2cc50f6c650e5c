//! The workflows whose code an engine has, matched with the definitions in its store.

use std::collections::HashMap;
use std::sync::Arc;

use stepwell_core::failure::Failure;
use stepwell_core::id::{DefinitionId, Node, ServiceId};
use stepwell_core::run::WaitFor;
use stepwell_core::workflow::{Definition, StepPolicy};

use super::{Parts, TaskArgs};
use crate::error::Error;
use crate::ports::{BoxFuture, Payload, StoredDefinition};

/// The function of a step: the author's closure from payloads to a payload, without its types.
#[derive(Clone)]
pub(crate) enum StepFn {
    /// Polled on the runtime.
    Async(Arc<dyn Fn(TaskArgs) -> BoxFuture<Result<Payload, NoOutput>> + Send + Sync>),
    /// Called on a thread that may block.
    Blocking(Arc<dyn Fn(TaskArgs) -> Result<Payload, NoOutput> + Send + Sync>),
    /// Nothing to call: a sleep node.
    Sleep,
    /// A wait node: what it waits for beyond its policy.
    Wait(Vec<MatchingFn>),
}

/// Why an execution gave no output.
#[derive(Debug)]
pub(crate) enum NoOutput {
    /// It failed.
    Failed(Failure),
    /// It waits for a signal, to be executed again then.
    Waits(WaitFor),
    /// Its function goes on when something that it waits for has ended. Its journal knows what.
    Suspended,
    /// Its function goes on with this input.
    Continues(Payload),
}

impl From<Failure> for NoOutput {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Gives an attribute that a signal must carry, from the input and the parents' outputs.
pub(crate) type MatchingFn =
    Arc<dyn Fn(&TaskArgs) -> Result<(String, String), Failure> + Send + Sync>;

/// Says whether a step is skipped, from its parents' outputs.
pub(crate) type Condition = Arc<dyn Fn(&TaskArgs) -> Result<bool, Failure> + Send + Sync>;

/// All code of one step: its function and its conditions.
#[derive(Clone)]
pub(crate) struct StepBody {
    pub(crate) function: StepFn,
    /// The step is skipped if any of them says yes.
    pub(crate) skip_if: Vec<Condition>,
}

/// A workflow's code beside its definition as stored.
pub(crate) struct RegisteredWorkflow {
    /// The definition as this program declares it: its order of steps and parents, its policies.
    pub(crate) declared: Definition,
    pub(crate) stored: Arc<StoredDefinition>,
    pub(crate) steps: Vec<StepBody>,
    pub(crate) on_failure: Option<StepFn>,
    /// How the failure handler is executed.
    on_failure_policy: StepPolicy,
    /// How many steps are ready when a run starts.
    pub(crate) n_roots: usize,
    /// For every step as this program numbers it, the stored node.
    stored_of: Vec<Node>,
    /// For every stored node, the step as this program numbers it.
    declared_of: Vec<Option<Node>>,
}

impl RegisteredWorkflow {
    /// Stores a definition and matches its steps with the stored ones by name: another program
    /// may have declared them in another order.
    pub(crate) async fn register(
        parts: &Parts,
        declared: Definition,
        steps: Vec<StepBody>,
        on_failure: Option<StepFn>,
    ) -> Result<Self, Error> {
        let stored = parts.patiently(|| parts.store.register(&declared)).await?;
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
        let timeout = declared.policy.on_failure_timeout;
        let on_failure_policy = StepPolicy { timeout, ..StepPolicy::default() };
        Ok(Self {
            declared,
            stored,
            steps,
            on_failure,
            on_failure_policy,
            n_roots,
            stored_of,
            declared_of,
        })
    }

    /// The code of a stored node; `None` if this program has none.
    pub(crate) fn step(&self, node: Node) -> Option<StepBody> {
        if node == Node::ON_FAILURE {
            let function = self.on_failure.clone()?;
            return Some(StepBody { function, skip_if: Vec::new() });
        }
        self.steps.get(self.declared_node(node)?.index()).cloned()
    }

    /// How this program wants a stored node executed.
    pub(crate) fn policy(&self, node: Node) -> Option<&StepPolicy> {
        if node == Node::ON_FAILURE {
            return Some(&self.on_failure_policy);
        }
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
pub(crate) struct Registry(HashMap<DefinitionId, Arc<RegisteredWorkflow>>);

impl Registry {
    pub(crate) fn new(workflows: impl IntoIterator<Item = Arc<RegisteredWorkflow>>) -> Self {
        Self(workflows.into_iter().map(|workflow| (workflow.stored.id, workflow)).collect())
    }

    pub(crate) fn get(&self, id: DefinitionId) -> Option<Arc<RegisteredWorkflow>> {
        self.0.get(&id).cloned()
    }

    /// How many steps are ready when a run of a definition starts.
    pub(crate) fn n_roots(&self, id: DefinitionId) -> usize {
        self.0.get(&id).map_or(0, |workflow| workflow.n_roots)
    }

    /// The workflow of this name, if this engine has its code.
    pub(crate) fn find(&self, workflow: &str) -> Option<Arc<RegisteredWorkflow>> {
        self.0.values().find(|known| known.declared.workflow == workflow).cloned()
    }

    /// The names of the workflows whose code this engine has, in order.
    #[cfg(feature = "cli")]
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.0.values().map(|known| known.declared.workflow.clone()).collect();
        names.sort_unstable();
        names
    }

    /// The services whose code this engine has.
    pub(crate) fn services(&self) -> Vec<ServiceId> {
        let mut services: Vec<ServiceId> = self.0.keys().map(|id| id.service()).collect();
        services.sort_unstable();
        services
    }
}
