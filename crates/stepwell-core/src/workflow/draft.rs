//! A workflow while it is being declared.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::chain::{self, Insertion, Member};
use super::validate::{self, Names};
use super::{Definition, DefinitionError, Edge, Graph, GraphNode, NodeKind, OutputRule};
use super::{Signature, StepPolicy, WorkflowPolicy};
use crate::id::Node;

/// A workflow while it is being declared. Steps are numbered in order of declaration.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// The workflow's name.
    pub workflow: String,
    /// The author's version, if one was given.
    pub version: Option<u32>,
    /// The steps in order of declaration.
    pub steps: Vec<DraftStep>,
    /// Whether a failed task cancels everything else of the run.
    pub fail_fast: bool,
    /// Whether there is a failure handler.
    pub on_failure: bool,
    /// How long one execution of the failure handler may take.
    pub on_failure_timeout: Option<Duration>,
    /// How long a run may take, unless its start says otherwise.
    pub deadline: Option<Duration>,
    /// The step whose output is the run's.
    pub output: Option<OutputRule>,
}

/// One step while its workflow is being declared.
#[derive(Clone, Debug)]
pub struct DraftStep {
    /// Its name.
    pub name: String,
    /// What it does when it becomes ready.
    pub kind: NodeKind,
    /// Where it stands.
    pub placement: Placement,
    /// How it is executed.
    pub policy: StepPolicy,
}

/// Where a step stands: by explicit parents, or in the chain.
#[derive(Clone, Debug)]
pub enum Placement {
    /// After exactly these parents.
    Explicit(Vec<ParentRef>),
    /// In the chain, after whatever stands before it.
    Chain {
        /// Where it is inserted; at the end if not given.
        insertion: Option<Insertion>,
        /// Parents that replace the one given by position. Later members continue from here.
        instead: Option<Vec<ParentRef>>,
        /// Parents in addition to the one given by position.
        also: Vec<ParentRef>,
    },
}

/// A parent as it was declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParentRef {
    /// By handle.
    Handle {
        /// The step's number in order of declaration.
        index: u32,
        /// The [`workflow_hash`] of the workflow the handle came from.
        workflow: u32,
        /// Whether the child cannot do without it.
        needed: bool,
    },
    /// By name.
    Name(String),
}

/// A short digest of a workflow's name that handles carry, so that one given to another workflow
/// is refused.
#[must_use]
pub fn workflow_hash(name: &str) -> u32 {
    // FNV-1a: handles are compared within one program only, never stored.
    name.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

impl Draft {
    /// Binds chains, checks everything, and gives the definition. Node numbers are the order of
    /// declaration.
    ///
    /// # Errors
    /// With the first thing that is wrong, named.
    pub fn resolve(self) -> Result<Definition, DefinitionError> {
        let parents = self.bind(&validate::names(&self)?)?;
        validate::output(&self)?;
        validate::sizes(&parents)?;
        validate::policies(&self)?;
        let nodes = self.steps.iter().zip(parents).map(|(step, parents)| GraphNode {
            name: step.name.clone(),
            kind: step.kind,
            parents,
        });
        let graph = Graph::new(nodes.collect());
        validate::acyclic(&graph)?;
        Ok(Definition {
            signature: Signature::of(&self.workflow, &graph, self.on_failure),
            workflow: self.workflow,
            version: self.version,
            graph,
            policy: WorkflowPolicy {
                fail_fast: self.fail_fast,
                on_failure: self.on_failure,
                on_failure_timeout: self.on_failure_timeout,
                deadline: self.deadline,
                output: self.output,
                steps: self.steps.into_iter().map(|step| step.policy).collect(),
            },
        })
    }

    /// The parents of every step, with positions in the chain turned into edges.
    fn bind(&self, names: &Names<'_>) -> Result<Vec<Vec<Edge>>, DefinitionError> {
        let before = self.chain_predecessors()?;
        let mut bound = Vec::with_capacity(self.steps.len());
        for (step, predecessor) in self.steps.iter().zip(before) {
            bound.push(self.parents_of(names, step, predecessor)?);
        }
        Ok(bound)
    }

    fn parents_of(
        &self,
        names: &Names<'_>,
        step: &DraftStep,
        predecessor: Option<Node>,
    ) -> Result<Vec<Edge>, DefinitionError> {
        let (position, declared, also): (_, &[_], &[_]) = match &step.placement {
            Placement::Explicit(parents) => (None, parents, &[]),
            Placement::Chain { instead: Some(parents), also, .. } => (None, parents, also),
            Placement::Chain { instead: None, also, .. } => (predecessor, &[], also),
        };
        let edge = |node| Edge { node, needed: false };
        let mut parents: Vec<Edge> = position.map(edge).into_iter().collect();
        for parent in declared.iter().chain(also) {
            parents.push(validate::parent(self, names, step, parent)?);
        }
        Ok(parents)
    }

    /// For every step, the chain member that stands before it.
    fn chain_predecessors(&self) -> Result<Vec<Option<Node>>, DefinitionError> {
        let mut numbers = Vec::new();
        let mut members: Vec<Member<'_>> = Vec::new();
        for (number, step) in (0_u32..).zip(&self.steps) {
            if let Placement::Chain { insertion, .. } = &step.placement {
                numbers.push(number);
                members.push((step.name.as_str(), insertion.as_ref()));
            }
        }
        let mut before = alloc::vec![None; self.steps.len()];
        let order = chain::order(&members)?;
        for pair in order.windows(2) {
            before[numbers[pair[1]] as usize] = Some(Node(numbers[pair[0]]));
        }
        Ok(before)
    }
}
