//! What becomes of a definition that is registered: versions, policies, and numbers that stay.

use stepwell_core::id::Node;
use stepwell_core::retry::Retry;
use stepwell_core::workflow::{
    Definition, KnownVersion, NodeKind, Registration, VersionConflict, register,
};

use super::{build, step};

/// Registers definitions one after the other, as a store would, and gives what is stored.
fn store(given: impl IntoIterator<Item = Definition>) -> Vec<(u32, Definition)> {
    let mut stored: Vec<(u32, Definition)> = Vec::new();
    for given in given {
        match register(&known(&stored), &given).expect("no version conflicts") {
            Registration::New { version, definition } => stored.push((version, definition)),
            Registration::Refresh { index, version, definition } => {
                stored[index] = (version, definition);
            }
            Registration::Same { .. } => {}
        }
    }
    stored
}

fn known(stored: &[(u32, Definition)]) -> Vec<KnownVersion<'_>> {
    let known = |(version, definition)| KnownVersion { version, definition };
    stored.iter().map(|(version, definition)| known((*version, definition))).collect()
}

/// Names with their numbers; those of steps that are gone in brackets.
fn numbers(definition: &Definition) -> String {
    let graph = &definition.graph;
    let each = (0..graph.n_numbers()).map(|ix| {
        let node = Node(u32::try_from(ix).expect("numbers are small"));
        let name = graph.name(node).unwrap_or("?");
        match graph.kind(node) {
            NodeKind::Gone => format!("({name})"),
            _ => name.to_owned(),
        }
    });
    each.collect::<Vec<_>>().join(" ")
}

fn versioned(version: u32, mut definition: Definition) -> Definition {
    definition.version = Some(version);
    definition
}

#[test]
fn a_step_keeps_its_number_a_new_one_is_appended_and_one_that_vanished_stays_gone() {
    let first = build([step("a", &[]), step("b", &["a"]), step("c", &["b"])]);
    let second = build([step("x", &[]), step("c", &["x"]), step("a", &["x"])]);
    let third = build([step("b", &[]), step("y", &["b"])]);
    let stored = store([first, second, third]);
    let all: Vec<String> = stored.iter().map(|(_, definition)| numbers(definition)).collect();
    assert_eq!(all, ["a b c", "a (b) c x", "(a) b (c) (x) y"]);
    let versions: Vec<u32> = stored.iter().map(|(version, _)| *version).collect();
    assert_eq!(versions, [1, 2, 3]);
}

#[test]
fn edges_policies_and_the_output_follow_the_numbers() {
    let first = build([step("a", &[]), step("b", &["a"])]);
    let mut second = build([step("x", &[]), step("b", &["x"])]);
    second.policy.steps[1].retry = Retry::exponential(7);
    second.policy.output =
        Some(stepwell_core::workflow::OutputRule { node: Node(1), required: true });
    let signature = second.signature;
    let stored = store([first, second]).pop().unwrap().1;
    assert_eq!(numbers(&stored), "(a) b x");
    let parents: Vec<Node> = stored.graph.parents(Node(1)).iter().map(|e| e.node).collect();
    assert_eq!(parents, [Node(2)]);
    assert_eq!(stored.retry(Node(1)), Retry::exponential(7));
    assert_eq!(stored.policy.output.map(|rule| rule.node), Some(Node(1)));
    assert_eq!(stored.signature, signature);
    let nodes: Vec<Node> = stored.graph.nodes().collect();
    assert_eq!(nodes, [Node(1), Node(2)], "a step that is gone is no node");
}

#[test]
fn a_renamed_step_keeps_its_number_by_an_alias_unless_another_step_bears_that_name() {
    let first = build([step("a", &[]), step("b", &["a"])]);
    let mut renamed = build([step("start", &[]), step("b", &["start"])]);
    renamed.policy.steps[0].aliases = vec!["a".into()];
    assert_eq!(numbers(&store([first.clone(), renamed]).pop().unwrap().1), "start b");
    let mut both = build([step("start", &[]), step("a", &["start"])]);
    both.policy.steps[0].aliases = vec!["a".into()];
    assert_eq!(numbers(&store([first, both]).pop().unwrap().1), "a (b) start");
}

#[test]
fn a_known_structure_takes_over_policies_and_a_greater_version() {
    let first = build([step("a", &[])]);
    let second = build([step("b", &[])]);
    let mut again = versioned(3, first.clone());
    again.policy.fail_fast = true;
    let stored = store([first.clone(), second, again]);
    assert_eq!(stored.len(), 2);
    assert_eq!(stored[0].0, 3);
    assert!(stored[0].1.policy.fail_fast);
    assert_eq!(register(&known(&stored), &stored[0].1), Ok(Registration::Same { index: 0 }));
}

#[test]
fn a_version_of_another_structure_or_below_its_own_is_refused() {
    let stored =
        store([versioned(2, build([step("a", &[])])), versioned(5, build([step("b", &[])]))]);
    let refused =
        |version, name| register(&known(&stored), &versioned(version, build([step(name, &[])])));
    assert_eq!(refused(5, "a"), Err(VersionConflict { asked: 5, stored: 5 }));
    assert_eq!(refused(2, "c"), Err(VersionConflict { asked: 2, stored: 2 }));
    assert_eq!(refused(1, "a"), Err(VersionConflict { asked: 1, stored: 2 }));
}
