//! A run whose deadline passes fails, as if a task of it had.

use std::time::Duration;

use stepwell_core::decide::{Happening, RunHappening, Verdict, affected, decide};
use stepwell_core::failure::FailureKind;
use stepwell_core::id::Node;
use stepwell_core::run::{AttemptState, RunImage, RunTimer};

use crate::story::{Story, check, check_log, check_outcome, text};

const FAILURE: &str = "failure: deadline #0: the run did not end before its deadline";

#[test]
fn a_run_has_the_deadline_of_its_start_or_else_of_its_workflow() {
    check("a", "", "RUNNING: a QUEUED; queue: a");
    check("deadline 6h; a", "", "RUNNING: a QUEUED; queue: a; timers: deadline at 6h");
    let started =
        |workflow: &str| Story::start_with(text::workflow(workflow), Some(Duration::from_mins(1)));
    check_outcome(&started("a"), "RUNNING: a QUEUED; queue: a; timers: deadline at 1m");
    check_outcome(
        &started("deadline 6h; a"),
        "RUNNING: a QUEUED; queue: a; timers: deadline at 1m",
    );
}

#[test]
fn a_deadline_that_is_deployed_holds_for_runs_that_start_later() {
    let mut story = Story::play("deadline 6h; a", "");
    story.deploy("deadline 9h; a");
    story.go_on("+6h; deadline");
    check_outcome(&story, &format!("FAILED: a CANCELLED; {FAILURE}"));
}

#[test]
fn a_run_that_ends_in_time_has_no_timer_left() {
    check("deadline 6h; a", "done a", "COMPLETED: a COMPLETED");
    check("deadline 6h; a", "fail a", "FAILED: a FAILED; failure: a #1: boom");
    check(
        "deadline 6h; a",
        "cancel; +6h; deadline",
        "CANCELLED: a CANCELLED; answers: cancel: Cancelled, deadline: refused",
    );
}

#[test]
fn a_deadline_ends_tasks_in_every_open_state_and_fails_the_run() {
    // S16
    check(
        "deadline 6h; done; gone; queued; running; retried *1; asleep ~9h; waiting ?paid/9h; \
         for_ever ?paid; suspended; pending < queued",
        "done done; skip gone; claim running; fail retried; wait suspended paid; signal sent; \
         +6h; deadline",
        &format!(
            "FAILED: done COMPLETED, gone SKIPPED, queued CANCELLED, running CANCELLED, \
             retried CANCELLED, asleep CANCELLED, waiting CANCELLED, for_ever CANCELLED, \
             suspended CANCELLED, pending CANCELLED
             signals: sent#1 kept
             {FAILURE}"
        ),
    );
}

#[test]
fn a_deadline_does_not_pass_early() {
    // S11
    check(
        "deadline 6h; a",
        "+5h; deadline",
        "RUNNING: a QUEUED; queue: a; timers: deadline at 6h; answers: deadline: refused",
    );
}

#[test]
fn a_timer_that_fires_before_the_deadline_is_set_again() {
    let story = Story::play("deadline 6h; a", "+5h");
    let fired = Happening::Run(RunHappening::TimerFired(RunTimer::Deadline));
    let definition = &story.definition;
    assert!(affected(definition, [&fired]).all_open);
    let tasks = story.tasks.values().cloned();
    let mut image = RunImage::new(definition, story.now, story.run.clone(), tasks);
    assert_eq!(decide(&mut image, fired), Verdict::NotCurrent);
    let (run, _, changes) = image.into_parts();
    assert_eq!(run, story.run);
    let timers: Vec<_> = changes.timers.iter().map(|timer| (timer.node, timer.after)).collect();
    assert_eq!(timers, [(Node::DEADLINE, Duration::from_hours(1))]);
}

#[test]
fn the_failure_of_a_run_that_missed_its_deadline_says_so() {
    let story = Story::play("deadline 6h; a", "claim a; +6h; deadline");
    let failed = story.run.failure.as_ref().expect("the run failed");
    assert_eq!((failed.node, failed.attempt), (Node::DEADLINE, 0));
    assert_eq!(failed.failure.kind, FailureKind::Deadline);
    assert_eq!(story.attempts[0].state, AttemptState::Cancelled);
    assert!(story.attempts[0].failure.is_none());
}

#[test]
fn nothing_is_accepted_and_nothing_starts_after_the_deadline() {
    // S8
    check(
        "deadline 6h; a; w ?paid; s ~6h; q",
        "claim a; +6h; deadline; done a; claim q; fire s; signal paid; deadline; cancel; cancel!",
        &format!(
            "FAILED: a CANCELLED, w CANCELLED, s CANCELLED, q CANCELLED
             {FAILURE}
             answers: a: refused, q: refused, s: refused, paid: AlreadyEnded(Failed), \
             deadline: refused, cancel: AlreadyEnded(Failed), cancel!: AlreadyEnded(Failed)"
        ),
    );
}

#[test]
fn a_task_is_not_claimed_once_the_deadline_has_passed_though_the_timer_has_not_fired() {
    check(
        "deadline 6h; a",
        "+6h; claim a",
        "RUNNING: a QUEUED; queue: a; timers: deadline at 6h; answers: a: refused",
    );
    check("deadline 6h; a", "+5h; claim a; +1h; done a", "COMPLETED: a COMPLETED");
}

#[test]
fn the_handler_of_a_run_that_missed_its_deadline_is_executed() {
    let workflow = "on_failure; deadline 6h; a; w ?paid";
    // R20
    check(
        workflow,
        "+6h; deadline",
        &format!(
            "ENDING: a CANCELLED, w CANCELLED, on_failure QUEUED; queue: on_failure; {FAILURE}"
        ),
    );
    // R20
    check(
        workflow,
        "+6h; deadline; +1h; lose on_failure; done on_failure",
        &format!("FAILED: a CANCELLED, w CANCELLED, on_failure COMPLETED; {FAILURE}"),
    );
}

#[test]
fn a_deadline_does_nothing_once_the_run_is_ending() {
    let workflow = "on_failure; deadline 6h; a";
    check(
        workflow,
        "fail a; +9h; deadline",
        "ENDING: a FAILED, on_failure QUEUED
         queue: on_failure
         failure: a #1: boom
         answers: deadline: refused",
    );
    // R20
    check(
        workflow,
        "fail a; claim on_failure; +9h; deadline; done on_failure",
        "FAILED: a FAILED, on_failure COMPLETED
         failure: a #1: boom
         answers: deadline: refused",
    );
    // R20
    check(
        workflow,
        "fail a; +9h; done on_failure",
        "FAILED: a FAILED, on_failure COMPLETED; failure: a #1: boom",
    );
}

#[test]
fn an_earlier_failure_stays_the_failure_of_a_run_that_missed_its_deadline() {
    check(
        "deadline 6h; a; w ?paid",
        "fail a; +6h; deadline",
        "FAILED: a FAILED, w CANCELLED; failure: a #1: boom",
    );
    check(
        "on_failure; deadline 6h; a; w ?paid",
        "fail a; +6h; deadline",
        "ENDING: a FAILED, w CANCELLED, on_failure QUEUED
         queue: on_failure
         failure: a #1: boom",
    );
}

#[test]
fn the_log_of_a_run_that_missed_its_deadline_tells_what_each_task_was_doing() {
    // R17
    check_log(
        "on_failure; deadline 6h; a; b; w ?paid/9h; q",
        "claim a; wait b paid; +6h; deadline; done on_failure",
        "1 run RUN_STARTED
         2 w WAITING paid until 9h
         3 b QUEUED #1
         4 b STARTED #1
         5 b SUSPENDED #1
         6 b WAITING #1 paid
         7 a QUEUED #1
         8 q QUEUED
         9 run DEADLINE_PASSED
         10 a STARTED #1
         11 a CANCELLED #1
         12 b CANCELLED
         13 w CANCELLED
         14 q CANCELLED
         15 run RUN_ENDING FAILED
         16 on_failure QUEUED #1
         17 on_failure STARTED #1
         18 on_failure COMPLETED #1
         19 run RUN_ENDED FAILED",
    );
}
