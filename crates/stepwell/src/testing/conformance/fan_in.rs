//! Fan-out and fan-in: a child becomes ready exactly once, when its last parent is resolved.

use std::fmt::Write;

use futures_util::future::join_all;
use stepwell_core::run::RunStatus;

use super::world::{Batch, Run, TENANT, World, completed, failed};
use crate::ports::{ClaimedTask, CommitItem};

/// A join of two roots that are both claimed.
async fn join_of_two(world: &World) -> (Run, Batch) {
    let flow = world.define("a; b; c < a, b").await;
    let run = world.start(&flow).await;
    (run, world.claim_all().await)
}

/// The join is ready, once.
async fn expect_one_join(world: &World, run: &Run) {
    assert_eq!(world.states(run).await, "a COMPLETED, b COMPLETED, c QUEUED");
    assert_eq!(world.claim_all().await.steps(), "c");
}

pub(super) async fn a_join_is_ready_when_its_second_parent_completes(world: &World) {
    // R15, FB2
    let (run, roots) = join_of_two(world).await;
    world.complete(roots.of("a")).await;
    assert_eq!(world.states(&run).await, "a COMPLETED, b RUNNING, c PENDING");
    assert!(world.claim_all().await.is_empty());
    world.complete(roots.of("b")).await;
    expect_one_join(world, &run).await;
}

pub(super) async fn a_join_is_ready_when_its_first_parent_completes_last(world: &World) {
    // R15, FB2
    let (run, roots) = join_of_two(world).await;
    world.complete(roots.of("b")).await;
    assert_eq!(world.states(&run).await, "a RUNNING, b COMPLETED, c PENDING");
    world.complete(roots.of("a")).await;
    expect_one_join(world, &run).await;
}

pub(super) async fn a_join_is_ready_once_when_its_parents_complete_in_one_batch(world: &World) {
    // R15, FB2
    let (run, roots) = join_of_two(world).await;
    world.complete_together(&roots).await;
    expect_one_join(world, &run).await;
}

pub(super) async fn a_join_is_ready_once_when_its_parents_complete_at_the_same_moment(
    world: &World,
) {
    // R15, FB2, S4
    let flow = world.define("a; b; c < a, b").await;
    let runs = world.start_many_for(TENANT, &flow, 10).await;
    let roots = world.claim_all().await;
    let item = |task: &ClaimedTask| CommitItem { claim: task.claim, outcome: completed() };
    let commits = roots.iter().map(|task| world.store().commit(vec![item(task)]));
    for answers in join_all(commits).await {
        answers.expect("commit");
    }
    world.check().await;
    for run in &runs {
        assert_eq!(world.states(run).await, "a COMPLETED, b COMPLETED, c QUEUED");
    }
    assert_eq!(world.claim_all().await.len(), runs.len());
}

pub(super) async fn batches_that_share_runs_commit_at_the_same_moment(world: &World) {
    // FB3: in opposite orders, which would lock rows crosswise.
    let flow = world.define("a; b; c < a, b").await;
    let runs = world.start_many_for(TENANT, &flow, 10).await;
    let roots = world.claim_all().await;
    let is_of = |task: &&ClaimedTask, step: &str| task.claim.node == flow.node(step);
    let item = |task: &ClaimedTask| CommitItem { claim: task.claim, outcome: completed() };
    let forwards = roots.iter().filter(|task| is_of(task, "a")).map(item).collect();
    let backwards = roots.iter().rev().filter(|task| is_of(task, "b")).map(item).collect();
    let store = world.store();
    for answers in join_all([store.commit(forwards), store.commit(backwards)]).await {
        assert_eq!(answers.expect("commit").len(), 10);
    }
    world.check().await;
    assert_eq!(world.claim_all().await.len(), runs.len());
}

pub(super) async fn steps_that_share_a_parent_are_ready_together(world: &World) {
    // R24
    let flow = world.define("a; b < a; c < a; d < a; e < b, c, d").await;
    world.start(&flow).await;
    assert_eq!(world.step().await, "a");
    let middle = world.claim_all().await;
    assert_eq!(middle.steps(), "b c d");
    world.complete_together(&middle).await;
    assert_eq!(world.step().await, "e");
}

/// A root, `n` steps after it, and a join of them all.
fn wide(n: usize) -> String {
    let (mut text, mut parents) = ("root".to_owned(), Vec::new());
    for ix in 0..n {
        write!(text, "; m{ix} < root").expect("a string takes all");
        parents.push(format!("m{ix}"));
    }
    write!(text, "; join < {}", parents.join(", ")).expect("a string takes all");
    text
}

pub(super) async fn a_wide_join_is_ready_after_its_last_parent(world: &World) {
    // R15, FE2
    let flow = world.define(wide(200)).await;
    let run = world.start(&flow).await;
    world.step().await;
    let middle = world.claim_all().await;
    assert_eq!(middle.len(), 200);
    for (n_done, chunk) in middle.chunks(30).enumerate() {
        assert_eq!(world.task(&run, "join").await.n_unmet as usize, 200 - n_done * 30);
        world.complete_together(chunk).await;
    }
    assert_eq!(world.step().await, "join");
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

pub(super) async fn a_wide_join_is_ready_after_one_batch_of_all_its_parents(world: &World) {
    // R15, FE2
    let flow = world.define(wide(200)).await;
    let run = world.start(&flow).await;
    world.step().await;
    world.complete_together(&world.claim_all().await).await;
    assert_eq!(world.claim_all().await.steps(), "join");
    assert_eq!(world.task(&run, "join").await.n_unmet, 0);
}

pub(super) async fn a_long_chain_runs_link_by_link(world: &World) {
    let mut text = "s0".to_owned();
    for ix in 1..60 {
        write!(text, "; s{ix} < s{}", ix - 1).expect("a string takes all");
    }
    let flow = world.define(text).await;
    let run = world.start(&flow).await;
    for ix in 0..60 {
        assert_eq!(world.step().await, format!("s{ix}"));
    }
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

pub(super) async fn a_join_waits_for_sleeping_parents_too(world: &World) {
    let flow = world.define("a; s ~ 1h; c < a, s").await;
    let run = world.start(&flow).await;
    world.step().await;
    assert_eq!(world.states(&run).await, "a COMPLETED, s SLEEPING, c PENDING");
    world.pass(std::time::Duration::from_hours(1));
    world.fire().await;
    assert_eq!(world.step().await, "c");
}

pub(super) async fn a_parent_that_fails_and_retries_counts_down_once(world: &World) {
    // S4, S10
    let flow = world.define("a * 3; b; c < a, b").await;
    let run = world.start(&flow).await;
    let roots = world.claim_all().await;
    world.complete(roots.of("b")).await;
    world.fail(roots.of("a")).await;
    world.fail(&world.claim_one().await).await;
    assert_eq!(world.task(&run, "c").await.n_unmet, 1);
    world.step().await;
    assert_eq!(world.step().await, "c");
}

pub(super) async fn parents_count_down_in_a_cancelled_join_as_well(world: &World) {
    // S4: the counter always equals the unresolved edges.
    let flow = world.define("a; b; c < a, b").await;
    let run = world.start(&flow).await;
    let roots = world.claim_all().await;
    world.settle(roots.of("a"), failed("boom")).await;
    assert_eq!(world.states(&run).await, "a FAILED, b RUNNING, c CANCELLED");
    assert_eq!(world.task(&run, "c").await.n_unmet, 2);
    world.complete(roots.of("b")).await;
    assert_eq!(world.task(&run, "c").await.n_unmet, 1);
    assert_eq!(world.status(&run).await, RunStatus::Failed);
}

pub(super) async fn outputs_reach_a_join_through_branches_of_different_length(world: &World) {
    let flow = world.define("a; b < a; c < b; d < a, c").await;
    let run = world.start(&flow).await;
    assert_eq!(world.drain().await, "a b c d");
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}
