//! Nothing of a cancelled run starts any more.

use stepwell_core::run::AttemptState;

use crate::story::{Story, check, check_log};

const EVERY_STATE: &str = "done; gone; queued; running; retried *1; asleep ~1h; waiting ?paid/1h; \
                           suspended; pending < queued";
const REACH_EVERY_STATE: &str =
    "done done; skip gone; claim running; fail retried; wait suspended paid";

#[test]
fn cancel_ends_tasks_in_every_open_state_and_leaves_the_others() {
    // L12, S16
    check(
        EVERY_STATE,
        &format!("{REACH_EVERY_STATE}; cancel"),
        "CANCELLED: done COMPLETED, gone SKIPPED, queued CANCELLED, running CANCELLED, \
         retried CANCELLED, asleep CANCELLED, waiting CANCELLED, suspended CANCELLED, \
         pending CANCELLED
         answers: cancel: Cancelled",
    );
}

#[test]
fn the_attempt_of_a_running_step_ends_as_cancelled() {
    let story = Story::play("a", "claim a; cancel");
    assert_eq!(story.attempts[0].state, AttemptState::Cancelled);
    assert!(story.attempts[0].failure.is_none());
}

#[test]
fn nothing_is_accepted_and_nothing_starts_after_a_cancel() {
    // L12, S8
    check(
        EVERY_STATE,
        &format!(
            "{REACH_EVERY_STATE}; cancel; +1h; done running; claim queued; \
                  fire asleep waiting; signal paid"
        ),
        "CANCELLED: done COMPLETED, gone SKIPPED, queued CANCELLED, running CANCELLED, \
         retried CANCELLED, asleep CANCELLED, waiting CANCELLED, suspended CANCELLED, \
         pending CANCELLED
         answers: cancel: Cancelled, running: refused, queued: refused, asleep: refused, \
         waiting: refused, paid: AlreadyEnded(Cancelled)",
    );
}

#[test]
fn cancelling_an_ended_run_says_how_it_ended() {
    // L12
    check(
        "a",
        "done a; cancel",
        "COMPLETED: a COMPLETED; answers: cancel: AlreadyEnded(Completed)",
    );
    check(
        "a",
        "cancel; cancel",
        "CANCELLED: a CANCELLED
         answers: cancel: Cancelled, cancel: AlreadyEnded(Cancelled)",
    );
}

#[test]
fn a_run_with_an_earlier_failure_ends_as_failed_when_cancelled() {
    check(
        "a; b",
        "fail a; cancel",
        "FAILED: a FAILED, b CANCELLED; failure: a #1: boom; answers: cancel: Cancelled",
    );
}

#[test]
fn a_run_whose_failure_would_have_been_retried_ends_as_cancelled() {
    check(
        "on_failure; a *1",
        "fail a; cancel",
        "CANCELLED: a CANCELLED; answers: cancel: Cancelled",
    );
}

#[test]
fn cancelling_a_run_that_is_ending_changes_nothing() {
    // L12
    check(
        "on_failure; a",
        "fail a; cancel",
        "ENDING: a FAILED, on_failure QUEUED
         queue: on_failure
         failure: a #1: boom
         answers: cancel: AlreadyEnding(Failed)",
    );
}

#[test]
fn cancelling_a_run_with_an_earlier_failure_still_calls_the_handler() {
    // R20
    check(
        "on_failure; a; b",
        "fail a; cancel",
        "ENDING: a FAILED, b CANCELLED, on_failure QUEUED
         queue: on_failure
         failure: a #1: boom
         answers: cancel: Cancelled",
    );
}

#[test]
fn a_cancelled_run_keeps_its_signals() {
    check(
        "w ?paid; v ?sent",
        "signal sent; signal refused; cancel",
        "CANCELLED: w CANCELLED, v COMPLETED
         resumed: v by sent#1
         signals: sent#1 to v, refused#2 kept
         answers: cancel: Cancelled",
    );
}

#[test]
fn force_ends_a_running_run_without_its_handler() {
    // L12
    check(
        EVERY_STATE,
        &format!("{REACH_EVERY_STATE}; cancel!"),
        "CANCELLED: done COMPLETED, gone SKIPPED, queued CANCELLED, running CANCELLED, \
         retried CANCELLED, asleep CANCELLED, waiting CANCELLED, suspended CANCELLED, \
         pending CANCELLED
         answers: cancel!: Cancelled",
    );
    // L12
    check(
        "on_failure; deadline 6h; a; b",
        "fail a; cancel!; cancel!",
        "FAILED: a FAILED, b CANCELLED
         failure: a #1: boom
         answers: cancel!: Cancelled, cancel!: AlreadyEnded(Failed)",
    );
}

#[test]
fn force_ends_a_run_whose_handler_hangs_as_it_was_decided() {
    let failed = "FAILED: a FAILED, on_failure CANCELLED; failure: a #1: boom";
    // L12
    check(
        "on_failure; a",
        "fail a; cancel!",
        &format!("{failed}; answers: cancel!: ForcedToEnd(Failed)"),
    );
    // L12
    check(
        "on_failure; deadline 6h; a",
        "fail a; claim on_failure; cancel; cancel!; done on_failure",
        &format!(
            "{failed}; answers: cancel: AlreadyEnding(Failed), cancel!: ForcedToEnd(Failed), \
             on_failure: refused"
        ),
    );
    let story = Story::play("on_failure; a", "fail a; claim on_failure; cancel!");
    assert_eq!(story.attempts[1].state, AttemptState::Cancelled);
    assert!(!story.run.cancelled, "that it fails was decided before");
}

#[test]
fn force_on_an_ended_run_says_how_it_ended() {
    check(
        "a",
        "done a; cancel!",
        "COMPLETED: a COMPLETED; answers: cancel!: AlreadyEnded(Completed)",
    );
}

#[test]
fn the_log_tells_who_cancelled_why_and_by_force() {
    // R17, L12
    check_log(
        "on_failure; a; w ?paid",
        "fail a; cancel; claim on_failure; cancel!",
        "1 run RUN_STARTED
         2 w WAITING paid
         3 a QUEUED #1
         4 a STARTED #1
         5 a FAILED #1 boom
         6 run RUN_CANCELLED by somebody
         7 w CANCELLED
         8 run RUN_ENDING FAILED
         9 on_failure QUEUED #1
         10 run RUN_CANCELLED by somebody: it hangs, forced
         11 on_failure STARTED #1
         12 on_failure CANCELLED #1
         13 run RUN_ENDED FAILED",
    );
}

#[test]
fn the_log_of_a_cancelled_run_tells_what_each_task_was_doing() {
    // R17
    check_log(
        "a; b *1; s ~1h; n ~?1h; q; p < q",
        "nap n; claim a; fail b; cancel",
        "1 run RUN_STARTED
         2 s SLEEPING until 1h
         3 n QUEUED
         4 n SLEEPING until 1h
         5 b QUEUED #1
         6 b STARTED #1
         7 b RETRYING #1 1 in 1s at 1s boom
         8 a QUEUED #1
         9 q QUEUED
         10 run RUN_CANCELLED by somebody
         11 a STARTED #1
         12 a CANCELLED #1
         13 b CANCELLED
         14 s CANCELLED
         15 n CANCELLED
         16 q CANCELLED
         17 p CANCELLED
         18 run RUN_ENDED CANCELLED",
    );
}

#[test]
fn tasks_that_were_queued_before_a_cancel_are_logged_before_it_in_their_order() {
    // R17
    check_log(
        "a; c < a; d",
        "+1s; done a; +1s; claim d; cancel",
        "1 run RUN_STARTED
         2 a QUEUED #1
         3 a STARTED #1
         4 a COMPLETED #1
         5 d QUEUED #1
         6 c QUEUED
         7 run RUN_CANCELLED by somebody
         8 c CANCELLED
         9 d STARTED #1
         10 d CANCELLED #1
         11 run RUN_ENDED CANCELLED",
    );
}

#[test]
fn tasks_that_were_queued_before_a_failure_that_ends_them_are_logged_before_it() {
    // R17
    check_log(
        "fail_fast; a; b; c",
        "claim b; fail a",
        "1 run RUN_STARTED
         2 b QUEUED #1
         3 c QUEUED
         4 a QUEUED #1
         5 a STARTED #1
         6 a FAILED #1 boom
         7 b STARTED #1
         8 b CANCELLED #1
         9 c CANCELLED
         10 run RUN_ENDED FAILED",
    );
}
