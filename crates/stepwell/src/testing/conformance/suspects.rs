//! Suspects: tasks one loss below the crash limit. Each is executed alone, in a trial, so that
//! nothing else is charged for it, and it for nothing else.

use stepwell_core::id::WorkerId;
use stepwell_core::run::RunStatus;

use super::world::{Batch, CRASH_LIMIT, LEASE, Run, TENANT, WORKER, World, step_of, worker};
use crate::ports::{ClaimAnswer, ClaimedTask, Take};

/// What a claim for suspects brings: a task, or words.
enum Tried {
    Got(Box<ClaimedTask>),
    Not(&'static str),
}

impl Tried {
    fn got(self) -> ClaimedTask {
        match self {
            Self::Got(task) => *task,
            Self::Not(why) => panic!("a suspect is handed out: {why}"),
        }
    }

    fn why_not(self) -> &'static str {
        match self {
            Self::Got(task) => panic!("{:?} was handed out", task.claim),
            Self::Not(why) => why,
        }
    }
}

/// Asks for a suspect.
async fn try_suspect(world: &World, worker: &WorkerId) -> Tried {
    let mut request = world.claim_request(worker, 10);
    request.take = Take::Suspect;
    let answer = world.store().claim(request).await.expect("claim a suspect");
    world.check().await;
    match answer {
        ClaimAnswer::Claimed { mut tasks, suspect_waits, .. } => match (tasks.pop(), suspect_waits)
        {
            (Some(task), _) => {
                assert!(tasks.is_empty() && task.is_suspect, "one suspect");
                Tried::Got(Box::new(task))
            }
            (None, true) => Tried::Not("not yet"),
            (None, false) => Tried::Not("none waits"),
        },
        ClaimAnswer::NoTrial => Tried::Not("not now"),
        ClaimAnswer::NotRegistered => panic!("{worker} is not registered"),
    }
}

/// What is no suspect, and whether one waits.
async fn claim_plain(world: &World, worker: &WorkerId) -> (Batch, bool) {
    let answer = world.store().claim(world.claim_request(worker, 10)).await.expect("claim");
    world.check().await;
    match answer {
        ClaimAnswer::Claimed { tasks, suspect_waits, .. } => (Batch(tasks), suspect_waits),
        other => panic!("{other:?}"),
    }
}

pub(super) async fn tasks_lost_together_become_suspects_and_no_more(world: &World) {
    // R14, FA10
    let flow = world.define("a; b").await;
    let run = world.start(&flow).await;
    for (n, expected) in [1, 2].into_iter().enumerate() {
        let unlucky = world.hire(&format!("unlucky-{n}")).await;
        assert_eq!(world.claim(&unlucky, 2).await.len(), 2);
        world.lose(&unlucky).await;
        assert_eq!(world.task(&run, "a").await.losses, expected);
        assert_eq!(world.task(&run, "b").await.losses, expected);
    }
}

/// Starts runs of one task each, and makes suspects of them.
async fn suspects(world: &World, n: usize) -> Vec<Run> {
    let flow = world.define("a").await;
    let runs = world.start_many_for(TENANT, &flow, n).await;
    for round in 1..CRASH_LIMIT {
        let unlucky = world.hire(&format!("unlucky-{round}")).await;
        assert_eq!(world.claim(&unlucky, n).await.len(), n);
        world.lose(&unlucky).await;
    }
    runs
}

pub(super) async fn a_suspect_is_handed_out_to_empty_hands_only(world: &World) {
    // R14, FA10
    suspects(world, 3).await;
    let plain = world.define("b").await;
    world.start_many_for(TENANT, &plain, 2).await;
    let (batch, suspect_waits) = claim_plain(world, &worker(WORKER)).await;
    assert_eq!((batch.steps().as_str(), suspect_waits), ("b b", true));
    assert_eq!(try_suspect(world, &worker(WORKER)).await.why_not(), "not yet");
    world.complete(&batch[0]).await;
    assert_eq!(try_suspect(world, &worker(WORKER)).await.why_not(), "not yet");
    world.complete(&batch[1]).await;
    let suspect = try_suspect(world, &worker(WORKER)).await.got();
    assert_eq!((step_of(&suspect), suspect.attempt), ("a", CRASH_LIMIT));
    assert_eq!(try_suspect(world, &worker(WORKER)).await.why_not(), "not yet");
}

pub(super) async fn a_worker_that_holds_a_suspect_gets_nothing_else(world: &World) {
    // R14, FA10: also if the reply that told of the suspect was lost, and it asks for other tasks.
    suspects(world, 2).await;
    let plain = world.define("b; c < b").await;
    let suspect = try_suspect(world, &worker(WORKER)).await.got();
    world.start(&plain).await;
    let (batch, _) = claim_plain(world, &worker(WORKER)).await;
    assert!(batch.is_empty(), "{}", batch.steps());
    world.release(&suspect).await;
    let (batch, suspect_waits) = claim_plain(world, &worker(WORKER)).await;
    assert_eq!((batch.steps().as_str(), suspect_waits), ("b", true));
}

pub(super) async fn nothing_is_handed_over_to_a_worker_in_a_trial(world: &World) {
    // R14, FA10
    suspects(world, 1).await;
    let plain = world.define("b; c < b").await;
    let suspect = try_suspect(world, &worker(WORKER)).await.got();
    let request = world.request(TENANT, "", &plain, b"input");
    let started = world.start_and_claim(vec![request], &worker(WORKER), 10).await;
    assert!(started.handed_over.tasks.is_empty());
    let second = world.hire("second").await;
    let batch = world.claim(&second, 1).await;
    assert_eq!(world.complete_for(&batch, &worker(WORKER), 10).await.steps(), "");
    // The trial goes on until the worker asks for other tasks.
    world.complete(&suspect).await;
    let batch = world.claim(&second, 1).await;
    assert_eq!(batch.steps(), "c");
    let request = world.request(TENANT, "", &plain, b"input");
    let started = world.start_and_claim(vec![request], &worker(WORKER), 10).await;
    assert!(started.handed_over.tasks.is_empty());
    assert_eq!(world.claim_one().await.attempt, 1);
    let request = world.request(TENANT, "", &plain, b"input");
    let started = world.start_and_claim(vec![request], &worker(WORKER), 10).await;
    assert_eq!(started.handed_over.tasks.len(), 1);
}

pub(super) async fn a_poison_does_not_fail_a_suspect_that_waits_beside_it(world: &World) {
    // R14, FA10
    let innocent = suspects(world, 1).await;
    let flow = world.define("poison").await;
    let run = world.start(&flow).await;
    for n in 1..=CRASH_LIMIT {
        let next = world.hire(&format!("next-{n}")).await;
        let batch = loop {
            let batch = world.claim(&next, 10).await;
            if batch.iter().any(|task| step_of(task) == "poison") {
                break batch;
            }
            world.complete_together(&batch).await;
        };
        assert_eq!(batch.steps(), "poison", "it shares its worker with nobody");
        world.lose(&next).await;
    }
    assert_eq!(world.states(&run).await, "poison FAILED");
    world.drain().await;
    assert_eq!(world.states(&innocent[0]).await, "a COMPLETED");
}

pub(super) async fn a_worker_that_dies_in_a_trial_charges_its_suspect_alone(world: &World) {
    // R14, FA10
    let runs = suspects(world, 2).await;
    let second = world.hire("second").await;
    let suspect = try_suspect(world, &second).await.got();
    world.lose(&second).await;
    let is_lost = |run: &&Run| run.key == suspect.claim.run;
    let (lost, other) = (runs.iter().find(is_lost), runs.iter().find(|run| !is_lost(run)));
    assert_eq!(world.states(lost.expect("it is one of them")).await, "a FAILED");
    let other = other.expect("there are two");
    assert_eq!(world.task(other, "a").await.losses, CRASH_LIMIT - 1);
    assert!(try_suspect(world, &worker(WORKER)).await.got().claim.run == other.key);
}

pub(super) async fn one_worker_in_four_holds_a_trial_and_one_in_any_case(world: &World) {
    // R14
    suspects(world, 5).await;
    let mut workers = vec![worker(WORKER)];
    for n in 2..=8 {
        workers.push(world.hire(&format!("worker-{n}")).await);
    }
    let first = try_suspect(world, &workers[0]).await.got();
    try_suspect(world, &workers[1]).await.got();
    assert_eq!(try_suspect(world, &workers[2]).await.why_not(), "not now");
    // Who is dead holds no trial, but now there are seven.
    world.lose(&workers[1]).await;
    assert_eq!(try_suspect(world, &workers[2]).await.why_not(), "not now");
    world.complete(&first).await;
    assert_eq!(try_suspect(world, &workers[2]).await.why_not(), "not now", "it goes on");
    claim_plain(world, &workers[0]).await;
    try_suspect(world, &workers[2]).await.got();
    assert_eq!(try_suspect(world, &workers[0]).await.why_not(), "not now");
}

pub(super) async fn trials_of_one_service_do_not_keep_others_from_theirs(world: &World) {
    // R14
    suspects(world, 2).await;
    let (slow, other) = (world.define("x @ slow").await, world.define("y").await);
    let only_slow = world.hire_for("only-slow", &["slow"], &[&slow]).await;
    let only_other = world.hire_for("only-other", &["default"], &[&other]).await;
    try_suspect(world, &worker(WORKER)).await.got();
    for asks in [&only_slow, &only_other] {
        assert_eq!(try_suspect(world, asks).await.why_not(), "none waits");
    }
}

pub(super) async fn a_trial_that_is_only_asked_for_hands_out_nothing(world: &World) {
    // R14
    assert_eq!(asks(world).await, None, "nothing waits");
    suspects(world, 1).await;
    assert_eq!(asks(world).await, Some(true));
    let second = world.hire("second").await;
    assert_eq!(try_suspect(world, &second).await.why_not(), "not now");
    try_suspect(world, &worker(WORKER)).await.got();
}

/// A request for no suspect at all: whether one waits.
async fn asks(world: &World) -> Option<bool> {
    world.define("z").await;
    let mut request = world.claim_request(&worker(WORKER), 0);
    request.take = Take::Suspect;
    match world.store().claim(request).await.expect("ask for a trial") {
        ClaimAnswer::Claimed { tasks, suspect_waits, .. } => {
            assert!(tasks.is_empty());
            suspect_waits.then_some(true)
        }
        other => panic!("{other:?}"),
    }
}

pub(super) async fn a_suspect_that_came_further_goes_on_beside_others(world: &World) {
    // R14
    let runs = suspects(world, 1).await;
    let plain = world.define("b").await;
    let suspect = try_suspect(world, &worker(WORKER)).await.got();
    world.start(&plain).await;
    world.remember(&suspect, "charge@1=42").await;
    assert_eq!(world.task(&runs[0], "a").await.losses, 0);
    assert_eq!(claim_plain(world, &worker(WORKER)).await.0.steps(), "b");
}

pub(super) async fn a_suspect_whose_deadline_has_passed_is_not_told_of(world: &World) {
    // R14
    let flow = world.define("a").await;
    world.start_within(&flow, 10 * LEASE).await;
    for round in 1..CRASH_LIMIT {
        let unlucky = world.hire(&format!("unlucky-{round}")).await;
        assert_eq!(world.claim(&unlucky, 1).await.len(), 1);
        world.lose(&unlucky).await;
    }
    assert!(claim_plain(world, &worker(WORKER)).await.1);
    world.pass(10 * LEASE);
    assert!(!claim_plain(world, &worker(WORKER)).await.1);
    assert_eq!(try_suspect(world, &worker(WORKER)).await.why_not(), "none waits");
}

pub(super) async fn a_suspect_lost_in_company_is_charged_alone(world: &World) {
    // R14, FA10
    let runs = suspects(world, 1).await;
    let plain = world.define("b").await;
    let bystander = world.start(&plain).await;
    let second = world.hire("second").await;
    // It goes by another crash limit than the leader, so it gets both.
    assert_eq!(world.claim_trusting(&second, 10).await.len(), 2);
    world.lose(&second).await;
    assert_eq!(world.states(&runs[0]).await, "a FAILED");
    assert_eq!(world.states(&bystander).await, "b QUEUED");
    assert_eq!(world.task(&bystander, "b").await.losses, 0);
}

pub(super) async fn a_suspect_that_completes_is_cleared(world: &World) {
    let runs = suspects(world, 3).await;
    for _ in &runs {
        world.step().await;
    }
    for run in &runs {
        assert_eq!(world.status(run).await, RunStatus::Completed);
    }
}

pub(super) async fn a_poison_task_fails_and_those_beside_it_complete(world: &World) {
    // R14, FA10
    let flow = world.define("a; poison; b; c").await;
    let run = world.start(&flow).await;
    let mut n_deaths = 0;
    for n in 0..20 {
        let next = world.hire(&format!("worker-{n}")).await;
        let batch = world.claim(&next, 10).await;
        if batch.iter().any(|task| step_of(task) == "poison") {
            n_deaths += 1;
            world.lose(&next).await;
        } else {
            world.complete_together(&batch).await;
            world.dismiss(&next).await;
        }
    }
    let expected = "a COMPLETED, poison FAILED, b COMPLETED, c COMPLETED";
    assert_eq!(world.states(&run).await, expected);
    assert_eq!(n_deaths, CRASH_LIMIT);
}
