//! Leases: workers live by heartbeats, and the work of the dead comes back.

use std::time::Duration;

use futures_util::future::join_all;
use stepwell_core::failure::FailureKind;
use stepwell_core::id::Queue;
use stepwell_core::run::RunStatus;

use super::world::{CRASH_LIMIT, LEASE, Sketch, TENANT, WORKER, World, completed, worker};
use crate::ports::{ClaimRef, CommitAnswer, HeartbeatAnswer};

const TICK: Duration = Duration::from_micros(1);

/// A claimed task is lost with its worker, alone, so many times.
async fn lose_alone(world: &World, times: u32) {
    for n in 0..times {
        let unlucky = world.hire(&format!("unlucky-{n}")).await;
        assert_eq!(world.claim(&unlucky, 1).await.len(), 1);
        world.lose(&unlucky).await;
    }
}

pub(super) async fn a_worker_is_reaped_only_after_a_full_lease(world: &World) {
    // L4, FA1
    let flow = world.define("a").await;
    let run = world.start(&flow).await;
    world.claim_one().await;
    world.pass(LEASE.saturating_sub(TICK));
    let reaped = world.unchanged_by(world.reap()).await;
    assert_eq!((reaped.n_workers, reaped.n_tasks), (0, 0));
    world.pass(TICK);
    let reaped = world.reap().await;
    assert_eq!((reaped.n_workers, reaped.n_tasks), (1, 1));
    assert_eq!(world.states(&run).await, "a QUEUED");
}

pub(super) async fn a_heartbeat_renews_the_lease(world: &World) {
    let flow = world.define("a").await;
    world.start(&flow).await;
    let task = world.claim_one().await;
    for _ in 0..5 {
        world.pass(LEASE.saturating_sub(TICK));
        assert_eq!(world.beat(&worker(WORKER), &[task.claim]).await, []);
        assert_eq!(world.reap().await.n_workers, 0);
    }
    world.complete(&task).await;
}

pub(super) async fn every_registration_and_every_heartbeat_is_a_beat(world: &World) {
    let flow = world.define("a").await;
    let (queues, flows) = (vec![Queue::default_queue()], vec![flow.0.marked_service()]);
    let second = world.register("second", queues, flows, LEASE * 2).await;
    let lives = async || world.store().lives().await.expect("look at workers");
    let before = lives().await;
    assert_eq!(before.iter().map(|life| life.lease).collect::<Vec<_>>(), [LEASE, LEASE * 2]);
    let names: Vec<&str> = before.iter().map(|life| life.last_beat.worker.as_str()).collect();
    assert_eq!(names, [WORKER, second.as_str()], "those who registered first come first");
    // Time stands still: only the count tells.
    world.beat(&second, &[]).await;
    let beaten = lives().await;
    assert_eq!(beaten[0], before[0]);
    assert!(beaten[1].last_beat.n_beats > before[1].last_beat.n_beats);
    world.hire(second.as_str()).await;
    assert!(lives().await[1].last_beat.n_beats > beaten[1].last_beat.n_beats);
    world.start(&flow).await;
    world.claim(&second, 1).await;
    world.dismiss(&second).await;
    let left = lives().await;
    assert_eq!(left.iter().map(|life| life.has_left).collect::<Vec<_>>(), [false, true]);
}

pub(super) async fn a_worker_that_has_beaten_since_it_was_found_dead_is_not_reaped(world: &World) {
    // FA1: the leader decides by what it read earlier.
    let flow = world.define("a").await;
    world.start(&flow).await;
    let task = world.claim_one().await;
    let epoch = world.lead().await;
    for is_heartbeat in [true, false] {
        world.pass(LEASE);
        let request = world.reap_request().await;
        assert_eq!(request.dead.len(), 1);
        if is_heartbeat {
            world.beat(&worker(WORKER), &[task.claim]).await;
        } else {
            world.hire(WORKER).await;
        }
        let reaped = world.unchanged_by(world.store().reap(epoch, request)).await;
        assert_eq!(reaped.expect("reap").n_workers, 0);
    }
    world.complete(&task).await;
}

pub(super) async fn every_worker_has_a_lease_of_its_own(world: &World) {
    let flow = world.define("a").await;
    let (queues, flows) = (vec![Queue::default_queue()], vec![flow.0.marked_service()]);
    let short = world.register("short", queues.clone(), flows.clone(), LEASE / 3).await;
    let long = world.register("long", queues, flows, LEASE * 10).await;
    world.pass(LEASE / 3 + TICK);
    assert_eq!(world.reap().await.n_workers, 1);
    assert_eq!(world.try_beat(&short, &[]).await, HeartbeatAnswer::Dead);
    world.pass(LEASE * 9);
    world.reap().await;
    assert_eq!(world.beat(&long, &[]).await, []);
}

pub(super) async fn a_heartbeat_lists_claims_of_a_cancelled_run(world: &World) {
    // L12
    let flow = world.define("a").await;
    let (gone, kept) = (world.start(&flow).await, world.start(&flow).await);
    let batch = world.claim_all().await;
    let claims: Vec<ClaimRef> = batch.iter().map(|task| task.claim).collect();
    assert_eq!(world.beat(&worker(WORKER), &claims).await, []);
    world.cancel(&gone).await;
    let lost = world.beat(&worker(WORKER), &claims).await;
    assert_eq!(lost.iter().map(|claim| claim.run).collect::<Vec<_>>(), [gone.key]);
    assert_eq!(world.status(&kept).await, RunStatus::Running);
}

pub(super) async fn a_heartbeat_lists_claims_that_moved_on(world: &World) {
    // FA2
    let flow = world.define("a * 3").await;
    world.start(&flow).await;
    let old = world.claim_one().await;
    world.fail(&old).await;
    let new = world.claim_one().await;
    let lost = world.beat(&worker(WORKER), &[old.claim, new.claim]).await;
    assert_eq!(lost, [old.claim]);
}

pub(super) async fn a_heartbeat_names_claims_that_the_worker_did_not(world: &World) {
    // FB1: the reply to the claim may have been lost.
    let flow = world.define("a; b").await;
    world.start(&flow).await;
    let batch = world.claim_all().await;
    let (known, stray) = (batch[0].claim, batch[1].claim);
    let answer = world.try_beat(&worker(WORKER), &[known]).await;
    assert_eq!(answer, HeartbeatAnswer::Alive { lost: vec![], unknown: vec![stray] });
    let answer = world.try_beat(&worker(WORKER), &[known, stray]).await;
    assert_eq!(answer, HeartbeatAnswer::Alive { lost: vec![], unknown: vec![] });
}

pub(super) async fn a_heartbeat_of_one_worker_does_not_keep_the_claims_of_another(world: &World) {
    // FA2
    let flow = world.define("a").await;
    world.start(&flow).await;
    let second = world.hire("second").await;
    let task = world.claim_one().await;
    assert_eq!(world.beat(&second, &[task.claim]).await, [task.claim]);
    world.pass(LEASE);
    world.beat(&second, &[task.claim]).await;
    world.pass(TICK);
    assert_eq!(world.reap().await.n_tasks, 1);
}

pub(super) async fn a_dead_workers_heartbeat_says_so_and_changes_nothing(world: &World) {
    let flow = world.define("a").await;
    world.start(&flow).await;
    let task = world.claim_one().await;
    assert_eq!(world.try_beat(&worker("stranger"), &[]).await, HeartbeatAnswer::Dead);
    let (dead, claims) = (worker(WORKER), [task.claim]);
    world.lose(&dead).await;
    let answer = world.unchanged_by(world.try_beat(&dead, &claims)).await;
    assert_eq!(answer, HeartbeatAnswer::Dead);
}

pub(super) async fn work_of_a_dead_worker_goes_to_another(world: &World) {
    // L4, R14: a step without retries survives.
    let flow = world.define("a; b < a").await;
    let run = world.start(&flow).await;
    let second = world.hire("second").await;
    world.claim(&second, 1).await;
    world.lose(&second).await;
    let task = world.task(&run, "a").await;
    assert_eq!((task.attempt, task.failures, task.losses), (1, 0, 1));
    assert_eq!(world.claim_one().await.attempt, 2);
}

pub(super) async fn a_worker_without_claims_is_reaped_too(world: &World) {
    world.define("a").await;
    let idle = world.hire("idle").await;
    let reaped = world.lose(&idle).await;
    assert_eq!(reaped.n_tasks, 0);
    assert_eq!(world.try_beat(&idle, &[]).await, HeartbeatAnswer::Dead);
}

pub(super) async fn workers_are_reaped_so_many_at_a_time(world: &World) {
    // FA11: those left over come in the next round.
    let flow = world.define("a").await;
    world.start_many_for(TENANT, &flow, 5).await;
    for n in 0..5 {
        let unlucky = world.hire(&format!("unlucky-{n}")).await;
        world.claim(&unlucky, 1).await;
    }
    world.pass(LEASE);
    world.beat(&worker(WORKER), &[]).await;
    world.pass(TICK);
    for expected in [2, 2, 1, 0] {
        let reaped = world.reap_up_to(2).await;
        assert_eq!((reaped.n_workers, reaped.n_tasks), (expected, expected));
    }
    assert_eq!(world.claim_all().await.len(), 5);
}

pub(super) async fn two_reapings_at_the_same_moment_charge_a_loss_once(world: &World) {
    // FA1, FA4
    let flow = world.define("a").await;
    let run = world.start(&flow).await;
    world.claim_one().await;
    world.pass(LEASE + TICK);
    let epoch = world.lead().await;
    let request = world.reap_request().await;
    let reapings = (0..4).map(|_| world.store().reap(epoch, request.clone()));
    let reaped = join_all(reapings).await.into_iter().map(|reaped| reaped.expect("reap").n_tasks);
    assert_eq!(reaped.sum::<usize>(), 1);
    world.check().await;
    assert_eq!(world.task(&run, "a").await.losses, 1);
}

pub(super) async fn claims_of_a_worker_that_left_are_reaped_at_once(world: &World) {
    let flow = world.define("a").await;
    let run = world.start(&flow).await;
    let second = world.hire("second").await;
    world.claim(&second, 1).await;
    world.dismiss(&second).await;
    assert_eq!(world.states(&run).await, "a RUNNING");
    assert_eq!(world.reap().await.n_tasks, 1);
    assert_eq!(world.states(&run).await, "a QUEUED");
}

pub(super) async fn a_worker_that_left_may_still_commit_what_it_holds(world: &World) {
    let flow = world.define("a").await;
    let run = world.start(&flow).await;
    let second = world.hire("second").await;
    let batch = world.claim(&second, 1).await;
    world.dismiss(&second).await;
    world.complete(&batch[0]).await;
    assert_eq!(world.status(&run).await, RunStatus::Completed);
    assert_eq!(world.reap().await.n_tasks, 0);
}

pub(super) async fn a_worker_that_registers_again_keeps_its_claims(world: &World) {
    let flow = world.define("a").await;
    world.start(&flow).await;
    let task = world.claim_one().await;
    world.hire(WORKER).await;
    assert_eq!(world.beat(&worker(WORKER), &[task.claim]).await, []);
    world.complete(&task).await;
}

pub(super) async fn a_released_task_is_not_charged(world: &World) {
    // R12, S9
    let flow = world.define("a").await;
    let run = world.start(&flow).await;
    for expected in 1..=5 {
        let task = world.claim_one().await;
        assert_eq!(task.attempt, expected);
        world.release(&task).await;
    }
    let task = world.task(&run, "a").await;
    assert_eq!((task.failures, task.losses), (0, 0));
    assert_eq!(world.states(&run).await, "a QUEUED");
}

pub(super) async fn a_task_that_loses_too_many_workers_fails_with_that_reason(world: &World) {
    // R14, FA10, S9
    let flow = world.define("a * 99; b < a").await;
    let run = world.start(&flow).await;
    lose_alone(world, CRASH_LIMIT).await;
    assert_eq!(world.states(&run).await, "a FAILED, b CANCELLED");
    let failure = world.row(&run).await.failure.expect("the run says why");
    assert_eq!((failure.step.as_str(), failure.attempt), ("a", CRASH_LIMIT));
    assert_eq!(failure.failure.kind, FailureKind::Crashed);
    assert_eq!(world.status(&run).await, RunStatus::Failed);
}

pub(super) async fn a_loss_that_ends_a_run_takes_what_died_beside_it_along(world: &World) {
    // Both die with one worker; the suspect's end cancels the other before its own loss counts.
    let flow = world.define(Sketch::from("a; s ~ 1h; b < s").fail_fast()).await;
    let run = world.start(&flow).await;
    lose_alone(world, CRASH_LIMIT - 1).await;
    world.pass(Duration::from_hours(1));
    world.fire().await;
    let unlucky = world.hire("unlucky").await;
    // It goes by another crash limit than the leader, so it gets both.
    assert_eq!(world.claim_trusting(&unlucky, 2).await.len(), 2);
    world.beat(&worker(WORKER), &[]).await;
    world.lose(&unlucky).await;
    assert_eq!(world.states(&run).await, "a FAILED, s COMPLETED, b CANCELLED");
    assert_eq!(world.task(&run, "b").await.losses, 0);
}

pub(super) async fn a_zombies_commit_is_refused_after_its_task_was_reaped(world: &World) {
    // FA2, S6
    let flow = world.define("a").await;
    world.start(&flow).await;
    let task = world.claim_one().await;
    world.pass(LEASE + TICK);
    // Silent for too long, but nobody has taken its work yet: it still holds the task.
    let second = world.hire("second").await;
    assert!(world.claim(&second, 1).await.is_empty());
    world.reap().await;
    let answer = world.unchanged_by(world.commit_one(&task, completed())).await;
    assert_eq!(answer, CommitAnswer::NotMine);
}
