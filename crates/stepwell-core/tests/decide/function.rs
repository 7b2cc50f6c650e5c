//! Functions that suspend, listen, hear of what ended, and go on in another round.

use stepwell_core::decide::{Happening, affected};
use stepwell_core::id::Node;

use crate::story::{Story, check, check_log, text};

#[test]
fn a_function_that_sleeps_holds_no_worker_and_goes_on_when_the_time_is_up() {
    // D12
    check("a", "suspend a nap~24h", "RUNNING: a SLEEPING; timers: a at 24h");
    check(
        "a",
        "suspend a nap~24h; +24h; fire a",
        "RUNNING: a QUEUED; queue: a; memos: a/nap@1 SLEPT",
    );
    check(
        "a",
        "suspend a nap~24h; +24h; fire a; done a",
        "COMPLETED: a COMPLETED; memos: a/nap@1 SLEPT",
    );
}

#[test]
fn a_signal_wakes_a_function_that_waits_and_its_memo_says_which() {
    // D12, L7
    check(
        "a",
        "suspend a ok?paid/3h; signal paid",
        "RUNNING: a QUEUED; queue: a; signals: paid#1 to a; memos: a/ok@1 signal 1",
    );
}

#[test]
fn a_wait_of_a_function_that_passes_its_deadline_says_so() {
    // L8
    check(
        "a",
        "suspend a ok?paid/3h; +3h; fire a",
        "RUNNING: a QUEUED; queue: a; memos: a/ok@1 TIMED_OUT",
    );
}

#[test]
fn a_function_is_waiting_if_any_of_its_waits_is_for_a_signal() {
    let story = Story::play("a", "suspend a ok?paid nap~1h save*5m");
    assert_eq!(story.task("a").state().as_str(), "WAITING");
    assert_eq!(story.timers[&Node(0)].since(story.now), text::parse_span("5m"));
}

#[test]
fn a_step_that_is_tried_again_wakes_its_function_and_leaves_no_memo() {
    check("a", "suspend a save*5m; +5m; fire a", "RUNNING: a QUEUED; queue: a");
}

#[test]
fn a_function_hears_of_one_thing_at_a_time_and_the_rest_stays_open() {
    let story = Story::play("a", "suspend a ok?paid nap~1h; signal paid");
    let open: Vec<&str> = story.waits.keys().map(|(_, key)| key.as_str()).collect();
    assert_eq!(open, ["nap"]);
    assert_eq!(story.task("a").next_memo, 2);
}

#[test]
fn a_wait_that_stays_open_keeps_its_deadline_and_one_that_is_given_up_goes() {
    let script = "suspend a nap~1h ok?paid/2h; +30m; signal paid; suspend a nap~1h late?late";
    let story = Story::play("a", script);
    let open: Vec<&str> = story.waits.keys().map(|(_, key)| key.as_str()).collect();
    assert_eq!(open, ["late", "nap"]);
    assert_eq!(story.timers[&Node(0)].since(story.now), text::parse_span("30m"));
}

#[test]
fn a_signal_that_came_before_the_wait_is_heard_by_a_timer_that_is_due_now() {
    // L9
    check(
        "a",
        "claim a; signal paid; suspend a ok?paid; fire a",
        "RUNNING: a QUEUED; queue: a; signals: paid#1 to a; memos: a/ok@1 signal 1",
    );
}

#[test]
fn signals_that_come_while_a_woken_function_is_queued_are_kept_for_its_other_waits() {
    check(
        "a",
        "suspend a ok?paid no?refused; signal paid; signal refused; suspend a no?refused; fire a",
        "RUNNING: a QUEUED; queue: a; signals: paid#1 to a, refused#2 to a;
         memos: a/no@2 signal 2, a/ok@1 signal 1",
    );
}

#[test]
fn a_running_function_that_listens_is_given_a_signal_under_the_number_it_reserved() {
    check(
        "a",
        "claim a; signal paid; listen a nap~1h ok?paid",
        "RUNNING: a RUNNING; signals: paid#1 to a; memos: a/ok@1 signal 1;
         answers: a: heard of 1 by signal 1",
    );
}

#[test]
fn a_signal_to_a_running_function_is_kept_until_its_worker_looks_and_its_worker_is_told() {
    let story = Story::play("a", "claim a; listen a ok?paid; signal paid");
    assert_eq!(story.run.n_unconsumed, 1);
    check(
        "a",
        "claim a; listen a ok?paid; signal paid; listen a ok?paid",
        "RUNNING: a RUNNING; signals: paid#1 to a; memos: a/ok@1 signal 1;
         answers: a: heard of 0 by signal 1",
    );
}

#[test]
fn a_running_function_hears_of_deadlines_when_it_looks() {
    check(
        "a",
        "claim a; listen a ok?paid/5m; +4m; listen a ok?paid/5m; +1m; listen a ok?paid/5m",
        "RUNNING: a RUNNING; memos: a/ok@1 TIMED_OUT; answers: a: heard of 0 by time-out",
    );
}

#[test]
fn what_was_left_to_a_wait_that_is_given_up_goes_to_another() {
    // S14: the wait of `b` looked while the older one of `a` had a right to the signal.
    let given_up = "claim a; listen a ok?paid; suspend b ok?paid; signal paid; fire b; ";
    let left = Story::play("a; b", given_up);
    assert_eq!(left.run.n_unconsumed, 1);
    check(
        "a; b",
        &format!("{given_up} listen a nap~1h; look; fire b"),
        "RUNNING: a RUNNING, b QUEUED; queue: b; signals: paid#1 to b; memos: b/ok@1 signal 1",
    );
    // The same if the worker of `a` did not say that it gave up.
    check(
        "a; b",
        &format!("{given_up} done a; look; fire b"),
        "RUNNING: a COMPLETED, b QUEUED; queue: b; signals: paid#1 to b; memos: b/ok@1 signal 1",
    );
}

#[test]
fn what_was_left_to_a_function_that_kills_its_workers_goes_to_another() {
    check(
        "a; b",
        "claim a; listen a ok?paid; suspend b ok?paid; signal paid; fire b;
         lose a; lose a; lose a; look; fire b",
        "RUNNING: a FAILED, b QUEUED; queue: b; signals: paid#1 to b; memos: b/ok@1 signal 1;
         failure: a #3: its worker died 3 times, the crash limit is 3",
    );
}

#[test]
fn whatever_ends_a_function_takes_its_waits_along() {
    // S16: the store of stories checks that no wait of an ended task is left.
    for end in ["done a", "fail! a", "cancel", "cancel!", "wait a paid; signal paid; done a"] {
        let story = Story::play(
            "a",
            &format!("suspend a nap~1h; +1h; fire a; claim a; listen a ok?no; {end}"),
        );
        assert!(story.waits.is_empty(), "{end}");
    }
    let asleep = Story::play("a", "suspend a nap~1h ok?paid; cancel");
    assert!(asleep.waits.is_empty() && asleep.timers.is_empty());
}

#[test]
fn a_suspension_is_no_failure_and_forgives_lost_workers() {
    // S9, D5
    let story = Story::play("a", "lose a; lose a; suspend a nap~1h");
    assert_eq!((story.task("a").losses, story.task("a").failures), (0, 0));
}

#[test]
fn a_function_may_wait_as_a_whole_and_keeps_what_resumed_it_through_its_own_waits() {
    let waited = "wait a paid; signal paid; suspend a nap~1h; +1h; fire a";
    check(
        "a",
        waited,
        "RUNNING: a QUEUED; queue: a; resumed: a by paid#1; signals: paid#1 to a;
         memos: a/nap@1 SLEPT",
    );
    check(
        "a",
        &format!("{waited}; wait a late/1h"),
        "RUNNING: a WAITING; timers: a at 2h; signals: paid#1 to a; memos: a/nap@1 SLEPT",
    );
}

#[test]
fn another_round_forgets_memos_failures_and_waits_and_keeps_signals() {
    // D12
    let story = Story::play(
        "a *3@0s",
        "fail a; suspend a ok?paid nap~1h; signal paid; signal late; continue a",
    );
    let keys: Vec<&str> = story.memos.keys().map(|(_, key)| key.as_str()).collect();
    assert_eq!(keys, [""], "only the round is known");
    let task = story.task("a");
    assert_eq!((task.failures, task.losses, task.next_memo), (0, 0, 1));
    assert!(story.waits.is_empty());
    assert_eq!(story.run.n_unconsumed, 1);
}

#[test]
fn the_log_tells_of_suspensions_and_rounds() {
    check_log(
        "a",
        "suspend a nap~1h ok?paid; +1h; fire a; suspend a ok?paid; signal paid; continue a; done a",
        "1 run RUN_STARTED
         2 a QUEUED #1
         3 a STARTED #1
         4 a SUSPENDED #1
         5 a WAITING #1 paid until 1h of nap ok
         6 a WOKEN #1 QUEUED of nap
         7 a STARTED #2
         8 a SUSPENDED #2
         9 a WAITING #2 paid of ok
         10 a SIGNALLED #2 paid#1 QUEUED of ok
         11 a STARTED #3
         12 a SUSPENDED #3
         13 a CONTINUED #3 1
         14 a STARTED #4
         15 a COMPLETED #4
         16 run RUN_ENDED COMPLETED",
    );
}

#[test]
fn waits_are_loaded_only_for_functions_that_have_some() {
    let mut story = Story::play("a", "claim a");
    let inbox = |story: &Story, suspends: bool| {
        let happening: Happening = story.open(Node(0), suspends, "nap~1h");
        affected(&story.definition, [&happening]).inbox.is_some()
    };
    assert!(!inbox(&story, true), "a first suspension reads no waits");
    assert!(inbox(&story, false));
    story.go_on("suspend a nap~1h; +1h; fire a; claim a");
    assert!(inbox(&story, true));
}
