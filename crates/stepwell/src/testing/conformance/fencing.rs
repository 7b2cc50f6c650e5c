//! Fencing: a write with a token that no longer holds the task changes nothing.

use stepwell_core::id::{Node, RunKey, Token};

use super::world::{World, completed, completed_with, failed, step_of};
use crate::ports::{ClaimRef, ClaimedTask, CommitAnswer, CommitItem, Outcome};

/// Two workers, and a task that the first lost to the second while it was executing.
async fn lost_and_reclaimed(world: &World, text: &str) -> (ClaimedTask, ClaimedTask) {
    let flow = world.define(text).await;
    world.start(&flow).await;
    let zombie = world.hire("zombie").await;
    let stale = world.claim(&zombie, 1).await.0.remove(0);
    world.lose(&zombie).await;
    let fresh = world.claim_one().await;
    assert_eq!((fresh.claim.run, fresh.claim.node), (stale.claim.run, stale.claim.node));
    (stale, fresh)
}

/// A late outcome is refused, changes nothing, and does not disturb the new claim.
async fn check_stale(world: &World, text: &str, outcome: Outcome) {
    let (stale, fresh) = lost_and_reclaimed(world, text).await;
    let answer = world.unchanged_by(world.commit_one(&stale, outcome)).await;
    assert_eq!(answer, CommitAnswer::NotMine);
    world.complete(&fresh).await;
}

pub(super) async fn a_late_worker_cannot_complete_a_reclaimed_task(world: &World) {
    // S6, FA2, L3
    check_stale(world, "a; b < a", completed_with(b"of a zombie")).await;
}

pub(super) async fn a_late_worker_cannot_fail_a_reclaimed_task(world: &World) {
    // S6, FA2, L3
    check_stale(world, "a; b < a", failed("of a zombie")).await;
}

pub(super) async fn a_late_worker_cannot_retry_a_reclaimed_task(world: &World) {
    // S6, FA2, L3
    check_stale(world, "a * 3; b < a", failed("of a zombie")).await;
}

pub(super) async fn a_late_worker_cannot_skip_a_reclaimed_task(world: &World) {
    // S6, FA2, L3
    check_stale(world, "a; b < a", Outcome::Skipped).await;
}

pub(super) async fn a_late_worker_cannot_release_a_reclaimed_task(world: &World) {
    // S6, FA2, L3
    check_stale(world, "a; b < a", Outcome::Released).await;
}

pub(super) async fn a_late_worker_cannot_put_a_reclaimed_task_to_sleep(world: &World) {
    // S6, FA2, L3
    let (stale, fresh) = lost_and_reclaimed(world, "a ~? 24h; b < a").await;
    let answer = world.unchanged_by(world.commit_one(&stale, Outcome::Slept)).await;
    assert_eq!(answer, CommitAnswer::NotMine);
    world.settle(&fresh, Outcome::Slept).await;
}

pub(super) async fn a_late_worker_cannot_complete_a_task_that_waits_again(world: &World) {
    // S6, FA1
    let flow = world.define("a").await;
    world.start(&flow).await;
    let zombie = world.hire("zombie").await;
    let stale = world.claim(&zombie, 1).await;
    world.lose(&zombie).await;
    for outcome in [completed(), failed("late"), Outcome::Skipped, Outcome::Released] {
        let answer = world.unchanged_by(world.commit_one(&stale[0], outcome)).await;
        assert_eq!(answer, CommitAnswer::NotMine);
    }
    assert_eq!(world.drain().await, "a");
}

pub(super) async fn a_late_worker_cannot_change_a_task_that_is_done(world: &World) {
    // S6, S7, S8
    let (stale, fresh) = lost_and_reclaimed(world, "a; b < a").await;
    world.settle(&fresh, completed_with(b"accepted")).await;
    for outcome in [completed_with(b"late"), failed("late"), Outcome::Skipped, Outcome::Released] {
        let answer = world.unchanged_by(world.commit_one(&stale, outcome)).await;
        assert_eq!(answer, CommitAnswer::NotMine);
    }
}

pub(super) async fn an_old_claim_of_the_same_worker_is_stale_too(world: &World) {
    // FA2: the worker's name is no fence.
    let flow = world.define("a * 9; b < a").await;
    world.start(&flow).await;
    let old = world.claim_one().await;
    world.fail(&old).await;
    let new = world.claim_one().await;
    world.unchanged_by(world.commit_one(&old, completed())).await;
    world.unchanged_by(world.commit_one(&old, failed("again"))).await;
    world.complete(&new).await;
}

pub(super) async fn a_released_task_is_no_longer_its_workers(world: &World) {
    let flow = world.define("a; b < a").await;
    world.start(&flow).await;
    let task = world.claim_one().await;
    world.release(&task).await;
    world.unchanged_by(world.commit_one(&task, completed())).await;
    world.unchanged_by(world.commit_one(&task, Outcome::Skipped)).await;
    assert_eq!(world.drain().await, "a b");
}

pub(super) async fn a_made_up_token_changes_nothing(world: &World) {
    let flow = world.define("a; b").await;
    let run = world.start(&flow).await;
    let task = world.claim_one().await;
    let held = task.claim.token;
    for token in [Token(0), Token(held.0 + 1), Token(held.0 - 1), Token(held.0 ^ (1 << 64))] {
        let claim = ClaimRef { token, ..task.claim };
        let items = vec![CommitItem { claim, outcome: completed() }];
        assert_eq!(world.unchanged_by(world.commit(items)).await, [CommitAnswer::NotMine]);
    }
    // The token of one task is none of another one that waits.
    let other = if step_of(&task) == "a" { "b" } else { "a" };
    let claim = ClaimRef { node: run.node(other), ..task.claim };
    let items = vec![CommitItem { claim, outcome: completed() }];
    assert_eq!(world.unchanged_by(world.commit(items)).await, [CommitAnswer::NotMine]);
}

pub(super) async fn a_commit_to_nothing_changes_nothing(world: &World) {
    let flow = world.define("a").await;
    world.start(&flow).await;
    let task = world.claim_one().await;
    let unknown =
        [ClaimRef { run: RunKey(7), ..task.claim }, ClaimRef { node: Node(77), ..task.claim }];
    for claim in unknown {
        let items = vec![CommitItem { claim, outcome: completed() }];
        assert_eq!(world.unchanged_by(world.commit(items)).await, [CommitAnswer::NotMine]);
    }
}
