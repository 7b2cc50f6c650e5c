//! The checks a workflow must pass before it is accepted.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use super::draft::workflow_hash;
use super::{DefinitionError, Draft, DraftStep, Edge, Graph, ON_FAILURE_NAME, ParentRef};
use crate::id::{Node, check_name};
use crate::limits::{EDGES_MAX, SPAN_MAX, STEPS_MAX};

/// The number of every step, by its name.
pub(super) type Names<'draft> = BTreeMap<&'draft str, Node>;

/// Names are usable, unique and not reserved, and there is at least one step.
pub(super) fn names(draft: &Draft) -> Result<Names<'_>, DefinitionError> {
    check_name(&draft.workflow)
        .map_err(|why| DefinitionError::WorkflowName { name: draft.workflow.clone(), why })?;
    if draft.steps.is_empty() {
        return Err(DefinitionError::NoSteps);
    }
    let mut numbers = BTreeMap::new();
    for (number, step) in (0_u32..).zip(&draft.steps) {
        let name = &step.name;
        check_name(name).map_err(|why| DefinitionError::StepName { step: name.clone(), why })?;
        if name == ON_FAILURE_NAME {
            return Err(DefinitionError::ReservedName { step: name.clone() });
        }
        if numbers.insert(name.as_str(), Node(number)).is_some() {
            return Err(DefinitionError::DuplicateName { step: name.clone() });
        }
    }
    Ok(numbers)
}

/// A declared parent as an edge, if it belongs to this workflow.
pub(super) fn parent(
    draft: &Draft,
    names: &Names<'_>,
    step: &DraftStep,
    parent: &ParentRef,
) -> Result<Edge, DefinitionError> {
    match parent {
        ParentRef::Handle { index, workflow, needed } => {
            let known = (*index as usize) < draft.steps.len();
            if !known || *workflow != workflow_hash(&draft.workflow) {
                return Err(DefinitionError::ForeignParent { step: step.name.clone() });
            }
            Ok(Edge { node: Node(*index), needed: *needed })
        }
        ParentRef::Name(name) => {
            let unknown =
                || DefinitionError::UnknownParent { step: step.name.clone(), parent: name.clone() };
            names
                .get(name.as_str())
                .map(|node| Edge { node: *node, needed: false })
                .ok_or_else(unknown)
        }
    }
}

/// The step that gives the run's output is one of the workflow.
pub(super) fn output(draft: &Draft) -> Result<(), DefinitionError> {
    match draft.output {
        Some(rule) if rule.node.index() >= draft.steps.len() => Err(DefinitionError::ForeignOutput),
        _ => Ok(()),
    }
}

/// The workflow fits the limits on steps and edges.
pub(super) fn sizes(parents: &[Vec<Edge>]) -> Result<(), DefinitionError> {
    let (n_steps, n_edges) = (parents.len(), parents.iter().map(Vec::len).sum());
    if n_steps > STEPS_MAX || n_edges > EDGES_MAX {
        return Err(DefinitionError::TooLarge { n_steps, n_edges });
    }
    Ok(())
}

/// Time-outs, sleeps, waits and retries make sense.
pub(super) fn policies(draft: &Draft) -> Result<(), DefinitionError> {
    let of_workflow =
        [("deadline", draft.deadline), ("timeout of on_failure", draft.on_failure_timeout)];
    for (field, span) in of_workflow {
        check_span(span).map_err(|why| DefinitionError::WorkflowPolicy { field, why })?;
    }
    for step in &draft.steps {
        let refuse = |field, why| DefinitionError::Policy { step: step.name.clone(), field, why };
        step.policy.retry.check().map_err(|why| refuse("retry", why))?;
        let spans = [
            ("timeout", step.policy.timeout),
            ("heartbeat_timeout", step.policy.heartbeat_timeout),
        ];
        for (field, span) in spans {
            check_span(span).map_err(|why| refuse(field, why))?;
        }
        if step.policy.sleep > SPAN_MAX {
            return Err(refuse("sleep", "is longer than a hundred years"));
        }
        let wait = step.policy.wait.as_ref().map_or(Ok(()), |wait| wait.wait_for.check());
        wait.map_err(|(field, why)| refuse(field, why))?;
    }
    Ok(())
}

/// A span that something must end within is neither zero nor absurd.
fn check_span(span: Option<Duration>) -> Result<(), &'static str> {
    match span {
        Some(span) if span.is_zero() => Err("is zero"),
        Some(span) if span > SPAN_MAX => Err("is longer than a hundred years"),
        _ => Ok(()),
    }
}

/// No step waits for itself, directly or through others.
pub(super) fn acyclic(graph: &Graph) -> Result<(), DefinitionError> {
    let mut n_open: Vec<usize> = graph.nodes().map(|node| graph.parents(node).len()).collect();
    let mut ready: Vec<Node> = graph.nodes().filter(|node| n_open[node.index()] == 0).collect();
    let mut n_sorted = 0;
    while let Some(node) = ready.pop() {
        n_sorted += 1;
        for child in graph.children(node) {
            n_open[child.node.index()] -= 1;
            if n_open[child.node.index()] == 0 {
                ready.push(child.node);
            }
        }
    }
    if n_sorted == graph.n_nodes() {
        return Ok(());
    }
    Err(DefinitionError::Cycle { steps: circle(graph, &n_open) })
}

/// Walks upwards among the unsorted nodes until one comes up twice.
fn circle(graph: &Graph, n_open: &[usize]) -> Vec<String> {
    let unsorted = |node: Node| n_open[node.index()] > 0;
    let name = |node: Node| graph.name(node).unwrap_or_default().to_string();
    let Some(mut node) = graph.nodes().find(|node| unsorted(*node)) else {
        return vec![];
    };
    let mut path = vec![node];
    let mut places = vec![None; graph.n_nodes()];
    places[node.index()] = Some(0);
    while let Some(edge) = graph.parents(node).iter().find(|edge| unsorted(edge.node)) {
        node = edge.node;
        if let Some(start) = places[node.index()] {
            let mut circle: Vec<String> = path[start..].iter().map(|n| name(*n)).collect();
            circle.push(name(path[start]));
            circle.reverse();
            return circle;
        }
        places[node.index()] = Some(path.len());
        path.push(node);
    }
    path.into_iter().map(name).collect()
}
