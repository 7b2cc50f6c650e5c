//! The graph answers who comes before and after whom, and is built in linear time.

use stepwell_core::id::Node;
use stepwell_core::workflow::{Anchor, Definition, DraftStep, Edge};

use crate::{build, draft, link, link_at, step, step_needing};

/// Linear work takes well under a second here; quadratic work would take minutes.
const STEPS_MANY: usize = 100_000;

/// a -> b -> d -> e, a -> c -> d, and x apart from all.
fn diamond() -> Definition {
    build([
        step("a", &[]),
        step("b", &["a"]),
        step("c", &["a"]),
        step("d", &["b", "c"]),
        step("e", &["d"]),
        step("x", &[]),
    ])
}

fn names(definition: &Definition, nodes: impl IntoIterator<Item = Node>) -> String {
    let names: Vec<&str> = nodes.into_iter().map(|n| definition.name(n)).collect();
    names.join(" ")
}

#[test]
fn nodes_are_numbered_in_order_of_declaration_and_found_by_name() {
    let definition = diamond();
    assert_eq!(names(&definition, definition.graph.nodes()), "a b c d e x");
    assert_eq!(definition.find("d"), Some(Node(3)));
    assert_eq!(definition.find("ghost"), None);
    assert_eq!(definition.find("on_failure"), Some(Node::ON_FAILURE));
    assert_eq!(definition.name(Node::ON_FAILURE), "on_failure");
}

#[test]
fn children_mirror_parents_with_their_needs() {
    let definition = build([step("a", &[]), step("b", &["a"]), step_needing("c", 0)]);
    let edge = |node, needed| Edge { node: Node(node), needed };
    let graph = &definition.graph;
    assert_eq!(graph.children(Node(0)), [edge(1, false), edge(2, true)]);
    assert_eq!(graph.parents(Node(2)), [edge(0, true)]);
    assert!(graph.children(Node(2)).is_empty());
    assert!(graph.children(Node::ON_FAILURE).is_empty());
    assert!(graph.parents(Node::ON_FAILURE).is_empty());
}

#[test]
fn descendants_are_all_that_can_be_reached_without_the_node_itself() {
    let definition = diamond();
    let below = |nodes: &[&str]| {
        let nodes = nodes.iter().map(|name| definition.find(name).expect("a step"));
        names(&definition, definition.graph.descendants(nodes))
    };
    assert_eq!(below(&["a"]), "b c d e");
    assert_eq!(below(&["c"]), "d e");
    assert_eq!(below(&["e"]), "");
    assert_eq!(below(&["x", "d"]), "e");
    assert_eq!(below(&[]), "");
}

#[test]
fn ancestors_lie_upstream_and_nobody_is_its_own() {
    let definition = diamond();
    let node = |name| definition.find(name).expect("a step");
    let is_ancestor = |a, b| definition.graph.is_ancestor(node(a), node(b));
    assert!(is_ancestor("a", "e"));
    assert!(is_ancestor("b", "d"));
    assert!(!is_ancestor("e", "a"));
    assert!(!is_ancestor("b", "c"));
    assert!(!is_ancestor("a", "a"));
    assert!(!is_ancestor("x", "e"));
}

#[test]
fn a_line_of_many_steps_by_name_can_be_built() {
    let name = |n: usize| format!("step-{n}");
    let line = (0..STEPS_MANY).map(|n| match n {
        0 => step(&name(0), &[]),
        _ => step(&name(n), &[&name(n - 1)]),
    });
    let definition = build(line);
    let first = Node(0);
    assert_eq!(definition.graph.descendants([first]).len(), STEPS_MANY - 1);
    let last = definition.find(&name(STEPS_MANY - 1)).expect("the last step");
    assert!(definition.graph.is_ancestor(first, last));
}

#[test]
fn a_fan_of_many_steps_can_be_built() {
    let names: Vec<String> = (0..STEPS_MANY).map(|n| format!("part-{n}")).collect();
    let mut steps = vec![step("split", &[])];
    steps.extend(names.iter().map(|name| step(name, &["split"])));
    let parents: Vec<&str> = names.iter().map(String::as_str).collect();
    steps.push(step("join", &parents));
    let definition = build(steps);
    let join = definition.find("join").expect("the join");
    assert_eq!(definition.graph.children(Node(0)).len(), STEPS_MANY);
    assert_eq!(definition.graph.parents(join).len(), STEPS_MANY);
}

#[test]
fn a_chain_of_many_insertions_can_be_built() {
    let mut steps = vec![link("anchor")];
    // Each is inserted next to one that is declared after it.
    let name = |n: usize| format!("link-{n}");
    steps.extend((1..STEPS_MANY).map(|n| link_at(&name(n), Anchor::After, &name(n + 1))));
    steps.push(link_at(&name(STEPS_MANY), Anchor::After, "anchor"));
    let definition = build(steps);
    let first = definition.find(&name(1)).expect("the first link");
    let second = definition.find(&name(2)).expect("the second link");
    assert_eq!(definition.graph.parents(first)[0].node, second);
}

#[test]
fn a_cycle_of_many_steps_is_found_and_named() {
    let name = |n: usize| format!("step-{n}");
    let circle = (0..STEPS_MANY).map(|n| step(&name((n + 1) % STEPS_MANY), &[&name(n)]));
    let circle: Vec<DraftStep> = circle.collect();
    let error = draft(circle).resolve().expect_err("a cycle");
    assert!(error.to_string().starts_with("steps wait in a circle: "));
}
