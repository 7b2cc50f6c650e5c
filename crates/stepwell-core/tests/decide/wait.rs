//! Waits need no worker: a signal ends them, or their time-out.

use stepwell_core::run::{AttemptState, Resumed};

use crate::story::{Story, check, check_log, check_outcome};

#[test]
fn a_wait_opens_when_its_parents_are_done_and_needs_no_worker() {
    check("w ?paid; b < w", "", "RUNNING: w WAITING, b PENDING");
    check("a; w ?paid < a", "done a", "RUNNING: a COMPLETED, w WAITING");
    check("a; w ?paid/1h < a", "+5m; done a", "RUNNING: a COMPLETED, w WAITING; timers: w at 65m");
}

#[test]
fn a_signal_completes_a_wait_and_its_children_go_on() {
    // L7
    for wait in ["?paid", "?paid/3h"] {
        check(
            &format!("w {wait}; b < w"),
            "signal paid",
            "RUNNING: w COMPLETED, b QUEUED
             queue: b
             resumed: w by paid#1
             signals: paid#1 to w",
        );
    }
}

#[test]
fn a_time_out_completes_a_wait_and_its_children_go_on() {
    // L8
    check(
        "w ?paid/3h; b < w",
        "+3h; fire w",
        "RUNNING: w COMPLETED, b QUEUED; queue: b; resumed: w by time-out",
    );
}

#[test]
fn a_wait_does_not_time_out_early_and_one_without_time_out_never() {
    // S11, L8
    check("w ?paid/3h", "+2h; fire w", "RUNNING: w WAITING; timers: w at 3h; answers: w: refused");
    check("w ?paid", "+9000h; fire w", "RUNNING: w WAITING; answers: w: refused");
}

#[test]
fn a_time_out_of_zero_still_goes_through_its_timer() {
    check("w ?paid/0s", "", "RUNNING: w WAITING; timers: w at 0s");
    check("w ?paid/0s", "fire w", "COMPLETED: w COMPLETED; resumed: w by time-out");
}

#[test]
fn a_last_wait_ends_the_run() {
    // R16
    check(
        "w ?paid",
        "signal paid",
        "COMPLETED: w COMPLETED; resumed: w by paid#1; signals: paid#1 to w",
    );
    check("w ?paid/1h", "+1h; fire w", "COMPLETED: w COMPLETED; resumed: w by time-out");
}

#[test]
fn a_wait_after_a_wait_opens_when_the_first_one_ends() {
    check(
        "v ?paid; w ?sent/1h < v",
        "+1h; signal paid",
        "RUNNING: v COMPLETED, w WAITING
         timers: w at 2h
         resumed: v by paid#1
         signals: paid#1 to v",
    );
}

#[test]
fn a_wait_for_several_signals_takes_any_of_them() {
    // L7
    for signal in ["paid", "refused"] {
        check(
            "w ?paid|refused/1h",
            &format!("signal sent; signal {signal}"),
            &format!(
                "COMPLETED: w COMPLETED
                 resumed: w by {signal}#2
                 signals: sent#1 kept, {signal}#2 to w"
            ),
        );
    }
}

#[test]
fn a_wait_below_a_skipped_or_failed_step_never_opens() {
    check("a; w ?paid < a", "skip a", "COMPLETED: a SKIPPED, w SKIPPED");
    check("a; w ?paid < a", "fail a", "FAILED: a FAILED, w CANCELLED; failure: a #1: boom");
}

#[test]
fn a_wait_beside_a_failed_step_goes_on() {
    check("a; w ?paid", "fail a", "RUNNING: a FAILED, w WAITING; failure: a #1: boom");
    check(
        "a; w ?paid",
        "fail a; signal paid",
        "FAILED: a FAILED, w COMPLETED
         resumed: w by paid#1
         signals: paid#1 to w
         failure: a #1: boom",
    );
}

#[test]
fn a_run_that_fails_fast_ends_its_waits_and_keeps_its_signals() {
    check(
        "fail_fast; a; b; w ?paid/1h; v ?paid",
        "signal sent; wait b sent/1h; fail a",
        "FAILED: a FAILED, b CANCELLED, w CANCELLED, v CANCELLED
         signals: sent#1 kept
         failure: a #1: boom",
    );
}

#[test]
fn a_wait_that_asks_a_worker_opens_when_the_worker_says_so() {
    let workflow = "a; w ??paid/1h < a; b < w";
    check(workflow, "done a", "RUNNING: a COMPLETED, w QUEUED, b PENDING; queue: w");
    check(
        workflow,
        "done a; +5m; wait w",
        "RUNNING: a COMPLETED, w WAITING, b PENDING; timers: w at 65m",
    );
    check(
        workflow,
        "done a; wait w paid[order=7]; signal paid order=8; signal paid order=7; done b",
        "COMPLETED: a COMPLETED, w COMPLETED, b COMPLETED
         resumed: w by paid#2
         signals: paid#1 kept, paid#2 to w",
    );
    // R21
    check(workflow, "done a; skip w", "COMPLETED: a COMPLETED, w SKIPPED, b SKIPPED");
    check(
        workflow,
        "done a; fail w",
        "FAILED: a COMPLETED, w FAILED, b CANCELLED; failure: w #1: boom",
    );
}

#[test]
fn asking_a_worker_what_to_wait_for_is_no_attempt() {
    let story = Story::play("w ??paid", "lose w; wait w");
    let task = story.task("w");
    // R11
    assert_eq!((task.attempt, task.failures, task.losses), (1, 0, 1));
    assert_eq!(story.attempts.len(), 1);
}

#[test]
fn a_step_waits_and_runs_again_with_the_signal() {
    // L5, L7
    check("a; b < a", "wait a paid", "RUNNING: a WAITING, b PENDING");
    check("a; b < a", "wait a paid/3h", "RUNNING: a WAITING, b PENDING; timers: a at 3h");
    check(
        "a; b < a",
        "wait a paid/3h; signal paid",
        "RUNNING: a QUEUED, b PENDING
         queue: a
         resumed: a by paid#1
         signals: paid#1 to a",
    );
    check(
        "a; b < a",
        "wait a paid; signal paid; done a",
        "RUNNING: a COMPLETED, b QUEUED; queue: b; signals: paid#1 to a",
    );
}

#[test]
fn a_step_whose_wait_timed_out_runs_again_and_is_told_so() {
    // L8
    check(
        "a",
        "wait a paid/3h; +3h; fire a",
        "RUNNING: a QUEUED; queue: a; resumed: a by time-out",
    );
}

#[test]
fn a_step_that_waits_is_charged_nothing_and_its_losses_are_forgotten() {
    use AttemptState::{Lost, Suspended};
    let lost = "lose a; lose a;";
    let again = "wait a paid; signal paid;".repeat(3);
    let story = Story::play("a", &format!("{lost} {again}"));
    let states: Vec<AttemptState> = story.attempts.iter().map(|row| row.state).collect();
    assert_eq!(states, [Lost, Lost, Suspended, Suspended, Suspended]);
    let task = story.task("a");
    // S9
    assert_eq!((task.attempt, task.failures, task.losses), (5, 0, 0));
    check(
        "a",
        &format!("{lost} {again} {lost} done a"),
        "COMPLETED: a COMPLETED; signals: paid#1 to a, paid#2 to a, paid#3 to a",
    );
}

#[test]
fn a_wait_takes_no_retries_and_gives_none_back() {
    check(
        "a *1@0s",
        "fail a; wait a paid; signal paid; fail a",
        "FAILED: a FAILED
         resumed: a by paid#1
         signals: paid#1 to a
         failure: a #3: boom",
    );
}

#[test]
fn what_a_step_was_resumed_with_stays_through_retries_losses_and_hand_backs() {
    let resumed = |end: &str| {
        let story = Story::play("a *1@5s", &format!("wait a paid/1h; {end}"));
        story.task("a").resumed
    };
    let all = "fail a; +5s; fire a; claim a; lose a; release a; claim a";
    // L7
    assert_eq!(resumed(&format!("signal paid; {all}")), Some(Resumed::Signal(1)));
    // L8
    assert_eq!(resumed(&format!("+1h; fire a; {all}")), Some(Resumed::TimedOut));
}

#[test]
fn what_a_step_was_resumed_with_ends_when_it_waits_again_or_is_done() {
    let resumed = |end: &str| {
        let story = Story::play("a; b", &format!("wait a paid/1h; signal paid; {end}"));
        story.task("a").resumed
    };
    assert_eq!(resumed("wait a sent"), None);
    assert_eq!(resumed("wait a sent; signal sent"), Some(Resumed::Signal(2)));
    assert_eq!(resumed("wait a sent/1h; +1h; fire a"), Some(Resumed::TimedOut));
    assert_eq!(resumed("done a"), None);
}

#[test]
fn what_ended_a_wait_is_kept_as_a_number() {
    for resumed in [Resumed::TimedOut, Resumed::Signal(1), Resumed::Signal(u64::MAX)] {
        assert_eq!(Resumed::of_number(resumed.number()), resumed);
    }
}

#[test]
fn a_time_out_that_is_deployed_holds_for_waits_that_open_later() {
    let mut story = Story::play("w ?paid/1h; v ?paid/1h < w", "");
    story.deploy("w ?paid/5h; v ?refused/5h < w");
    check_outcome(&story, "RUNNING: w WAITING, v PENDING; timers: w at 1h");
    story.go_on("signal paid");
    check_outcome(
        &story,
        "RUNNING: w COMPLETED, v WAITING
         timers: v at 5h
         resumed: w by paid#1
         signals: paid#1 to w",
    );
    story.go_on("signal paid; signal refused");
    check_outcome(
        &story,
        "COMPLETED: w COMPLETED, v COMPLETED
         resumed: w by paid#1, v by refused#3
         signals: paid#1 to w, paid#2 kept, refused#3 to v",
    );
}

#[test]
fn the_log_tells_of_waits_and_what_ended_them() {
    // R17
    check_log(
        "w ?paid|refused[order=7]/3h; v ?sent < w; b < v",
        "signal paid order=7; signal sent",
        "1 run RUN_STARTED
         2 w WAITING paid|refused[order=7] until 3h
         3 w SIGNALLED paid#1 COMPLETED
         4 v WAITING sent
         5 v SIGNALLED sent#2 COMPLETED
         - b QUEUED #1",
    );
    // R17
    check_log(
        "w ??paid/3h",
        "lose w; wait w; +3h; fire w",
        "1 run RUN_STARTED
         2 w QUEUED #1
         3 w STARTED #1
         4 w LEASE_LOST #1
         5 w WAITING #1 paid until 3h
         6 w TIMED_OUT #1 COMPLETED
         7 run RUN_ENDED COMPLETED",
    );
}

#[test]
fn the_log_of_a_step_that_waits_tells_each_of_its_attempts() {
    // R17
    check_log(
        "a",
        "wait a paid/3h; signal paid; wait a sent/1h; +1h; fire a; done a",
        "1 run RUN_STARTED
         2 a QUEUED #1
         3 a STARTED #1
         4 a SUSPENDED #1
         5 a WAITING #1 paid until 3h
         6 a SIGNALLED #1 paid#1 QUEUED
         7 a STARTED #2
         8 a SUSPENDED #2
         9 a WAITING #2 sent until 1h
         10 a TIMED_OUT #2 QUEUED
         11 a STARTED #3
         12 a COMPLETED #3
         13 run RUN_ENDED COMPLETED",
    );
}
