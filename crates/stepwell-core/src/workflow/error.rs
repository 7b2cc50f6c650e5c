//! Why a workflow is refused when it is built. Each error names the step and the remedy.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::id::NameError;
use crate::limits::{EDGES_MAX, STEPS_MAX};

/// Why a workflow is refused when it is built.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DefinitionError {
    /// The workflow's name cannot be used.
    WorkflowName {
        /// The name as given.
        name: String,
        /// What is wrong with it.
        why: NameError,
    },
    /// A step's name cannot be used.
    StepName {
        /// The name as given.
        step: String,
        /// What is wrong with it.
        why: NameError,
    },
    /// A step has a name that the engine keeps for itself.
    ReservedName {
        /// The name as given.
        step: String,
    },
    /// Two steps have one name.
    DuplicateName {
        /// The name they share.
        step: String,
    },
    /// There is no step at all.
    NoSteps,
    /// There are more steps or edges than a workflow may have.
    TooLarge {
        /// How many steps there are.
        n_steps: usize,
        /// How many edges there are.
        n_edges: usize,
    },
    /// A parent was named that the workflow does not have.
    UnknownParent {
        /// The step that names it.
        step: String,
        /// The parent as named.
        parent: String,
    },
    /// A parent's handle belongs to another workflow.
    ForeignParent {
        /// The step it was given to.
        step: String,
    },
    /// The step that should give the run's output belongs to another workflow.
    ForeignOutput,
    /// A chain member is placed next to a step that is no member of the chain.
    UnknownAnchor {
        /// The chain member.
        step: String,
        /// What it should stand next to.
        anchor: String,
    },
    /// Steps wait for one another in a circle.
    Cycle {
        /// The steps of the circle, each after the one before it.
        steps: Vec<String>,
    },
    /// A policy of a step makes no sense.
    Policy {
        /// The step.
        step: String,
        /// The setting.
        field: &'static str,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A policy of the workflow as a whole makes no sense.
    WorkflowPolicy {
        /// The setting.
        field: &'static str,
        /// What is wrong with it.
        why: &'static str,
    },
}

impl fmt::Display for DefinitionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WorkflowName { name, why } => write!(f, "workflow name {name:?} {why}"),
            Self::StepName { step, why } => write!(f, "step name {step:?} {why}"),
            Self::ReservedName { step } => {
                write!(f, "step name {step:?} is kept for the engine, choose another")
            }
            Self::DuplicateName { step } => {
                write!(f, "two steps are named {step:?}, give one another name")
            }
            Self::NoSteps => write!(f, "the workflow has no steps, declare at least one"),
            Self::TooLarge { n_steps, n_edges } => write!(
                f,
                "{n_steps} steps and {n_edges} edges, the limits are {STEPS_MAX} and {EDGES_MAX}"
            ),
            Self::UnknownParent { step, parent } => {
                write!(f, "step {step:?} comes after {parent:?}, which is not declared")
            }
            Self::ForeignParent { step } => {
                write!(f, "step {step:?} was given a parent of another workflow")
            }
            Self::ForeignOutput => write!(f, "the output is a step of another workflow"),
            Self::UnknownAnchor { step, anchor } => {
                write!(
                    f,
                    "chain member {step:?} stands next to {anchor:?}, which is not in the chain"
                )
            }
            Self::Cycle { steps } => write!(f, "steps wait in a circle: {}", steps.join(" -> ")),
            Self::Policy { step, field, why } => write!(f, "step {step:?}, {field}: {why}"),
            Self::WorkflowPolicy { field, why } => write!(f, "{field} of the workflow: {why}"),
        }
    }
}

impl core::error::Error for DefinitionError {}
