//! Chain members follow whatever stands before them.

use stepwell_core::workflow::Anchor::{After, Before};
use stepwell_core::workflow::{DefinitionError, DraftStep};

use crate::{build, chained, draft, edges, link, link_at, step};

fn check(steps: impl IntoIterator<Item = DraftStep>, expected: &str) {
    assert_eq!(edges(&build(steps)), expected);
}

#[test]
fn chain_members_and_explicit_nodes_share_one_namespace() {
    // G1
    check(
        [
            link("validate"),
            step("audit", &["validate"]),
            link("charge"),
            chained("ship", None, None, &["audit"]),
        ],
        "validate; audit < validate; charge < validate; ship < charge, audit",
    );
}

#[test]
fn an_explicit_node_does_not_move_the_chain_on() {
    // G1
    check([link("a"), step("x", &[]), link("b"), step("y", &["b"])], "a; x; b < a; y < b");
}

#[test]
fn a_member_inserted_later_becomes_the_predecessor_of_what_follows() {
    // G2
    check(
        [link("validate"), link("complete"), link_at("audit", After, "validate")],
        "validate; complete < audit; audit < validate",
    );
    // G2
    check(
        [link("validate"), link("complete"), link_at("audit", Before, "validate")],
        "validate < audit; complete < validate; audit",
    );
}

#[test]
fn of_several_insertions_at_one_anchor_the_later_stands_next_to_it() {
    // G2
    check(
        [link("x"), link("y"), link_at("a", After, "x"), link_at("b", After, "x")],
        "x; y < a; a < b; b < x",
    );
    // G2
    check([link("x"), link_at("a", Before, "x"), link_at("b", Before, "x")], "x < b; a; b < a");
}

#[test]
fn insertions_stand_the_same_when_their_anchor_is_declared_between_them() {
    // G2
    check(
        [link("z"), link_at("a", After, "x"), link_at("x", After, "z"), link_at("b", After, "x")],
        "z; a < b; x < z; b < x",
    );
}

#[test]
fn insertions_at_inserted_members_stay_with_them() {
    // G2
    check(
        [
            link("x"),
            link("end"),
            link_at("a", After, "x"),
            link_at("before-a", Before, "a"),
            link_at("after-a", After, "a"),
            link_at("b", After, "x"),
        ],
        "x; end < after-a; a < before-a; before-a < b; after-a < a; b < x",
    );
}

#[test]
fn an_explicit_list_overrides_the_position_and_later_members_continue_from_it() {
    // G3
    check(
        [link("a"), link("b"), chained("c", None, Some(&["a"]), &[]), link("d")],
        "a; b < a; c < a; d < c",
    );
    // G3
    check([link("a"), chained("b", None, Some(&[]), &[]), link("c")], "a; b; c < b");
}

#[test]
fn also_after_adds_to_the_position_or_to_the_list() {
    let outside = step("x", &[]);
    // G3
    check(
        [outside.clone(), link("a"), chained("b", None, None, &["x"]), link("c")],
        "x; a; b < a, x; c < b",
    );
    // G3
    check(
        [outside, link("a"), link("b"), chained("c", None, Some(&["a"]), &["x"])],
        "x; a; b < a; c < a, x",
    );
}

#[test]
fn an_anchor_that_is_not_in_the_chain_is_refused_by_name() {
    let unknown = |steps: Vec<DraftStep>| match draft(steps).resolve() {
        Err(DefinitionError::UnknownAnchor { step, anchor }) => (step, anchor),
        other => panic!("{other:?}"),
    };
    // G2: the member at fault is named, not one that hangs on it.
    let hanging = link_at("a", After, "b");
    let found = unknown(vec![hanging, link_at("b", After, "ghost"), link("c")]);
    assert_eq!(found, ("b".into(), "ghost".into()));
    // G2
    let found = unknown(vec![step("x", &[]), link_at("a", Before, "x")]);
    assert_eq!(found, ("a".into(), "x".into()));
}

#[test]
fn members_that_stand_next_to_one_another_in_a_circle_are_refused_by_name() {
    let circle = [link("z"), link_at("a", After, "b"), link_at("b", Before, "a")];
    let error = draft(circle).resolve().expect_err("a circle");
    let steps = ["a", "b", "a"].map(String::from).to_vec();
    // R0
    assert_eq!(error, DefinitionError::Cycle { steps });
    let on_itself = [link("z"), link_at("a", After, "a")];
    assert!(draft(on_itself).resolve().is_err());
}
