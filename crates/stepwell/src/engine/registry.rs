//! The workflows whose code an engine has, matched with the definitions in its store.

use std::collections::HashMap;
use std::sync::{Arc, RwLock, RwLockReadGuard};

use stepwell_core::failure::Failure;
use stepwell_core::id::{DefinitionId, Mark, Node};
use stepwell_core::run::WaitFor;
use stepwell_core::workflow::{Definition, StepPolicy};

use super::{Parts, TaskArgs};
use crate::error::Error;
use crate::ports::{BoxFuture, MarkedService, Payload, StoreError, StoredDefinition};

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
    /// Stores a definition and matches its steps with the stored ones.
    pub(crate) async fn register(
        parts: &Parts,
        declared: Definition,
        steps: Vec<StepBody>,
        on_failure: Option<StepFn>,
    ) -> Result<Self, Error> {
        let stored = parts.patiently(|| parts.store.register(&declared)).await?;
        Ok(Self::matched(stored, declared, steps, on_failure))
    }

    /// Stores the definition anew, perhaps in another database, where it may get another number
    /// and other numbers of its steps.
    async fn register_anew(&self, parts: &Parts) -> Result<Self, StoreError> {
        let stored = parts.store.register(&self.declared).await?;
        let (steps, on_failure) = (self.steps.clone(), self.on_failure.clone());
        Ok(Self::matched(stored, self.declared.clone(), steps, on_failure))
    }

    /// Matches steps with the stored ones by name: another program may have declared them in
    /// another order.
    fn matched(
        stored: Arc<StoredDefinition>,
        declared: Definition,
        steps: Vec<StepBody>,
        on_failure: Option<StepFn>,
    ) -> Self {
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
        Self {
            declared,
            stored,
            steps,
            on_failure,
            on_failure_policy,
            n_roots,
            stored_of,
            declared_of,
        }
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

/// All workflows whose code an engine has, as they are stored. Where a database was restored, made
/// anew or taken over, they are stored anew.
pub(crate) struct Registry {
    workflows: RwLock<Workflows>,
    /// Held while workflows are stored anew: once is enough for all who found that they must be.
    storing: tokio::sync::Mutex<()>,
}

type Workflows = HashMap<DefinitionId, Arc<RegisteredWorkflow>>;

impl Registry {
    pub(crate) fn new(workflows: impl IntoIterator<Item = Arc<RegisteredWorkflow>>) -> Self {
        let workflows = workflows.into_iter().map(|workflow| (workflow.stored.id, workflow));
        let workflows = RwLock::new(workflows.collect());
        Self { workflows, storing: tokio::sync::Mutex::default() }
    }

    /// The code of a definition, if this engine has it under the definition's number.
    pub(crate) fn get(&self, stored: &StoredDefinition) -> Option<Arc<RegisteredWorkflow>> {
        let known = self.workflows().get(&stored.id).cloned();
        known.filter(|known| known.stored.mark == stored.mark)
    }

    /// How many steps are ready when a run of a definition starts.
    pub(crate) fn n_roots(&self, id: DefinitionId) -> usize {
        self.workflows().get(&id).map_or(0, |workflow| workflow.n_roots)
    }

    /// The workflow of this name, if this engine has its code.
    pub(crate) fn find(&self, workflow: &str) -> Option<Arc<RegisteredWorkflow>> {
        self.workflows().values().find(|known| known.declared.workflow == workflow).cloned()
    }

    /// Stores all workflows anew: the store has not those definitions that it was thought to have.
    /// Where somebody else did so since they were named in vain, there is nothing to do.
    pub(crate) async fn register_anew(
        &self,
        parts: &Parts,
        unknown: impl IntoIterator<Item = Mark>,
    ) -> Result<(), StoreError> {
        let _storing = self.storing.lock().await;
        let known: Vec<Mark> = self.services().iter().map(|service| service.mark).collect();
        if !unknown.into_iter().all(|mark| known.contains(&mark)) {
            return Ok(());
        }
        tracing::warn!(
            "the database has not the workflows that were registered: it was restored or made \
             anew, or a standby took over; registering them again"
        );
        let before: Vec<_> = self.workflows().values().cloned().collect();
        let mut workflows = Workflows::with_capacity(before.len());
        for workflow in before {
            let workflow = workflow.register_anew(parts).await?;
            workflows.insert(workflow.stored.id, Arc::new(workflow));
        }
        *self.workflows.write().expect("no holder of the lock panics") = workflows;
        Ok(())
    }

    /// The names of the workflows whose code this engine has, in order.
    #[cfg(feature = "cli")]
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.workflows().values().map(|known| known.declared.workflow.clone()).collect();
        names.sort_unstable();
        names
    }

    /// The services whose code this engine has.
    pub(crate) fn services(&self) -> Vec<MarkedService> {
        let workflows = self.workflows();
        let mut services: Vec<MarkedService> =
            workflows.values().map(|known| known.stored.marked_service()).collect();
        services.sort_unstable();
        services
    }

    fn workflows(&self) -> RwLockReadGuard<'_, Workflows> {
        self.workflows.read().expect("no holder of the lock panics")
    }
}
