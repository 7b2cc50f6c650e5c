//! What cannot work is refused when the workflow is built, by the names of the steps.

use std::time::Duration;

use stepwell_core::id::{NameError, Node};
use stepwell_core::limits::{NAME_BYTES_MAX, SPAN_MAX};
use stepwell_core::retry::Retry;
use stepwell_core::workflow::{
    DefinitionError, Draft, DraftStep, OutputRule, ParentRef, Placement, StepPolicy, workflow_hash,
};

use crate::{build, by_handle, draft, edges, link, placed, step};

fn refusal(draft: Draft) -> DefinitionError {
    draft.resolve().expect_err("the draft is refused")
}

fn message(steps: impl IntoIterator<Item = DraftStep>) -> String {
    refusal(draft(steps)).to_string()
}

#[test]
fn a_cycle_is_refused_by_the_names_of_its_steps_in_order() {
    let circle = [
        step("root", &[]),
        step("a", &["c", "root"]),
        step("b", &["a"]),
        step("c", &["b"]),
        step("leaf", &["c"]),
    ];
    // R0
    let error = refusal(draft(circle));
    let DefinitionError::Cycle { steps } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(steps.join(" "), "a b c a");
    assert_eq!(error.to_string(), "steps wait in a circle: a -> b -> c -> a");
}

#[test]
fn a_cycle_is_found_from_a_step_that_only_hangs_below_it() {
    // R0
    assert_eq!(
        message([step("leaf", &["b"]), step("a", &["b"]), step("b", &["a"])]),
        "steps wait in a circle: b -> a -> b"
    );
}

#[test]
fn a_step_that_waits_for_itself_is_refused() {
    // R0
    assert_eq!(message([step("a", &["a"])]), "steps wait in a circle: a -> a");
}

#[test]
fn a_chain_that_waits_for_one_of_its_later_members_is_refused() {
    let early = crate::chained("first", None, None, &["last"]);
    // R0
    assert_eq!(message([early, link("last")]), "steps wait in a circle: first -> last -> first");
}

#[test]
fn an_unknown_parent_is_refused_by_both_names() {
    // R0
    assert_eq!(
        message([step("ship", &["chrage"]), step("charge", &[])]),
        "step \"ship\" comes after \"chrage\", which is not declared"
    );
    let in_chain = crate::chained("ship", None, Some(&["chrage"]), &[]);
    // R0
    assert!(matches!(refusal(draft([in_chain])), DefinitionError::UnknownParent { .. }));
}

#[test]
fn a_parent_may_be_declared_later() {
    let definition = build([step("ship", &["charge"]), step("charge", &[])]);
    assert_eq!(edges(&definition), "ship < charge; charge");
}

#[test]
fn a_handle_of_another_workflow_is_refused() {
    let handle = |index, workflow| ParentRef::Handle { index, workflow, needed: false };
    let own = workflow_hash("orders");
    for foreign in [handle(0, workflow_hash("refunds")), handle(2, own)] {
        let child = placed("ship", Placement::Explicit(vec![foreign]));
        // R0
        assert_eq!(
            message([step("charge", &[]), child]),
            "step \"ship\" was given a parent of another workflow"
        );
    }
    let child = placed("ship", Placement::Explicit(vec![by_handle(0, false)]));
    let definition = build([step("charge", &[]), child]);
    assert_eq!(edges(&definition), "charge; ship < charge");
}

#[test]
fn an_output_of_another_workflow_is_refused() {
    let output = |node| Draft {
        output: Some(OutputRule { node: Node(node), required: true }),
        ..draft([step("a", &[])])
    };
    assert_eq!(refusal(output(1)), DefinitionError::ForeignOutput);
    assert!(output(0).resolve().is_ok());
}

#[test]
fn two_steps_of_one_name_are_refused_also_across_chain_and_explicit_nodes() {
    let expected = "two steps are named \"a\", give one another name";
    // R0
    assert_eq!(message([step("a", &[]), step("a", &[])]), expected);
    // G1
    assert_eq!(message([link("a"), step("a", &[])]), expected);
}

#[test]
fn names_that_cannot_be_used_are_refused() {
    let too_long = "x".repeat(NAME_BYTES_MAX + 1);
    let bad = [
        ("", NameError::Empty),
        (too_long.as_str(), NameError::TooLong { bytes: 201 }),
        ("a\nb", NameError::Unprintable),
    ];
    for (name, why) in bad {
        // R0
        let step_name = DefinitionError::StepName { step: name.into(), why };
        assert_eq!(refusal(draft([step(name, &[])])), step_name);
        // R0
        let workflow_name = DefinitionError::WorkflowName { name: name.into(), why };
        let unnamed = Draft { workflow: name.into(), ..draft([step("a", &[])]) };
        assert_eq!(refusal(unnamed), workflow_name);
    }
    build([step(&"x".repeat(NAME_BYTES_MAX), &[])]);
}

#[test]
fn the_name_of_the_failure_handler_is_kept_for_the_engine() {
    // R0
    assert_eq!(
        message([step("on_failure", &[])]),
        "step name \"on_failure\" is kept for the engine, choose another"
    );
}

#[test]
fn a_workflow_without_steps_is_refused() {
    // R0
    assert_eq!(refusal(draft([])), DefinitionError::NoSteps);
}

#[test]
fn policies_that_make_no_sense_are_refused_by_step_and_field() {
    let too_long = SPAN_MAX + Duration::from_secs(1);
    let policy = StepPolicy::default;
    let zero = Some(Duration::ZERO);
    let absurd = [
        (StepPolicy { timeout: zero, ..policy() }, "timeout: is zero"),
        (
            StepPolicy { timeout: Some(too_long), ..policy() },
            "timeout: is longer than a hundred years",
        ),
        (StepPolicy { heartbeat_timeout: zero, ..policy() }, "heartbeat_timeout: is zero"),
        (StepPolicy { sleep: too_long, ..policy() }, "sleep: is longer than a hundred years"),
        (
            StepPolicy { retry: Retry::exponential(1).factor(0.5), ..policy() },
            "retry: factor is below 1, delays would shrink",
        ),
        (
            StepPolicy { retry: Retry::exponential(u32::MAX), ..policy() },
            "retry: retries_max is over 1,000,000",
        ),
        (
            StepPolicy { retry: Retry::fixed(1, too_long), ..policy() },
            "retry: a delay is longer than a hundred years",
        ),
    ];
    for (policy, why) in absurd {
        let refused = DraftStep { policy, ..step("charge", &[]) };
        // R0
        let text = message([refused]);
        assert_eq!(text, format!("step \"charge\", {why}"));
    }
}

#[test]
fn policies_at_their_limits_are_accepted() {
    let policy = StepPolicy {
        retry: Retry::fixed(1_000_000, SPAN_MAX),
        timeout: Some(SPAN_MAX),
        heartbeat_timeout: Some(Duration::from_nanos(1)),
        sleep: SPAN_MAX,
        ..StepPolicy::default()
    };
    build([DraftStep { policy, ..step("a", &[]) }]);
}
