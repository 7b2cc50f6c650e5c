//! A run that comes to fail calls its handler once, as its last task.

use crate::story::{check, check_log};

#[test]
fn the_handler_is_the_last_task_before_the_run_is_failed() {
    let workflow = "on_failure; a; b; c < a";
    // R20
    check(
        workflow,
        "fail a",
        "RUNNING: a FAILED, b QUEUED, c CANCELLED; queue: b; failure: a #1: boom",
    );
    check(
        workflow,
        "fail a; done b",
        "ENDING: a FAILED, b COMPLETED, c CANCELLED, on_failure QUEUED
         queue: on_failure
         failure: a #1: boom",
    );
    // R20
    check(
        workflow,
        "fail a; done b on_failure",
        "FAILED: a FAILED, b COMPLETED, c CANCELLED, on_failure COMPLETED; failure: a #1: boom",
    );
}

#[test]
fn the_handler_is_not_called_when_the_run_does_not_fail() {
    // R20
    check("on_failure; a", "done a", "COMPLETED: a COMPLETED");
    check("on_failure; a *1@0s", "fail a; done a", "COMPLETED: a COMPLETED");
    check("on_failure; a", "cancel", "CANCELLED: a CANCELLED; answers: cancel: Cancelled");
}

#[test]
fn the_handlers_own_failure_is_recorded_and_not_retried() {
    // R20
    check(
        "on_failure; a",
        "fail a on_failure",
        "FAILED: a FAILED, on_failure FAILED; failure: a #1: boom",
    );
    // R20
    check(
        "fail_fast; on_failure; a *3@0s",
        "fail! a; fail@5s on_failure",
        "FAILED: a FAILED, on_failure FAILED; failure: a #1: boom",
    );
}

#[test]
fn a_handler_that_lost_its_worker_runs_again_within_the_crash_limit() {
    // R14, R20
    check(
        "on_failure; a",
        "fail a; lose on_failure; release on_failure; lose on_failure; done on_failure",
        "FAILED: a FAILED, on_failure COMPLETED; failure: a #1: boom",
    );
    // R14, R20
    check(
        "on_failure; a",
        "fail a; lose on_failure; lose on_failure; lose on_failure",
        "FAILED: a FAILED, on_failure FAILED; failure: a #1: boom",
    );
}

#[test]
fn fail_fast_clears_the_run_before_the_handler() {
    check(
        "fail_fast; on_failure; a; b; s ~1h",
        "claim b; fail a",
        "ENDING: a FAILED, b CANCELLED, s CANCELLED, on_failure QUEUED
         queue: on_failure
         failure: a #1: boom",
    );
}

#[test]
fn the_log_tells_of_the_handler() {
    // R17, R20
    check_log(
        "on_failure; a",
        "fail a; done on_failure",
        "1 run RUN_STARTED
         2 a QUEUED #1
         3 a STARTED #1
         4 a FAILED #1 boom
         5 run RUN_ENDING FAILED
         6 on_failure QUEUED #1
         7 on_failure STARTED #1
         8 on_failure COMPLETED #1
         9 run RUN_ENDED FAILED",
    );
}

#[test]
fn a_run_fails_if_the_step_that_gives_its_output_is_skipped() {
    let failure = "failure: b #0: step \"b\" gives the run's output and was skipped";
    check("output! b; a; b < a", "skip a", &format!("FAILED: a SKIPPED, b SKIPPED; {failure}"));
    check(
        "output! b; a; b < a; c",
        "skip a",
        &format!("RUNNING: a SKIPPED, b SKIPPED, c QUEUED; queue: c; {failure}"),
    );
    check(
        "output! b; a; b < a; c",
        "skip a; done c",
        &format!("FAILED: a SKIPPED, b SKIPPED, c COMPLETED; {failure}"),
    );
    // R20
    check(
        "on_failure; output! b; b",
        "skip b",
        &format!("ENDING: b SKIPPED, on_failure QUEUED; queue: on_failure; {failure}"),
    );
}

#[test]
fn a_run_completes_without_an_output_it_did_not_promise() {
    check("output b; b", "skip b", "COMPLETED: b SKIPPED");
    check("output! b; b", "done b", "COMPLETED: b COMPLETED");
}

#[test]
fn an_earlier_failure_stays_the_failure_of_a_run_without_its_output() {
    check("output! b; a; b", "fail a; skip b", "FAILED: a FAILED, b SKIPPED; failure: a #1: boom");
}
