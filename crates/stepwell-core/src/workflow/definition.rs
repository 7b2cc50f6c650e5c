//! A definition: one structure of a workflow, with the policies in force.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Graph, ON_FAILURE_NAME, Signature};
use crate::id::{Node, Queue};
use crate::retry::Retry;
use crate::run::WaitFor;

/// One structure of a workflow, with the policies in force. Stored once per signature; every
/// run points at one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// The workflow's name.
    pub workflow: String,
    /// The author's version, or `None` to let the store number a new structure next.
    pub version: Option<u32>,
    /// The digest of the structure.
    pub signature: Signature,
    /// The structure.
    pub graph: Graph,
    /// What may change without changing the structure.
    pub policy: WorkflowPolicy,
}

/// What may change without changing the structure. The latest registered policy applies at once,
/// to runs in flight as well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowPolicy {
    /// Whether a failed task cancels everything else of the run.
    pub fail_fast: bool,
    /// Whether a failure handler runs before the run is failed. It counts as structure as well.
    pub on_failure: bool,
    /// How long one execution of the failure handler may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure_timeout: Option<Duration>,
    /// How long a run may take, unless its start says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Duration>,
    /// The step whose output is the run's.
    pub output: Option<OutputRule>,
    /// One policy per node number.
    pub steps: Vec<StepPolicy>,
}

/// Which step's output is the run's, and whether it may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputRule {
    /// The step.
    pub node: Node,
    /// Whether the run fails when the step is skipped.
    pub required: bool,
}

/// How one step is executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepPolicy {
    /// When it is tried again after a failure.
    pub retry: Retry,
    /// How long one execution may take.
    pub timeout: Option<Duration>,
    /// How long an execution may go without `ctx.heartbeat()`.
    pub heartbeat_timeout: Option<Duration>,
    /// How long a sleep node sleeps.
    pub sleep: Duration,
    /// What a wait node waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<WaitPolicy>,
    /// The queue its tasks wait in.
    pub queue: Queue,
    /// Whether its code blocks the thread it runs on. Its tasks stand in the queue like all others;
    /// a line of their own would be an internal queue beside it.
    #[serde(default)]
    pub is_blocking: bool,
    /// Names the step had in earlier structures: it keeps their number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
}

/// What a wait node waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitPolicy {
    /// Signals, attributes and time-out, as far as they are known before the node is ready.
    #[serde(flatten)]
    pub wait_for: WaitFor,
    /// Whether a worker claims the node first, since code has conditions or attributes to tell.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub asks_worker: bool,
    /// Whether the signals' names are the variants of an enum as which the output is read.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub is_any: bool,
}

impl Default for StepPolicy {
    fn default() -> Self {
        Self {
            retry: Retry::never(),
            timeout: None,
            heartbeat_timeout: None,
            sleep: Duration::ZERO,
            wait: None,
            queue: Queue::default_queue(),
            is_blocking: false,
            aliases: Vec::new(),
        }
    }
}

/// The tasks of a definition that have another queue by now than one that they may wait in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MovedFrom {
    /// All still have it.
    None,
    /// None has it any more.
    All,
    /// Those of these nodes.
    Some(Vec<Node>),
}

impl Definition {
    /// The policies of another definition of the same structure, under the node numbers of this
    /// one. Steps are matched by name, since another program may declare them in another order.
    #[must_use]
    pub fn policy_of(&self, other: &Self) -> WorkflowPolicy {
        let (others, own) = (other.graph.by_name(), self.graph.by_name());
        let policy = |node: Node| {
            let theirs = self.graph.name(node).and_then(|name| others.get(name));
            let theirs = theirs.and_then(|node| other.step_policy(*node));
            theirs.or(self.step_policy(node)).cloned().unwrap_or_default()
        };
        let own_node = |node: Node| other.graph.name(node).and_then(|name| own.get(name)).copied();
        let output = other.policy.output.and_then(|rule| {
            Some(OutputRule { node: own_node(rule.node)?, required: rule.required })
        });
        WorkflowPolicy {
            fail_fast: other.policy.fail_fast,
            on_failure: other.policy.on_failure,
            on_failure_timeout: other.policy.on_failure_timeout,
            deadline: other.policy.deadline,
            output,
            steps: (0_u32..).map(Node).take(self.graph.n_numbers()).map(policy).collect(),
        }
    }

    /// The same definition under other node numbers.
    pub(super) fn renumbered(
        &self,
        n_numbers: usize,
        number_of: &BTreeMap<Node, Node>,
        gone: &BTreeMap<Node, String>,
    ) -> Self {
        let graph = self.graph.renumbered(n_numbers, number_of, gone);
        let mut steps = Vec::new();
        steps.resize_with(n_numbers, StepPolicy::default);
        for (node, number) in number_of {
            steps[number.index()] = self.step_policy(*node).cloned().unwrap_or_default();
        }
        let output = self.policy.output.and_then(|rule| {
            Some(OutputRule { node: *number_of.get(&rule.node)?, required: rule.required })
        });
        let policy = WorkflowPolicy { output, steps, ..self.policy.clone() };
        Self { graph, policy, ..self.clone() }
    }

    /// Which of its tasks no longer wait in this queue. Those that nobody serves follow when theirs
    /// has changed: they wait where [`queue`](Self::queue) says.
    #[must_use]
    pub fn moved_from(&self, queue: &Queue) -> MovedFrom {
        let is_moved = |node: &Node| self.queue(*node) != *queue;
        let nodes = self.graph.nodes().chain([Node::ON_FAILURE]);
        let (moved, left): (Vec<Node>, Vec<Node>) = nodes.partition(is_moved);
        match (moved.is_empty(), left.is_empty()) {
            (true, _) => MovedFrom::None,
            (_, true) => MovedFrom::All,
            _ => MovedFrom::Some(moved),
        }
    }

    /// The queues that the first tasks of a run wait in.
    #[must_use]
    pub fn root_queues(&self) -> BTreeSet<Queue> {
        let is_root = |node: &Node| self.graph.parents(*node).is_empty();
        self.graph.nodes().filter(is_root).map(|node| self.queue(node)).collect()
    }

    /// A node's name, also of the tasks the engine inserts.
    #[must_use]
    pub fn name(&self, node: Node) -> &str {
        if node == Node::ON_FAILURE {
            return ON_FAILURE_NAME;
        }
        self.graph.name(node).unwrap_or("?")
    }

    /// Every node with its name, the failure handler among them if there is one.
    pub fn named_nodes(&self) -> impl Iterator<Item = (Node, &str)> {
        let handler = self.policy.on_failure.then_some(Node::ON_FAILURE);
        self.graph.nodes().chain(handler).map(|node| (node, self.name(node)))
    }

    /// The node of this name, also of the tasks the engine inserts.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Node> {
        if name == ON_FAILURE_NAME {
            return Some(Node::ON_FAILURE);
        }
        self.graph.find(name)
    }

    /// How a node is executed, if it is one of the graph.
    #[must_use]
    pub fn step_policy(&self, node: Node) -> Option<&StepPolicy> {
        self.policy.steps.get(node.index())
    }

    /// When a node's failures are retried. The failure handler's own failure is final.
    #[must_use]
    pub fn retry(&self, node: Node) -> Retry {
        self.step_policy(node).map_or(Retry::never(), |policy| policy.retry)
    }

    /// The step whose output the run gives, if there is one.
    #[must_use]
    pub fn output_step(&self) -> Option<Node> {
        self.policy.output.map(|rule| rule.node)
    }

    /// The queue a node's tasks wait in. Tasks the engine inserts wait where the first step
    /// does, since whoever serves the workflow serves that queue.
    #[must_use]
    pub fn queue(&self, node: Node) -> Queue {
        let first = || self.graph.nodes().next().and_then(|first| self.step_policy(first));
        let policy = self.step_policy(node).or_else(first);
        policy.map_or_else(Queue::default_queue, |policy| policy.queue.clone())
    }
}
