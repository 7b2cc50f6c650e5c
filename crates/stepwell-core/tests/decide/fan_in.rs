//! Parents make their children ready, exactly once.

use crate::story::{Story, check, check_log};

#[test]
fn all_tasks_are_there_from_the_start_and_the_roots_are_ready() {
    check("a; b; c < a, b", "", "RUNNING: a QUEUED, b QUEUED, c PENDING; queue: a, b");
}

#[test]
fn steps_in_a_line_follow_one_another() {
    let line = "a; b < a; c < b";
    check(line, "done a", "RUNNING: a COMPLETED, b QUEUED, c PENDING; queue: b");
    // R16
    check(line, "done a b c", "COMPLETED: a COMPLETED, b COMPLETED, c COMPLETED");
}

#[test]
fn a_claimed_task_is_running_and_cannot_be_claimed_again() {
    check("a", "claim a a", "RUNNING: a RUNNING; answers: a: refused");
}

#[test]
fn steps_that_share_a_parent_are_ready_together() {
    check(
        "a; b < a; c < a; d < b, c",
        "done a",
        "RUNNING: a COMPLETED, b QUEUED, c QUEUED, d PENDING; queue: b, c",
    );
}

#[test]
fn a_join_waits_for_the_last_of_its_parents() {
    let diamond = "a; b < a; c < a; d < b, c";
    // R15
    check(diamond, "done a b", "RUNNING: a COMPLETED, b COMPLETED, c QUEUED, d PENDING; queue: c");
    check(
        diamond,
        "done a c b",
        "RUNNING: a COMPLETED, b COMPLETED, c COMPLETED, d QUEUED; queue: d",
    );
}

#[test]
fn parents_that_complete_in_one_batch_make_the_join_ready_once() {
    // R15
    check(
        "a; b; c; d < a, b, c",
        "done a & done b & done c",
        "RUNNING: a COMPLETED, b COMPLETED, c COMPLETED, d QUEUED; queue: d",
    );
}

#[test]
fn a_join_of_many_parents_becomes_ready_once() {
    let parents: Vec<String> = (0..200).map(|n| format!("p{n}")).collect();
    let workflow = format!("{}; join < {}", parents.join("; "), parents.join(", "));
    let script = format!("done {}", parents.join(" & done "));
    let story = Story::play(&workflow, &script);
    // R15
    assert_eq!(story.queue.len(), 1);
    assert_eq!(story.definition.name(story.queue[0]), "join");
}

#[test]
fn a_parent_that_was_named_twice_counts_twice_and_resolves_once() {
    // R15
    check("a; b < a, a", "done a", "RUNNING: a COMPLETED, b QUEUED; queue: b");
    check("a; b < a, a!", "skip a", "COMPLETED: a SKIPPED, b SKIPPED");
    check("a; b < a!, a", "skip a", "COMPLETED: a SKIPPED, b SKIPPED");
}

#[test]
fn a_task_that_is_done_cannot_be_done_again() {
    // S8
    check(
        "a; b",
        "done a a; fail a; skip a; release a; lose a; fire a",
        "RUNNING: a COMPLETED, b QUEUED
         queue: b
         answers: a: refused, a: refused, a: refused, a: refused, a: refused, a: refused",
    );
}

#[test]
fn the_log_of_a_run_tells_each_step_in_order() {
    // R17
    check_log(
        "a; b < a",
        "+1s; done a; claim b",
        "1 run RUN_STARTED
         2 a QUEUED #1
         3 a STARTED #1
         4 a COMPLETED #1
         - b QUEUED #1
         - b STARTED #1",
    );
    // R17
    check_log(
        "a; b < a",
        "done a b",
        "1 run RUN_STARTED
         2 a QUEUED #1
         3 a STARTED #1
         4 a COMPLETED #1
         5 b QUEUED #1
         6 b STARTED #1
         7 b COMPLETED #1
         8 run RUN_ENDED COMPLETED",
    );
}
