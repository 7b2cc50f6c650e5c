//! A signature stands for the structure, the whole structure, and nothing but the structure.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use stepwell_core::id::{Node, Queue};
use stepwell_core::retry::Retry;
use stepwell_core::workflow::{
    Draft, DraftStep, Edge, Graph, GraphNode, NodeKind, OutputRule, Signature, StepPolicy,
};

use crate::{build, draft, link, step, step_needing};

fn signature(steps: impl IntoIterator<Item = DraftStep>) -> Signature {
    build(steps).signature
}

#[test]
fn the_order_of_declaration_does_not_count() {
    let written = [step("a", &[]), step("b", &["a"]), step("c", &["a", "b"])];
    let moved = [step("c", &["b", "a"]), step("a", &[]), step("b", &["a"])];
    assert_eq!(signature(written), signature(moved));
}

#[test]
fn how_a_step_was_placed_does_not_count() {
    assert_eq!(signature([link("a"), link("b")]), signature([step("a", &[]), step("b", &["a"])]));
}

#[test]
fn policies_do_not_count() {
    let plain = signature([step("a", &[]), step("b", &["a"])]);
    let policy = StepPolicy {
        retry: Retry::exponential(5).jitter(),
        timeout: Some(Duration::from_secs(1)),
        heartbeat_timeout: Some(Duration::from_secs(1)),
        sleep: Duration::from_secs(1),
        wait: None,
        queue: Queue::new("other").expect("a good name"),
        is_blocking: true,
        aliases: vec!["former".into()],
    };
    let a = DraftStep { policy, ..step("a", &[]) };
    let draft = Draft {
        version: Some(7),
        fail_fast: true,
        on_failure_timeout: Some(Duration::from_secs(1)),
        deadline: Some(Duration::from_secs(1)),
        output: Some(OutputRule { node: Node(1), required: true }),
        ..draft([a, step("b", &["a"])])
    };
    assert_eq!(draft.resolve().expect("a good draft").signature, plain);
}

#[test]
fn a_failure_handler_counts_because_it_is_a_task_of_its_own() {
    let plain = signature([step("a", &[])]);
    let handled = Draft { on_failure: true, ..draft([step("a", &[])]) };
    assert_ne!(handled.resolve().expect("a good draft").signature, plain);
}

#[test]
fn names_edges_kinds_and_needs_count() {
    let of_kind = |kind| DraftStep { kind, ..step("b", &["a"]) };
    let a = || step("a", &[]);
    let renamed = Draft { workflow: "refunds".into(), ..draft([a(), step("b", &["a"])]) };
    let different = [
        signature([a()]),
        signature([a(), step("b", &[])]),
        signature([a(), step("b", &["a"])]),
        signature([step("a", &["b"]), step("b", &[])]),
        signature([a(), step("c", &["a"])]),
        signature([a(), step("b", &["a", "a"])]),
        signature([a(), step_needing("b", 0)]),
        signature([a(), of_kind(NodeKind::Sleep)]),
        signature([a(), of_kind(NodeKind::ConditionalSleep)]),
        signature([a(), of_kind(NodeKind::Wait)]),
        signature([a(), step("b", &["a"]), step("c", &[])]),
        renamed.resolve().expect("a good draft").signature,
    ];
    let distinct: BTreeSet<Signature> = different.into_iter().collect();
    assert_eq!(distinct.len(), different.len());
}

#[test]
fn names_that_read_alike_when_joined_do_not_collide() {
    let pairs = [["ab", "c"], ["a", "bc"], ["abc", "d"], ["a", "b"]];
    let of_pair = |[a, b]: [&str; 2]| signature([step(a, &[]), step(b, &[a])]);
    let distinct: BTreeSet<Signature> = pairs.into_iter().map(of_pair).collect();
    assert_eq!(distinct.len(), pairs.len());
    let of_workflow = |workflow: &str, name: &str| {
        let workflow = workflow.into();
        let draft = Draft { workflow, ..draft([step(name, &[])]) };
        draft.resolve().expect("a good draft").signature
    };
    assert_ne!(of_workflow("ab", "c"), of_workflow("a", "bc"));
}

#[test]
fn a_signature_prints_as_hex_with_a_short_form_for_people() {
    let signature = signature([step("a", &[])]);
    let text = signature.to_string();
    assert_eq!(text.len(), 64);
    assert!(text.chars().all(|c| c.is_ascii_hexdigit()));
    assert_eq!(signature.short(), text[..8]);
}

/// A small graph of names that are easily confused, with edges to earlier nodes.
fn confusable() -> impl Strategy<Value = BTreeSet<(String, BTreeSet<String>)>> {
    let names = prop::collection::btree_set("[ab\u{1}]{1,3}", 1..4);
    (names, any::<u32>()).prop_map(|(names, bits)| {
        let names: Vec<String> = names.into_iter().collect();
        let has_edge = |child: usize, parent: usize| bits >> (child * 4 + parent) & 1 == 1;
        let parents_of = |child: usize| {
            let parents = (0..child).filter(|parent| has_edge(child, *parent));
            parents.map(|parent| names[parent].clone()).collect()
        };
        let nodes = (0..names.len()).map(|ix| (names[ix].clone(), parents_of(ix)));
        nodes.collect()
    })
}

fn signature_of(nodes: &BTreeSet<(String, BTreeSet<String>)>) -> Signature {
    let number = |name: &String| {
        let found = nodes.iter().position(|(known, _)| known == name);
        Node(u32::try_from(found.expect("a known name")).expect("few nodes"))
    };
    let edge = |name: &String| Edge { node: number(name), needed: false };
    let graph_node = |(name, parents): &(String, BTreeSet<String>)| GraphNode {
        name: name.clone(),
        kind: NodeKind::Step,
        parents: parents.iter().map(edge).collect(),
    };
    Signature::of("w", &Graph::new(nodes.iter().map(graph_node).collect()), false)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn two_structures_have_one_signature_only_if_they_are_equal(
        one in confusable(),
        other in confusable(),
    ) {
        prop_assert_eq!(signature_of(&one) == signature_of(&other), one == other);
    }
}
