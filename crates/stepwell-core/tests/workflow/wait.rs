//! That a node waits is structure; what it waits for and how long is policy, and must make sense.

use std::time::Duration;

use stepwell_core::id::Node;
use stepwell_core::limits::{
    ATTRIBUTE_NAME_BYTES_MAX, ATTRIBUTE_VALUE_BYTES_MAX, ATTRIBUTES_MAX, AWAITED_SIGNALS_MAX,
    NAME_BYTES_MAX, SPAN_MAX,
};
use stepwell_core::run::{Attributes, WaitFor, check_attributes};
use stepwell_core::workflow::{
    Definition, Draft, DraftStep, KnownVersion, NodeKind, Registration, StepPolicy, WaitPolicy,
    register,
};

use crate::{build, draft, step};

const SECOND: Duration = Duration::from_secs(1);

fn wait_for(signals: &[&str], timeout: Option<Duration>) -> WaitFor {
    let signals = signals.iter().map(|name| (*name).into()).collect();
    WaitFor { signals, matching: [].into(), timeout }
}

fn wait(name: &str, wait_for: WaitFor) -> DraftStep {
    let wait = Some(WaitPolicy { wait_for, asks_worker: false, is_any: false });
    let policy = StepPolicy { wait, ..StepPolicy::default() };
    DraftStep { kind: NodeKind::Wait, policy, ..step(name, &[]) }
}

fn approval(wait_for: WaitFor) -> Definition {
    build([step("start", &[]), wait("approval", wait_for)])
}

fn attributes(n: usize) -> Attributes {
    (0..n).map(|ix| (format!("name {ix}"), String::new())).collect()
}

fn attribute(name: &str, value: &str) -> Attributes {
    [(name.to_owned(), value.to_owned())].into()
}

/// What becomes of a definition when another one is stored as version 1.
fn registered(stored: &Definition, given: &Definition) -> Registration {
    let known = KnownVersion { version: 1, definition: stored };
    register(&[known], given).expect("no version conflicts")
}

#[test]
fn that_a_node_waits_is_structure() {
    let stored = approval(wait_for(&["approved"], None));
    let given = build([step("start", &[]), step("approval", &[])]);
    assert_ne!(stored.signature, given.signature);
    assert!(matches!(registered(&stored, &given), Registration::New { version: 2, .. }));
}

#[test]
fn what_a_node_waits_for_is_refreshed_without_a_new_version() {
    let stored = approval(wait_for(&["approved"], None));
    let matching = WaitFor { matching: attributes(1), ..wait_for(&["approved"], None) };
    let others = [
        wait_for(&["approved", "refused"], None),
        wait_for(&["approved"], Some(SECOND)),
        wait_for(&["approved"], Some(Duration::ZERO)),
        matching,
    ];
    for other in others {
        // Another program may declare its steps in another order.
        let given = build([wait("approval", other.clone()), step("start", &[])]);
        let Registration::Refresh { index: 0, version: 1, definition } =
            registered(&stored, &given)
        else {
            panic!("{other:?} is no refresh");
        };
        assert_eq!(definition.graph, stored.graph);
        let policy = definition.step_policy(Node(1)).and_then(|policy| policy.wait.as_ref());
        assert_eq!(policy.map(|wait| &wait.wait_for), Some(&other));
        assert_eq!(registered(&definition, &given), Registration::Same { index: 0 });
    }
}

#[test]
fn whether_a_worker_is_asked_is_refreshed_without_a_new_version() {
    let stored = approval(wait_for(&["approved"], None));
    let mut asking = wait("approval", wait_for(&["approved"], None));
    asking.policy.wait.as_mut().expect("a wait").asks_worker = true;
    let given = build([step("start", &[]), asking]);
    let refreshed = registered(&stored, &given);
    assert!(matches!(refreshed, Registration::Refresh { version: 1, .. }), "{refreshed:?}");
}

#[test]
fn deadlines_are_refreshed_without_a_new_version() {
    let plain = Draft { on_failure: true, ..draft([step("a", &[])]) };
    let stored = plain.clone().resolve().expect("a good draft");
    let given = Draft { deadline: Some(SECOND), on_failure_timeout: Some(SECOND), ..plain };
    let given = given.resolve().expect("a good draft");
    let Registration::Refresh { version: 1, definition, .. } = registered(&stored, &given) else {
        panic!("no refresh");
    };
    let policy = &definition.policy;
    assert_eq!((policy.deadline, policy.on_failure_timeout), (Some(SECOND), Some(SECOND)));
    let back = registered(&definition, &stored);
    let Registration::Refresh { definition, .. } = back else { panic!("{back:?}") };
    assert_eq!(definition.policy.deadline, None);
}

#[test]
fn a_wait_keeps_its_policy_when_its_structure_gets_other_numbers() {
    let stored = approval(wait_for(&["approved"], None));
    let given = build([wait("approval", wait_for(&["refused"], None)), step("end", &[])]);
    let Registration::New { definition, .. } = registered(&stored, &given) else {
        panic!("the structure is new");
    };
    let node = definition.find("approval").expect("a step");
    assert_eq!((node, definition.graph.kind(node)), (Node(1), NodeKind::Wait));
    let wait = definition.step_policy(node).and_then(|policy| policy.wait.as_ref());
    assert_eq!(wait.map(|wait| &wait.wait_for), Some(&wait_for(&["refused"], None)));
}

#[test]
fn a_wait_that_makes_no_sense_is_refused_by_step_and_field() {
    let bad_name = "signals: a name is empty, over 200 bytes, or has a control character";
    let matching = |matching| WaitFor { matching, ..wait_for(&["approved"], None) };
    let too_long = "x".repeat(NAME_BYTES_MAX + 1);
    let refused = [
        (wait_for(&[], None), "signals: no signal is named"),
        (wait_for(&["s"; AWAITED_SIGNALS_MAX + 1], None), "signals: more than 64 are named"),
        (wait_for(&["approved", ""], None), bad_name),
        (wait_for(&[&too_long], None), bad_name),
        (wait_for(&["a\nb"], None), bad_name),
        (
            wait_for(&["approved"], Some(SPAN_MAX + SECOND)),
            "timeout: is longer than a hundred years",
        ),
        (matching(attributes(ATTRIBUTES_MAX + 1)), "matching: there are more than 8 attributes"),
    ];
    for (wait_for, why) in refused {
        // R0
        let error = draft([wait("approval", wait_for)]).resolve().expect_err("it is refused");
        assert_eq!(error.to_string(), format!("step \"approval\", {why}"));
    }
}

#[test]
fn a_wait_at_its_limits_is_accepted() {
    let name = "x".repeat(NAME_BYTES_MAX);
    let signals = wait_for(&[name.as_str(); AWAITED_SIGNALS_MAX], Some(SPAN_MAX));
    build([wait("approval", WaitFor { matching: attributes(ATTRIBUTES_MAX), ..signals })]);
    build([wait("approval", wait_for(&["approved"], Some(Duration::ZERO)))]);
}

#[test]
fn attributes_that_no_store_could_keep_are_refused() {
    let name = "n".repeat(ATTRIBUTE_NAME_BYTES_MAX);
    let value = "v".repeat(ATTRIBUTE_VALUE_BYTES_MAX);
    assert_eq!(check_attributes(&attribute(&name, &value)), Ok(()));
    assert_eq!(check_attributes(&attribute("order", "")), Ok(()));
    assert_eq!(check_attributes(&attributes(ATTRIBUTES_MAX)), Ok(()));
    let bad_name = "an attribute's name is empty, over 64 bytes, or has a control character";
    let bad_value = "an attribute's value is over 256 bytes, or has a NUL character";
    let refused = [
        (attributes(ATTRIBUTES_MAX + 1), "there are more than 8 attributes"),
        (attribute(&format!("{name}n"), ""), bad_name),
        (attribute("", ""), bad_name),
        (attribute("a\nb", ""), bad_name),
        (attribute("order", &format!("{value}v")), bad_value),
        (attribute("order", "a\0b"), bad_value),
    ];
    for (attributes, why) in refused {
        assert_eq!(check_attributes(&attributes), Err(why));
    }
}

#[test]
fn deadlines_that_make_no_sense_are_refused() {
    let absurd = [Duration::ZERO, SPAN_MAX + SECOND];
    for (span, why) in absurd.into_iter().zip(["is zero", "is longer than a hundred years"]) {
        let a = || draft([step("a", &[])]);
        let deadline = Draft { deadline: Some(span), ..a() };
        // R0
        let error = deadline.resolve().expect_err("it is refused");
        assert_eq!(error.to_string(), format!("deadline of the workflow: {why}"));
        let handler = Draft { on_failure: true, on_failure_timeout: Some(span), ..a() };
        // R0
        let error = handler.resolve().expect_err("it is refused");
        assert_eq!(error.to_string(), format!("timeout of on_failure of the workflow: {why}"));
    }
    let longest = Draft { deadline: Some(SPAN_MAX), ..draft([step("a", &[])]) };
    assert!(longest.resolve().is_ok());
}
