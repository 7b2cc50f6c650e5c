//! Signals are given in the order of storing, to waits in the order of opening, whoever comes first
//! to look, and none is left lying that somebody waits for.

use crate::story::{Story, check, check_outcome};

#[test]
fn of_two_waits_for_one_signal_the_older_gets_it() {
    // L9
    check(
        "a; v ?paid < a; w ?paid",
        "done a; signal paid",
        "RUNNING: a COMPLETED, v WAITING, w COMPLETED
         resumed: w by paid#1
         signals: paid#1 to w",
    );
    // L9
    check(
        "a; w ?paid",
        "wait a paid; signal paid; signal paid; signal paid",
        "RUNNING: a QUEUED, w COMPLETED
         queue: a
         resumed: a by paid#2, w by paid#1
         signals: paid#1 to w, paid#2 to a, paid#3 kept",
    );
}

#[test]
fn a_wait_that_is_over_leaves_the_signal_to_a_younger_one() {
    check(
        "v ?paid/1h; w ?paid/9h",
        "+1h; signal paid; fire v",
        "COMPLETED: v COMPLETED, w COMPLETED
         resumed: v by time-out, w by paid#1
         signals: paid#1 to w",
    );
}

#[test]
fn signals_of_one_type_are_given_in_their_order() {
    // L9
    check(
        "a; b < a",
        "signal paid; signal paid; signal sent; wait a paid; fire a; wait a sent|paid; fire a",
        "RUNNING: a QUEUED, b PENDING
         queue: a
         resumed: a by paid#2
         signals: paid#1 to a, paid#2 to a, sent#3 kept",
    );
}

#[test]
fn a_signal_does_not_overtake_those_that_a_wait_has_yet_to_look_at() {
    // L9
    check(
        "a; b < a",
        "signal paid; wait a paid; signal paid",
        "RUNNING: a WAITING, b PENDING; timers: a at 0s; signals: paid#1 kept, paid#2 kept",
    );
    // L9
    check(
        "a; b < a",
        "signal paid; wait a paid/1h; +5m; signal paid; fire a",
        "RUNNING: a QUEUED, b PENDING
         queue: a
         resumed: a by paid#1
         signals: paid#1 to a, paid#2 kept",
    );
    // L9
    check(
        "a; b < a",
        "signal paid; wait a paid; signal paid; fire a; wait a paid; fire a; done a b",
        "COMPLETED: a COMPLETED, b COMPLETED; signals: paid#1 to a, paid#2 to a",
    );
}

#[test]
fn an_older_wait_that_has_yet_to_look_goes_first_though_a_younger_one_looks_before_it() {
    let workflow = "a; v ?paid < a; w ?paid < a; b < v, w";
    // L9
    check(
        workflow,
        "signal paid; done a; fire w",
        "RUNNING: a COMPLETED, v WAITING, w WAITING, b PENDING
         timers: v at 0s
         signals: paid#1 kept",
    );
    // L9
    check(
        workflow,
        "signal paid; done a; fire w; fire v; signal paid; done b",
        "COMPLETED: a COMPLETED, v COMPLETED, w COMPLETED, b COMPLETED
         resumed: v by paid#1, w by paid#2
         signals: paid#1 to v, paid#2 to w",
    );
    // L9
    check(
        workflow,
        "signal paid; signal paid; done a; fire w & fire v; done b",
        "COMPLETED: a COMPLETED, v COMPLETED, w COMPLETED, b COMPLETED
         resumed: v by paid#1, w by paid#2
         signals: paid#1 to v, paid#2 to w",
    );
}

#[test]
fn what_an_older_wait_gets_is_told_by_all_that_it_waits_for() {
    // The older one takes what was refused, so that what was paid is left to the younger.
    check(
        "a; v ?paid|refused < a; w ?paid < a; b < v, w",
        "signal refused; signal paid; done a; fire w",
        "RUNNING: a COMPLETED, v WAITING, w COMPLETED, b PENDING
         timers: v at 0s
         resumed: w by paid#2
         signals: refused#1 kept, paid#2 to w",
    );
}

#[test]
fn a_younger_wait_times_out_rather_than_take_the_signal_of_an_older_one() {
    check(
        "a; v ?paid < a; w ?paid/1h < a; b < v, w",
        "signal paid; done a; +1h; fire w",
        "RUNNING: a COMPLETED, v WAITING, w COMPLETED, b PENDING
         timers: v at 0s
         resumed: w by time-out
         signals: paid#1 kept",
    );
}

#[test]
fn signals_that_come_before_an_older_wait_has_looked_reach_the_younger_ones_as_well() {
    // The younger wait has looked and found nothing; it looks again, since both are for it, too.
    let mut story = Story::play(
        "a; v ?paid < a; w ?paid/1h < a; b < v, w",
        "signal sent; done a; fire w; signal paid; +1s; signal paid",
    );
    check_outcome(
        &story,
        "RUNNING: a COMPLETED, v WAITING, w WAITING, b PENDING
         timers: v at 0s, w at 0s
         signals: sent#1 kept, paid#2 kept, paid#3 kept",
    );
    story.go_on("fire v w");
    check_outcome(
        &story,
        "RUNNING: a COMPLETED, v COMPLETED, w COMPLETED, b QUEUED
         queue: b
         resumed: v by paid#2, w by paid#3
         signals: sent#1 kept, paid#2 to v, paid#3 to w",
    );
}

#[test]
fn a_wait_that_opened_with_nothing_kept_looks_once_an_older_one_leaves_it_a_signal() {
    // The older wait opened while something was kept and has not looked yet. What was kept is gone
    // when the younger one opens, so that one had nothing to look at.
    check(
        "a; v ?paid < a; u ?sent < a; c; w ?paid < c; b < v, w",
        "signal sent; done a; fire u; done c; signal paid; signal paid; fire v w",
        "RUNNING: a COMPLETED, v COMPLETED, u COMPLETED, c COMPLETED, w COMPLETED, b QUEUED
         queue: b
         resumed: v by paid#2, u by sent#1, w by paid#3
         signals: sent#1 to u, paid#2 to v, paid#3 to w",
    );
}

#[test]
fn a_signal_for_a_wait_that_opened_in_the_same_batch_is_met_by_its_timer() {
    for wait in ["?paid", "?paid/1h"] {
        let workflow = format!("v ?go; w {wait} < v; b < w");
        check(
            &workflow,
            "+5m; signal go & signal paid",
            "RUNNING: v COMPLETED, w WAITING, b PENDING
             timers: w at 5m
             resumed: v by go#1
             signals: go#1 to v, paid#2 kept",
        );
        check(
            &workflow,
            "signal go & signal paid; fire w; done b",
            "COMPLETED: v COMPLETED, w COMPLETED, b COMPLETED
             resumed: v by go#1, w by paid#2
             signals: go#1 to v, paid#2 to w",
        );
    }
}

#[test]
fn all_waits_that_opened_in_the_same_batch_meet_their_signals() {
    check(
        "v ?go; w ?paid/1h < v; x ?paid/1h < v; b < w, x",
        "signal go & signal paid & signal paid; fire w x",
        "RUNNING: v COMPLETED, w COMPLETED, x COMPLETED, b QUEUED
         queue: b
         resumed: v by go#1, w by paid#2, x by paid#3
         signals: go#1 to v, paid#2 to w, paid#3 to x",
    );
}

#[test]
fn a_wait_that_opened_in_the_same_batch_is_younger_than_those_before() {
    check(
        "v ?go; w ?paid < v; x ?paid; b < w",
        "signal go & signal paid & signal paid",
        "RUNNING: v COMPLETED, w WAITING, x COMPLETED, b PENDING
         timers: w at 0s
         resumed: v by go#1, x by paid#2
         signals: go#1 to v, paid#2 to x, paid#3 kept",
    );
}

#[test]
fn two_signals_of_one_batch_go_to_two_waits() {
    check(
        "v ?paid; w ?paid|refused; b < v, w",
        "signal refused & signal paid",
        "RUNNING: v COMPLETED, w COMPLETED, b QUEUED
         queue: b
         resumed: v by paid#2, w by refused#1
         signals: refused#1 to w, paid#2 to v",
    );
}

#[test]
fn a_step_that_waits_and_its_signal_may_come_in_one_batch() {
    check(
        "a",
        "wait a paid/1h & signal paid; fire a; done a",
        "COMPLETED: a COMPLETED; signals: paid#1 to a",
    );
    // A store may find the timer due in the very batch that opens the wait.
    check(
        "a",
        "signal paid; wait a paid/0s & fire a & signal paid",
        "RUNNING: a QUEUED
         queue: a
         resumed: a by paid#1
         signals: paid#1 to a, paid#2 kept",
    );
}

#[test]
fn a_cancel_and_a_signal_in_one_batch_are_decided_in_their_order() {
    // L12
    check(
        "w ?paid; a",
        "cancel & signal paid",
        "CANCELLED: w CANCELLED, a CANCELLED
         answers: cancel: Cancelled, paid: AlreadyEnded(Cancelled)",
    );
    // L12
    check(
        "w ?paid; a",
        "signal paid & cancel",
        "CANCELLED: w COMPLETED, a CANCELLED
         resumed: w by paid#1
         signals: paid#1 to w
         answers: cancel: Cancelled",
    );
}
