//! What an author may declare, and what becomes of it.

mod chain;
mod graph;
mod refuse;
mod registration;
mod signature;
mod wait;

use stepwell_core::id::Node;
use stepwell_core::workflow::{
    Anchor, Definition, Draft, DraftStep, Insertion, NodeKind, ParentRef, Placement, StepPolicy,
    workflow_hash,
};

const WORKFLOW: &str = "orders";

fn draft(steps: impl IntoIterator<Item = DraftStep>) -> Draft {
    Draft { workflow: WORKFLOW.into(), steps: steps.into_iter().collect(), ..Draft::default() }
}

fn build(steps: impl IntoIterator<Item = DraftStep>) -> Definition {
    let resolved = draft(steps).resolve();
    resolved.unwrap_or_else(|error| panic!("refused: {error}"))
}

/// An explicit step after the parents of these names.
fn step(name: &str, parents: &[&str]) -> DraftStep {
    placed(name, Placement::Explicit(by_name(parents)))
}

/// An explicit step after a parent it needs, given by number.
fn step_needing(name: &str, parent: u32) -> DraftStep {
    placed(name, Placement::Explicit(vec![by_handle(parent, true)]))
}

/// A chain member at the end of the chain.
fn link(name: &str) -> DraftStep {
    chained(name, None, None, &[])
}

/// A chain member next to another.
fn link_at(name: &str, anchor: Anchor, step: &str) -> DraftStep {
    let step = step.into();
    chained(name, Some(Insertion { anchor, step }), None, &[])
}

/// A chain member with parents instead of, or in addition to, the one before it.
fn chained(
    name: &str,
    insertion: Option<Insertion>,
    instead: Option<&[&str]>,
    also: &[&str],
) -> DraftStep {
    let placement =
        Placement::Chain { insertion, instead: instead.map(by_name), also: by_name(also) };
    placed(name, placement)
}

fn placed(name: &str, placement: Placement) -> DraftStep {
    DraftStep { name: name.into(), kind: NodeKind::Step, placement, policy: StepPolicy::default() }
}

fn by_name(parents: &[&str]) -> Vec<ParentRef> {
    let parent = |name: &&str| ParentRef::Name((*name).into());
    parents.iter().map(parent).collect()
}

fn by_handle(index: u32, needed: bool) -> ParentRef {
    ParentRef::Handle { index, workflow: workflow_hash(WORKFLOW), needed }
}

/// The edges as text: `a; b < a; c < a!, b`.
fn edges(definition: &Definition) -> String {
    let graph = &definition.graph;
    let describe = |node: Node| {
        let parent = |edge: &stepwell_core::workflow::Edge| {
            let mark = if edge.needed { "!" } else { "" };
            format!("{}{mark}", definition.name(edge.node))
        };
        let parents: Vec<String> = graph.parents(node).iter().map(parent).collect();
        let name = definition.name(node);
        if parents.is_empty() {
            return name.to_string();
        }
        format!("{name} < {}", parents.join(", "))
    };
    graph.nodes().map(describe).collect::<Vec<_>>().join("; ")
}
