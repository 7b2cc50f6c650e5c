//! Sleeps need no worker: a timer completes them.

use crate::story::{Story, check, check_log};

#[test]
fn a_sleep_waits_for_its_timer_and_needs_no_worker() {
    check("s ~24h; b < s", "", "RUNNING: s SLEEPING, b PENDING; timers: s at 24h");
    check("s ~24h; b < s", "+24h; fire s", "RUNNING: s COMPLETED, b QUEUED; queue: b");
}

#[test]
fn a_sleep_does_not_end_before_it_is_due() {
    // S11
    check("s ~24h", "+23h; fire s", "RUNNING: s SLEEPING; timers: s at 24h; answers: s: refused");
}

#[test]
fn a_sleep_is_counted_from_when_its_parents_were_done() {
    check("a; s ~1h < a", "+5m; done a", "RUNNING: a COMPLETED, s SLEEPING; timers: s at 65m");
}

#[test]
fn a_sleep_of_no_length_still_goes_through_its_timer() {
    check("s ~0s", "", "RUNNING: s SLEEPING; timers: s at 0s");
    check("s ~0s", "fire s", "COMPLETED: s COMPLETED");
}

#[test]
fn a_sleep_after_a_sleep_begins_when_the_first_one_ends() {
    check("s ~1h; t ~1h < s", "+1h; fire s", "RUNNING: s COMPLETED, t SLEEPING; timers: t at 2h");
}

#[test]
fn a_timer_that_fires_twice_completes_once() {
    // S8
    check(
        "s ~1h; b",
        "+1h; fire s & fire s; fire s",
        "RUNNING: s COMPLETED, b QUEUED; queue: b; answers: s: refused, s: refused",
    );
}

#[test]
fn a_last_sleep_ends_the_run() {
    // R16
    check("a; s ~1h < a", "done a; +1h; fire s", "COMPLETED: a COMPLETED, s COMPLETED");
}

#[test]
fn a_sleep_with_a_condition_asks_a_worker_first() {
    let workflow = "a; n ~?1h < a; b < n";
    check(workflow, "done a", "RUNNING: a COMPLETED, n QUEUED, b PENDING; queue: n");
    check(
        workflow,
        "done a; +5m; nap n",
        "RUNNING: a COMPLETED, n SLEEPING, b PENDING; timers: n at 65m",
    );
    check(
        workflow,
        "done a; nap n; +1h; fire n; done b",
        "COMPLETED: a COMPLETED, n COMPLETED, b COMPLETED",
    );
    // R21
    check(workflow, "done a; skip n", "COMPLETED: a COMPLETED, n SKIPPED, b SKIPPED");
}

#[test]
fn a_condition_that_fails_fails_the_sleep() {
    check("n ~?1h; b < n", "fail n", "FAILED: n FAILED, b CANCELLED; failure: n #1: boom");
}

#[test]
fn asking_the_condition_of_a_sleep_is_no_attempt() {
    let story = Story::play("n ~?1h", "lose n; nap n");
    let task = story.tasks.values().next().expect("one task");
    // R11
    assert_eq!((task.attempt, task.failures, task.losses), (1, 0, 1));
    assert_eq!(story.attempts.len(), 1);
}

#[test]
fn the_log_tells_when_a_sleep_ends() {
    // R17
    check_log(
        "s ~24h; b < s",
        "+24h; fire s",
        "1 run RUN_STARTED
         2 s SLEEPING until 24h
         3 s WOKEN COMPLETED
         - b QUEUED #1",
    );
    // R17
    check_log(
        "n ~?1h; b < n",
        "nap n; +1h; fire n",
        "1 run RUN_STARTED
         2 n QUEUED
         3 n SLEEPING until 1h
         4 n WOKEN COMPLETED
         - b QUEUED #1",
    );
}
