//! A failure takes its descendants along and leaves the rest alone.

use crate::story::{check, check_log};

#[test]
fn a_failure_cancels_what_lies_below_and_independent_branches_go_on() {
    let two = "a; b < a; c < b; x; y < x";
    check(
        two,
        "fail a",
        "RUNNING: a FAILED, b CANCELLED, c CANCELLED, x QUEUED, y PENDING
         queue: x
         failure: a #1: boom",
    );
    // R16
    check(
        two,
        "fail a; done x y",
        "FAILED: a FAILED, b CANCELLED, c CANCELLED, x COMPLETED, y COMPLETED
         failure: a #1: boom",
    );
}

#[test]
fn a_failed_parent_cancels_a_join_whatever_the_other_parents_do() {
    for other in ["done b", "skip b", "fail b"] {
        let state = match other {
            "done b" => "COMPLETED",
            "skip b" => "SKIPPED",
            _ => "FAILED",
        };
        check(
            "a; b; c < a, b; d < c",
            &format!("fail a; {other}"),
            &format!("FAILED: a FAILED, b {state}, c CANCELLED, d CANCELLED; failure: a #1: boom"),
        );
    }
}

#[test]
fn a_live_task_below_a_skipped_one_survives_the_failure_above_it() {
    let workflow = "key; live; bad; gone < key!, bad; alive < gone, live; after < alive";
    check(
        workflow,
        "skip key; done live; claim alive; fail bad",
        "RUNNING: key SKIPPED, live COMPLETED, bad FAILED, gone SKIPPED, alive RUNNING, \
         after PENDING
         failure: bad #1: boom",
    );
    check(
        workflow,
        "skip key; fail bad; done live alive after",
        "FAILED: key SKIPPED, live COMPLETED, bad FAILED, gone SKIPPED, alive COMPLETED, \
         after COMPLETED
         failure: bad #1: boom",
    );
}

#[test]
fn the_first_final_failure_is_the_failure_of_the_run() {
    check(
        "a; b *1@0s",
        "fail b; fail a; fail b",
        "FAILED: a FAILED, b FAILED; failure: a #1: boom",
    );
}

#[test]
fn fail_fast_cancels_everything_that_is_open() {
    // R16
    check(
        "fail_fast; a; done; queued; running; child < queued; asleep ~1h; retried *1",
        "done done; fail retried; claim running; fail a",
        "FAILED: a FAILED, done COMPLETED, queued CANCELLED, running CANCELLED, child CANCELLED, \
         asleep CANCELLED, retried CANCELLED
         failure: a #1: boom",
    );
}

#[test]
fn fail_fast_waits_for_the_last_retry() {
    check("fail_fast; a *1@0s; b", "fail a", "RUNNING: a QUEUED, b QUEUED; queue: b, a");
}

#[test]
fn what_fail_fast_cancelled_cannot_complete_any_more() {
    let expected = "FAILED: a FAILED, b CANCELLED; failure: a #1: boom; answers: b: refused";
    // S8
    check("fail_fast; a; b", "claim b; fail a; done b", expected);
    // S8
    check("fail_fast; a; b", "fail a & done b", expected);
    check(
        "fail_fast; a; b",
        "done b & fail a",
        "FAILED: a FAILED, b COMPLETED; failure: a #1: boom",
    );
}

#[test]
fn a_completion_beside_a_failure_counts_down_in_children_that_are_done() {
    // S4
    check(
        "fail_fast; key; a *1; b; c < key!, b",
        "skip key; fail a & done b",
        "RUNNING: key SKIPPED, a QUEUED, b COMPLETED, c SKIPPED; timers: a at 1s",
    );
    // S4
    check(
        "fail_fast; key; a *1; b; c < key!, b; d < c",
        "skip key; fail a & skip b",
        "RUNNING: key SKIPPED, a QUEUED, b SKIPPED, c SKIPPED, d SKIPPED; timers: a at 1s",
    );
}

#[test]
fn the_log_tells_why_a_step_failed_and_what_was_cancelled() {
    // R17
    check_log(
        "a; b < a; c < b",
        "fail a",
        "1 run RUN_STARTED
         2 a QUEUED #1
         3 a STARTED #1
         4 a FAILED #1 boom
         5 b CANCELLED
         6 c CANCELLED
         7 run RUN_ENDED FAILED",
    );
}
