//! Failed attempts are tried again, by policy or by advice, and never before they are due.

use stepwell_core::decide::{Happening, TaskHappening, Verdict, affected, decide};
use stepwell_core::id::Node;
use stepwell_core::run::{AttemptState, RunImage};

use crate::story::{Story, check, check_log, text};

#[test]
fn a_retry_waits_with_a_timer_and_enters_the_queue_when_due() {
    // R11
    check("a *2", "fail a", "RUNNING: a QUEUED; timers: a at 1s");
    check("a *2", "fail a; +1s; fire a", "RUNNING: a QUEUED; queue: a");
    // R11
    check("a *2", "fail a; +1s; fire a; fail a", "RUNNING: a QUEUED; timers: a at 3s");
}

#[test]
fn a_delayed_retry_cannot_be_claimed() {
    // S11
    check("a *2", "fail a; claim a", "RUNNING: a QUEUED; timers: a at 1s; answers: a: refused");
}

#[test]
fn a_retry_is_stamped_anew_when_it_enters_the_queue() {
    let story = Story::play("a *2", "fail a; +5s; fire a; +2s; done a");
    let queued: Vec<i64> = story
        .attempts
        .iter()
        .map(|attempt| attempt.claim.queued_at.as_micros() / 1_000_000)
        .collect();
    assert_eq!(queued, [0, 5]);
}

#[test]
fn a_retry_without_delay_is_ready_at_once() {
    // R11
    check("a *1@0s", "fail a", "RUNNING: a QUEUED; queue: a");
    check("a *1@0s", "fail a; done a", "COMPLETED: a COMPLETED");
}

#[test]
fn the_failure_after_the_last_retry_is_final() {
    // R11, S9
    check("a *2@0s; b < a", "fail a a a", "FAILED: a FAILED, b CANCELLED; failure: a #3: boom");
}

#[test]
fn a_step_without_a_policy_is_not_retried() {
    // R11
    check("a", "fail a", "FAILED: a FAILED; failure: a #1: boom");
}

#[test]
fn a_permanent_failure_skips_the_retries() {
    // R11
    check("a *3", "fail! a", "FAILED: a FAILED; failure: a #1: boom");
}

#[test]
fn a_step_may_ask_for_another_delay_but_not_for_more_retries() {
    // R11
    check("a *1", "fail@5s a", "RUNNING: a QUEUED; timers: a at 5s");
    check("a *1", "fail@0s a", "RUNNING: a QUEUED; queue: a");
    check("a", "fail@5s a", "FAILED: a FAILED; failure: a #1: boom");
}

#[test]
fn a_time_out_is_retried_like_a_failure_and_recorded_as_what_it_was() {
    let story = Story::play("a *1@0s", "time_out a; done a");
    let states: Vec<AttemptState> = story.attempts.iter().map(|row| row.state).collect();
    assert_eq!(states, [AttemptState::TimedOut, AttemptState::Completed]);
}

#[test]
fn children_of_a_retried_step_wait_until_it_completes() {
    let line = "a *1; b < a";
    check(line, "fail a", "RUNNING: a QUEUED, b PENDING; timers: a at 1s");
    check(line, "fail a; +1s; fire a; done a", "RUNNING: a COMPLETED, b QUEUED; queue: b");
}

#[test]
fn a_retry_timer_that_fires_twice_queues_once() {
    // R15
    check(
        "a *1",
        "fail a; +1s; fire a & fire a",
        "RUNNING: a QUEUED; queue: a; answers: a: refused",
    );
}

#[test]
fn the_log_tells_count_delay_due_time_and_error_of_each_retry() {
    // R17
    check_log(
        "a *2",
        "fail a; +1s; fire a; fail a; +2s; fire a; fail a",
        "1 run RUN_STARTED
         2 a QUEUED #1
         3 a STARTED #1
         4 a RETRYING #1 1 in 1s at 1s boom
         5 a STARTED #2
         6 a RETRYING #2 2 in 2s at 3s boom
         7 a STARTED #3
         8 a FAILED #3 boom
         9 run RUN_ENDED FAILED",
    );
}

#[test]
fn a_failure_that_will_be_retried_touches_its_own_task_only() {
    let definition = text::workflow("a *1; b < a; c < b");
    let failed = |failures| {
        let happening = match text::happening("fail") {
            TaskHappening::Failed { failure, notes, chance, forgets, .. } => {
                TaskHappening::Failed { failure, notes, chance, failures, forgets }
            }
            other => other,
        };
        affected(&definition, [&Happening::Task(Node(0), happening)])
    };
    assert_eq!(failed(0).tasks, [Node(0)].into());
    assert!(!failed(0).may_touch_queued);
    assert_eq!(failed(1).tasks, [Node(0), Node(1), Node(2)].into());
    assert!(failed(1).may_touch_queued);
}

#[test]
fn a_failure_whose_count_is_not_that_of_its_task_is_not_decided() {
    let story = Story::play("a *1; b < a", "fail a; +1s; fire a; claim a");
    let tasks = story.tasks.values().cloned();
    let mut image = RunImage::new(&story.definition, story.now, story.run.clone(), tasks);
    let verdict = decide(&mut image, Happening::Task(Node(0), text::happening("fail")));
    assert_eq!(verdict, Verdict::WrongGuess);
    let (run, _, changes) = image.into_parts();
    assert_eq!(run, story.run);
    assert!(changes.touched.is_empty());
}
