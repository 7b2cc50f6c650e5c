//! A lost worker is not the step's fault, and a task that keeps killing workers is stopped.

use stepwell_core::id::Node;

use crate::story::{Story, check, check_log};

fn losses(story: &Story) -> Vec<u32> {
    story.tasks.values().map(|task| task.losses).collect()
}

#[test]
fn a_lost_task_goes_back_to_the_queue() {
    // R14
    check("a; b < a", "lose a", "RUNNING: a QUEUED, b PENDING; queue: a");
    check("a; b < a", "lose a; done a", "RUNNING: a COMPLETED, b QUEUED; queue: b");
}

#[test]
fn a_step_without_retries_survives_losses_below_the_crash_limit() {
    // R14
    check("a", "lose a; lose a; done a", "COMPLETED: a COMPLETED");
}

#[test]
fn a_task_that_reaches_the_crash_limit_fails_with_that_reason() {
    // R14
    check(
        "a *9; b < a",
        "lose a; lose a; lose a",
        "FAILED: a FAILED, b CANCELLED
         failure: a #3: its worker died 3 times, the crash limit is 3",
    );
}

#[test]
fn losses_are_no_failures_and_failures_are_no_losses() {
    let story = Story::play("a *1@0s", "lose a; fail a; lose a");
    let task = &story.tasks[&Node(0)];
    // R11, S9
    assert_eq!((task.attempt, task.failures, task.losses), (3, 1, 2));
    check("a *1@0s", "lose a; fail a; done a", "COMPLETED: a COMPLETED");
}

#[test]
fn a_task_that_is_handed_back_is_charged_with_nothing() {
    let story = Story::play("a", &"release a;".repeat(10));
    let task = &story.tasks[&Node(0)];
    // R11, S9
    assert_eq!((task.attempt, task.failures, task.losses), (10, 0, 0));
    assert_eq!(story.queue, [Node(0)]);
    check("a", "release a; done a", "COMPLETED: a COMPLETED");
}

#[test]
fn a_task_that_is_handed_back_is_stamped_anew() {
    let story = Story::play("a", "claim a; +5s; release a; done a");
    let queued_at = story.attempts[1].claim.queued_at;
    assert_eq!(queued_at, story.now);
}

#[test]
fn the_claim_of_a_lost_worker_holds_nothing_any_more() {
    let mut story = Story::play("a", "claim a");
    let old = story.claims[&Node(0)];
    assert!(story.tasks[&Node(0)].is_held_by(old));
    let lost = story.losses(&[Node(0)]);
    story.happen(lost);
    story.claim(Node(0));
    // S6
    assert!(!story.tasks[&Node(0)].is_held_by(old));
}

#[test]
fn the_poison_task_fails_and_those_that_died_beside_it_complete() {
    let company = "claim a b c; lose a b c; claim a b c; lose a b c";
    let story = Story::play("a; b; c", company);
    // R14
    assert_eq!(losses(&story), [2, 2, 2]);
    // R14
    check(
        "a; b; c",
        &format!("{company}; lose a; done b c"),
        "FAILED: a FAILED, b COMPLETED, c COMPLETED
         failure: a #3: its worker died 3 times, the crash limit is 3",
    );
}

#[test]
fn only_the_suspect_is_charged_when_its_worker_dies() {
    let story = Story::play("a; b", "lose a; lose a; claim a b; lose a b");
    // R14
    assert_eq!(losses(&story), [3, 0]);
}

#[test]
fn a_worker_that_dies_in_a_fail_fast_run_ends_it_in_whatever_order_its_tasks_come() {
    let suspect = "fail_fast; a; b";
    let failure = "failure: a #3: its worker died 3 times, the crash limit is 3";
    check(
        suspect,
        "lose a; lose a; lose b a",
        &format!("FAILED: a FAILED, b CANCELLED; {failure}"),
    );
    check(
        suspect,
        "lose a; lose a; lose a b",
        &format!("FAILED: a FAILED, b CANCELLED; {failure}; answers: b: refused"),
    );
}

#[test]
fn the_log_tells_losses_hand_backs_and_the_end_at_the_limit() {
    // R17
    check_log(
        "a",
        "release a; lose a; lose a; lose a",
        "1 run RUN_STARTED
         2 a QUEUED #1
         3 a STARTED #1
         4 a RELEASED #1
         5 a STARTED #2
         6 a LEASE_LOST #2
         7 a STARTED #3
         8 a LEASE_LOST #3
         9 a STARTED #4
         10 a LEASE_LOST #4
         11 a FAILED #4 its worker died 3 times, the crash limit is 3
         12 run RUN_ENDED FAILED",
    );
}
