//! Skips go down to the join and no further.

use crate::story::{Story, check, check_log};

#[test]
fn a_skip_takes_the_line_below_along_in_one_commit() {
    // R23
    check(
        "a; b < a; c < b; d < c",
        "skip a",
        "COMPLETED: a SKIPPED, b SKIPPED, c SKIPPED, d SKIPPED",
    );
}

#[test]
fn a_skipped_step_leaves_no_attempt_and_never_reads_as_started() {
    let story = Story::play("a; b < a", "skip a");
    assert!(story.attempts.is_empty());
    assert!(story.tasks.values().all(|task| task.attempt == 0));
    // R17
    check_log(
        "a; b < a",
        "skip a",
        "1 run RUN_STARTED
         2 a QUEUED
         3 a SKIPPED
         4 b SKIPPED
         5 run RUN_ENDED COMPLETED",
    );
}

#[test]
fn only_the_matching_branch_runs_and_the_join_after_it_does() {
    let orders = "validate; charge < validate; reject < validate; ship < charge;
        finish < ship, reject";
    // R21, R23
    check(
        orders,
        "done validate; skip charge; done reject",
        "RUNNING: validate COMPLETED, charge SKIPPED, reject COMPLETED, ship SKIPPED, finish QUEUED
         queue: finish",
    );
    // R21, R23
    check(
        orders,
        "done validate charge; skip reject; done ship finish",
        "COMPLETED: validate COMPLETED, charge COMPLETED, reject SKIPPED, ship COMPLETED, \
         finish COMPLETED",
    );
}

#[test]
fn a_join_runs_if_one_parent_was_skipped_in_whatever_order() {
    let join = "a; b; c < a, b";
    // R23
    for script in ["skip a; done b", "skip a & done b"] {
        check(join, script, "RUNNING: a SKIPPED, b COMPLETED, c QUEUED; queue: c");
    }
    for script in ["done b; skip a", "done b & skip a"] {
        check(join, script, "RUNNING: a SKIPPED, b COMPLETED, c QUEUED; queue: c");
    }
}

#[test]
fn a_join_is_skipped_if_all_its_parents_were() {
    // R23
    for script in ["skip a b", "skip b a", "skip a & skip b"] {
        check("a; b; c < a, b", script, "COMPLETED: a SKIPPED, b SKIPPED, c SKIPPED");
    }
    // R23
    check(
        "a; b < a; c < a; d < b, c; e < d",
        "skip a",
        "COMPLETED: a SKIPPED, b SKIPPED, c SKIPPED, d SKIPPED, e SKIPPED",
    );
}

#[test]
fn a_join_waits_while_another_parent_runs() {
    let join = "a; b; c < a, b";
    check(join, "claim b; skip a", "RUNNING: a SKIPPED, b RUNNING, c PENDING");
    check(
        join,
        "claim b; skip a; fail b",
        "FAILED: a SKIPPED, b FAILED, c CANCELLED; failure: b #1: boom",
    );
}

#[test]
fn a_child_that_needs_a_skipped_parent_is_skipped_at_once() {
    let needed = "a; b; c < a!, b; d < c";
    // R23
    check(needed, "claim b; skip a", "RUNNING: a SKIPPED, b RUNNING, c SKIPPED, d SKIPPED");
    check(
        needed,
        "claim b; skip a; done b",
        "COMPLETED: a SKIPPED, b COMPLETED, c SKIPPED, d SKIPPED",
    );
    check(
        needed,
        "claim b; skip a; fail b",
        "FAILED: a SKIPPED, b FAILED, c SKIPPED, d SKIPPED; failure: b #1: boom",
    );
}

#[test]
fn a_child_that_needs_another_parent_runs_without_the_skipped_one() {
    check(
        "a; b; c < a!, b",
        "done a; skip b",
        "RUNNING: a COMPLETED, b SKIPPED, c QUEUED; queue: c",
    );
}

#[test]
fn a_cascade_ends_at_a_join_that_another_branch_keeps_alive() {
    check(
        "a; b; c < a!, b; d < c, b",
        "skip a; done b",
        "RUNNING: a SKIPPED, b COMPLETED, c SKIPPED, d QUEUED; queue: d",
    );
}

#[test]
fn a_cascade_skips_what_needs_it_two_levels_down() {
    check(
        "a; x; b < a; c < b!, x; d < c, x",
        "skip a",
        "RUNNING: a SKIPPED, x QUEUED, b SKIPPED, c SKIPPED, d PENDING; queue: x",
    );
}

#[test]
fn a_skipped_sleep_sets_no_timer_and_a_join_may_fall_asleep() {
    check("a; s ~1h < a; b < s", "skip a", "COMPLETED: a SKIPPED, s SKIPPED, b SKIPPED");
    check(
        "a; b; s ~1h < a, b",
        "done a; skip b",
        "RUNNING: a COMPLETED, b SKIPPED, s SLEEPING; timers: s at 1h",
    );
}

#[test]
fn a_cancelled_join_stays_cancelled_when_a_parent_is_skipped_later() {
    // S8
    check(
        "a; b; c < a, b!",
        "fail a; skip b",
        "FAILED: a FAILED, b SKIPPED, c CANCELLED; failure: a #1: boom",
    );
}

#[test]
fn a_condition_that_is_true_on_a_retry_skips_after_the_retry() {
    // R17, R21
    check_log(
        "a *1",
        "fail a; +1s; fire a; skip a",
        "1 run RUN_STARTED
         2 a QUEUED #1
         3 a STARTED #1
         4 a RETRYING #1 1 in 1s at 1s boom
         5 a SKIPPED
         6 run RUN_ENDED COMPLETED",
    );
}
