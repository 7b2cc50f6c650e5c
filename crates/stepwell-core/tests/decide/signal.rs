//! Signals are stored first, and given once: to the oldest wait that they are for and that they
//! reach in time.

use stepwell_core::decide::{Happening, RunHappening, affected};
use stepwell_core::id::Node;
use stepwell_core::limits::UNCONSUMED_SIGNALS_MAX;
use stepwell_core::run::WaitRow;

use crate::story::{Story, check, check_log, text};

#[test]
fn a_signal_that_nobody_waits_for_is_kept() {
    // L9
    check("a", "signal paid", "RUNNING: a QUEUED; queue: a; signals: paid#1 kept");
    check(
        "w ?paid; b",
        "signal sent; signal paid; signal paid",
        "RUNNING: w COMPLETED, b QUEUED
         queue: b
         resumed: w by paid#2
         signals: sent#1 kept, paid#2 to w, paid#3 kept",
    );
}

#[test]
fn a_signal_before_the_wait_is_kept_for_it_and_the_wait_looks_by_its_timer() {
    let workflow = "a; w ?paid < a";
    // L9
    check(
        workflow,
        "signal paid; +5m; done a",
        "RUNNING: a COMPLETED, w WAITING; timers: w at 5m; signals: paid#1 kept",
    );
    // L9
    check(
        workflow,
        "signal paid; +5m; done a; fire w",
        "COMPLETED: a COMPLETED, w COMPLETED; resumed: w by paid#1; signals: paid#1 to w",
    );
}

#[test]
fn a_signal_before_the_wait_is_in_time_whatever_the_time_out_and_however_late_the_look() {
    for wait in ["?paid/0s", "?paid/5m", "??paid/0s"] {
        let workflow = format!("a; w {wait} < a; b < w");
        let asked = if wait.starts_with("??") { "wait w;" } else { "" };
        // L9
        check(
            &workflow,
            &format!("signal paid; done a; {asked} +9h; fire w; done b"),
            "COMPLETED: a COMPLETED, w COMPLETED, b COMPLETED
             resumed: w by paid#1
             signals: paid#1 to w",
        );
    }
    // L9
    check(
        "a",
        "signal paid; wait a paid/0s; fire a",
        "RUNNING: a QUEUED; queue: a; resumed: a by paid#1; signals: paid#1 to a",
    );
}

#[test]
fn a_signal_after_the_wait_began_is_not_in_time_for_a_time_out_of_zero() {
    check(
        "w ?paid/0s; b < w",
        "signal paid; fire w",
        "RUNNING: w COMPLETED, b QUEUED
         queue: b
         resumed: w by time-out
         signals: paid#1 kept",
    );
}

#[test]
fn a_signal_after_the_deadline_stays_though_the_timer_has_not_fired() {
    // L8
    check(
        "w ?paid/3h; b < w",
        "+4h; signal paid",
        "RUNNING: w WAITING, b PENDING; timers: w at 3h; signals: paid#1 kept",
    );
    // L8
    check(
        "w ?paid/3h; b < w",
        "+4h; signal paid; fire w",
        "RUNNING: w COMPLETED, b QUEUED
         queue: b
         resumed: w by time-out
         signals: paid#1 kept",
    );
    let last_moment = "w ?paid/3h; b";
    check(
        last_moment,
        "+3h; signal paid; fire w",
        "RUNNING: w COMPLETED, b QUEUED
         queue: b
         resumed: w by time-out
         signals: paid#1 kept",
    );
    check(
        last_moment,
        "+2h; signal paid; +1h; fire w",
        "RUNNING: w COMPLETED, b QUEUED
         queue: b
         resumed: w by paid#1
         signals: paid#1 to w
         answers: w: refused",
    );
}

#[test]
fn a_signal_in_time_wins_though_the_look_comes_after_the_deadline() {
    check(
        "a; w ?paid/1h < a; b < w",
        "signal sent; done a; +59m; signal paid; +9h; fire w",
        "RUNNING: a COMPLETED, w COMPLETED, b QUEUED
         queue: b
         resumed: w by paid#2
         signals: sent#1 kept, paid#2 to w",
    );
}

#[test]
fn a_look_that_finds_nothing_goes_back_to_the_deadline_or_to_no_timer() {
    // S11
    check(
        "a; w ?paid/3h < a",
        "signal sent; done a; +5m; fire w",
        "RUNNING: a COMPLETED, w WAITING; timers: w at 3h; signals: sent#1 kept",
    );
    check(
        "a; w ?paid < a",
        "signal sent; done a; +5m; fire w",
        "RUNNING: a COMPLETED, w WAITING; signals: sent#1 kept",
    );
    // L8
    check(
        "a; w ?paid/3h < a",
        "signal sent; done a; fire w; +3h; fire w",
        "COMPLETED: a COMPLETED, w COMPLETED; resumed: w by time-out; signals: sent#1 kept",
    );
    // L7
    check(
        "a; w ?paid/3h < a",
        "signal sent; done a; fire w; signal paid",
        "COMPLETED: a COMPLETED, w COMPLETED
         resumed: w by paid#2
         signals: sent#1 kept, paid#2 to w",
    );
}

#[test]
fn whoever_waits_while_nothing_is_kept_has_nothing_to_look_at() {
    check(
        "v ?paid; a; w ?paid < a",
        "signal paid; done a",
        "RUNNING: v COMPLETED, a COMPLETED, w WAITING
         resumed: v by paid#1
         signals: paid#1 to v",
    );
}

#[test]
fn only_signals_and_timers_read_the_inbox() {
    let definition = text::workflow("a *1; s ~1h; w ?paid; b < a");
    let inbox = |verb: &str, name: &str| {
        let node = definition.find(name).expect("a step of the story");
        affected(&definition, [&Happening::Task(node, text::happening(verb))]).inbox
    };
    for verb in ["done", "fail", "fail!", "skip", "release"] {
        assert_eq!(inbox(verb, "a"), None, "{verb}");
    }
    let asleep = definition.find("s").expect("a step of the story");
    assert_eq!(affected(&definition, [&Happening::timer_fired(asleep)]).inbox, None);
    let waiting = definition.find("w").expect("a step of the story");
    let needs = affected(&definition, [&Happening::timer_fired(waiting)]).inbox;
    assert!(needs.is_some_and(|needs| needs.unconsumed && needs.keys.is_empty()));
    let signal = Happening::Run(RunHappening::Signalled(text::signal("paid", "k1")));
    let needs = affected(&definition, [&signal]).inbox.expect("a signal reads the inbox");
    assert!(!needs.unconsumed);
    assert_eq!(needs.keys, ["k1".to_owned()].into());
}

#[test]
fn a_signal_reads_the_tasks_it_may_move_on_and_what_follows_from_a_wait_node() {
    let story = Story::play(
        "a; b < a; v ?paid; c < v; w ?refused; d < w; u ?paid[order=7]",
        "wait a paid|sent",
    );
    let read = |text: &str| {
        let signal = Happening::Run(RunHappening::Signalled(text::signal(text, "k1")));
        let mut affected = affected(&story.definition, [&signal]);
        let waits: Vec<WaitRow> = story.waits.values().cloned().collect();
        affected.add_waits(&story.definition, &waits, [&signal]);
        assert!(!affected.all_open && !affected.may_touch_queued);
        let names = affected.tasks.iter().map(|node| story.definition.name(*node));
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(read("paid"), "a v c");
    assert_eq!(read("paid order=7"), "a v c u");
    assert_eq!(read("sent"), "a");
    assert_eq!(read("unknown"), "");
}

#[test]
fn attributes_that_a_wait_asks_for_must_be_equal() {
    let expected = "RUNNING: w WAITING; signals: paid#1 kept";
    for signal in ["paid", "paid order=8", "paid item=7", "paid order=77"] {
        check("w ?paid[order=7]", &format!("signal {signal}"), expected);
    }
    check(
        "w ?paid[order=7,item=2]",
        "signal paid order=7; signal paid item=2; signal paid item=2 order=7 by=me",
        "COMPLETED: w COMPLETED
         resumed: w by paid#3
         signals: paid#1 kept, paid#2 kept, paid#3 to w",
    );
    check(
        "a; w ?paid[order=7] < a",
        "signal paid order=8; signal paid order=7; done a; fire w",
        "COMPLETED: a COMPLETED, w COMPLETED
         resumed: w by paid#2
         signals: paid#1 kept, paid#2 to w",
    );
}

#[test]
fn the_same_key_again_is_the_same_signal() {
    // L10
    check(
        "w ?paid; v ?paid",
        "signal paid(ten) key=k1; signal paid(ten) key=k1 & signal paid(ten) key=k1",
        "RUNNING: w COMPLETED, v WAITING
         resumed: w by paid#1
         signals: paid#1 to w
         answers: paid: known as 1, paid: known as 1",
    );
    // L10
    check(
        "a",
        "signal paid key=k1 order=7; signal paid order=7 key=k1",
        "RUNNING: a QUEUED; queue: a; signals: paid#1 kept; answers: paid: known as 1",
    );
    // L10
    check(
        "w ?paid; v ?paid",
        "signal paid key=k1 & signal paid key=k1",
        "RUNNING: w COMPLETED, v WAITING
         resumed: w by paid#1
         signals: paid#1 to w
         answers: paid: known as 1",
    );
}

#[test]
fn other_content_under_the_same_key_is_refused() {
    for other in ["sent(ten) key=k1", "paid(two) key=k1", "paid(ten) order=7 key=k1"] {
        let name = &other[..4];
        // L10
        check(
            "v ?sent; a",
            &format!("signal paid(ten) key=k1; signal {other}"),
            &format!(
                "RUNNING: v WAITING, a QUEUED
                 queue: a
                 signals: paid#1 kept
                 answers: {name}: KeyTaken"
            ),
        );
    }
}

#[test]
fn an_ended_or_ending_run_takes_no_signals() {
    check(
        "a",
        "done a; signal paid",
        "COMPLETED: a COMPLETED; answers: paid: AlreadyEnded(Completed)",
    );
    check(
        "on_failure; a",
        "fail a; signal paid",
        "ENDING: a FAILED, on_failure QUEUED
         queue: on_failure
         failure: a #1: boom
         answers: paid: AlreadyEnding(Failed)",
    );
    check(
        "w ?paid",
        "signal paid & signal paid",
        "COMPLETED: w COMPLETED
         resumed: w by paid#1
         signals: paid#1 to w
         answers: paid: AlreadyEnded(Completed)",
    );
}

#[test]
fn a_key_that_is_known_is_answered_as_before_though_the_run_has_ended() {
    // L10
    check(
        "w ?paid",
        "signal paid key=k1; signal paid key=k1; signal sent key=k1; signal sent key=k2",
        "COMPLETED: w COMPLETED
         resumed: w by paid#1
         signals: paid#1 to w
         answers: paid: known as 1, sent: KeyTaken, sent: AlreadyEnded(Completed)",
    );
}

#[test]
fn a_signal_to_whoever_waits_is_dropped_if_nobody_does() {
    check(
        "w ?paid[order=7]/1h; b",
        "signal! sent; signal! paid order=8; +1h; signal! paid order=7",
        "RUNNING: w WAITING, b QUEUED
         queue: b
         timers: w at 1h
         answers: sent: NotAwaited, paid: NotAwaited, paid: NotAwaited",
    );
}

#[test]
fn a_signal_to_whoever_waits_goes_to_the_oldest_wait_of_a_run_and_is_repeated_by_its_key() {
    // L10
    check(
        "w ?paid; v ?paid",
        "signal! paid key=k1; signal! paid key=k1",
        "RUNNING: w COMPLETED, v WAITING
         resumed: w by paid#1
         signals: paid#1 to w
         answers: paid: known as 1",
    );
}

#[test]
fn a_wait_that_has_yet_to_look_counts_as_waiting() {
    check(
        "a; w ?paid < a",
        "signal sent; done a; signal! paid; fire w",
        "COMPLETED: a COMPLETED, w COMPLETED
         resumed: w by paid#2
         signals: sent#1 kept, paid#2 to w",
    );
}

#[test]
fn a_run_keeps_only_so_many_signals_but_takes_one_that_is_awaited() {
    let mut story = Story::start(text::workflow("w ?paid; a; v ?paid < a"));
    story.keep_signals("sent", UNCONSUMED_SIGNALS_MAX);
    story.go_on("signal sent; signal paid; done a; signal paid; fire v; signal paid");
    let answers = ["sent: TooMany", "paid: TooMany"];
    assert_eq!(story.answers, answers);
    assert_eq!(story.run.n_unconsumed, UNCONSUMED_SIGNALS_MAX);
    assert_eq!(story.signals.len(), 2 + UNCONSUMED_SIGNALS_MAX as usize);
    assert!(story.has_ended());
}

#[test]
fn a_signal_that_was_refused_leaves_the_wait_it_was_for_alone() {
    let kept = "signal sent &".repeat(UNCONSUMED_SIGNALS_MAX as usize);
    let mut story = Story::play("w ?go; v ?paid/1h < w", "");
    story.go_on(&format!("signal go & {kept} signal paid"));
    assert_eq!(story.answers, ["paid: TooMany"]);
    assert_eq!(story.task("v").phase.due(), story.waits[&(Node(1), String::new())].deadline);
}

#[test]
fn the_log_tells_of_a_signal_when_somebody_gets_it() {
    // R17
    check_log(
        "a; b",
        "signal sent; wait a sent|paid; signal paid; fire a; done a",
        "1 run RUN_STARTED
         2 a QUEUED #1
         3 a STARTED #1
         4 a SUSPENDED #1
         5 a WAITING #1 sent|paid
         6 a SIGNALLED #1 sent#1 QUEUED
         7 a STARTED #2
         8 a COMPLETED #2
         - b QUEUED #1",
    );
}
