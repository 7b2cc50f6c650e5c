//! Skips: a step whose condition says no is skipped, and with it what cannot do without it.

use stepwell_core::failure::FailureKind;
use stepwell_core::run::RunStatus;

use super::world::{Run, Sketch, World};
use crate::ports::{CommitItem, Outcome};

/// Starts a run, skips the roots named `x`, `y`, `z` and completes the other ones.
async fn skip_xyz(world: &World, sketch: impl Into<Sketch>) -> Run {
    let flow = world.define(sketch).await;
    let run = world.start(&flow).await;
    for task in world.claim_all().await.iter() {
        match super::world::step_of(task) {
            "x" | "y" | "z" => world.skip(task).await,
            _ => world.complete(task).await,
        }
    }
    run
}

pub(super) async fn a_skipped_task_leaves_no_attempt_and_no_charge(world: &World) {
    // R21
    let run = skip_xyz(world, "x * 3; a").await;
    let task = world.task(&run, "x").await;
    assert_eq!((task.attempt, task.failures, task.losses), (0, 0, 0));
    let log = world.store().log(run.key).await.expect("read a log").expect("the run exists");
    assert!(log.attempts.iter().all(|attempt| attempt.node != run.node("x")));
    assert_eq!(world.output(&run, "x").await, None);
}

pub(super) async fn an_only_child_is_skipped_with_its_parent(world: &World) {
    // R21, S16
    let run = skip_xyz(world, "x; b < x; c < b").await;
    assert_eq!(world.states(&run).await, "x SKIPPED, b SKIPPED, c SKIPPED");
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

pub(super) async fn a_join_runs_if_one_of_its_parents_did(world: &World) {
    // R23, S16
    let run = skip_xyz(world, "a; x; j < a, x").await;
    assert_eq!(world.states(&run).await, "a COMPLETED, x SKIPPED, j QUEUED");
    assert_eq!(world.drain().await, "j");
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

pub(super) async fn a_join_runs_if_its_skipped_parent_comes_first(world: &World) {
    // R23, S16
    let run = skip_xyz(world, "x; a; j < a, x").await;
    assert_eq!(world.states(&run).await, "x SKIPPED, a COMPLETED, j QUEUED");
}

pub(super) async fn a_join_is_skipped_if_all_its_parents_were(world: &World) {
    // S16
    let run = skip_xyz(world, "x; y; z; j < x, y, z; k < j").await;
    let expected = "x SKIPPED, y SKIPPED, z SKIPPED, j SKIPPED, k SKIPPED";
    assert_eq!(world.states(&run).await, expected);
}

pub(super) async fn a_join_without_a_parent_it_needs_is_skipped_at_once(world: &World) {
    // S16
    let flow = world.define("x; a; j < x!, a; k < j").await;
    let run = world.start(&flow).await;
    let roots = world.claim_all().await;
    world.skip(roots.of("x")).await;
    assert_eq!(world.states(&run).await, "x SKIPPED, a RUNNING, j SKIPPED, k SKIPPED");
    world.complete(roots.of("a")).await;
    assert_eq!(world.states(&run).await, "x SKIPPED, a COMPLETED, j SKIPPED, k SKIPPED");
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

pub(super) async fn a_join_without_a_parent_it_needs_is_skipped_at_the_end_too(world: &World) {
    // S16
    let run = skip_xyz(world, "a; x; j < x!, a").await;
    assert_eq!(world.states(&run).await, "a COMPLETED, x SKIPPED, j SKIPPED");
}

pub(super) async fn only_the_matching_branch_runs_down_to_the_join(world: &World) {
    // R23
    let flow = world.define("a; x < a; x1 < x; x2 < x1; b < a; b1 < b; j < x2, b1").await;
    let run = world.start(&flow).await;
    world.step().await;
    let branches = world.claim_all().await;
    world.skip(branches.of("x")).await;
    let expected = "a COMPLETED, x SKIPPED, x1 SKIPPED, x2 SKIPPED, b RUNNING, b1 PENDING, \
                    j PENDING";
    assert_eq!(world.states(&run).await, expected);
    world.complete(branches.of("b")).await;
    assert_eq!(world.drain().await, "b1 j");
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

pub(super) async fn skips_of_one_batch_reach_their_join_once(world: &World) {
    // FB2, S4
    let flow = world.define("x; y; j < x, y; a; k < j, a").await;
    let run = world.start(&flow).await;
    let roots = world.claim_all().await;
    let skip = |step| CommitItem { claim: roots.of(step).claim, outcome: Outcome::Skipped };
    world.commit(vec![skip("x"), skip("y")]).await;
    let expected = "x SKIPPED, y SKIPPED, j SKIPPED, a RUNNING, k PENDING";
    assert_eq!(world.states(&run).await, expected);
    world.complete(roots.of("a")).await;
    assert_eq!(world.drain().await, "k");
}

pub(super) async fn a_diamond_below_a_skipped_step_is_skipped_once(world: &World) {
    // S4
    let run = skip_xyz(world, "x; b < x; c < x; d < b, c; e < d, x").await;
    let expected = "x SKIPPED, b SKIPPED, c SKIPPED, d SKIPPED, e SKIPPED";
    assert_eq!(world.states(&run).await, expected);
}

pub(super) async fn a_skip_makes_a_sleeping_join_fall_asleep(world: &World) {
    let run = skip_xyz(world, "a; x; s ~ 1h < a, x").await;
    assert_eq!(world.states(&run).await, "a COMPLETED, x SKIPPED, s SLEEPING");
}

pub(super) async fn a_conditional_sleep_can_be_skipped(world: &World) {
    let run = skip_xyz(world, "x ~? 24h; b < x").await;
    assert_eq!(world.states(&run).await, "x SKIPPED, b SKIPPED");
    assert_eq!(world.fire().await.next_due, None);
}

pub(super) async fn a_skipped_task_gives_its_slot_back(world: &World) {
    let flow = world.define("x; b").await;
    world.limit(super::world::TENANT, 1).await;
    world.start(&flow).await;
    world.skip(&world.claim_one().await).await;
    assert_eq!(world.claim_all().await.len(), 1);
}

pub(super) async fn a_run_fails_if_the_step_that_must_give_its_output_is_skipped(world: &World) {
    let run = skip_xyz(world, Sketch::from("a; x; b < x").must_give("b")).await;
    assert_eq!(world.states(&run).await, "a COMPLETED, x SKIPPED, b SKIPPED");
    let row = world.row(&run).await;
    assert_eq!(row.status, RunStatus::Failed);
    let failure = row.failure.expect("the run says why");
    assert_eq!(failure.step, "b");
    assert_eq!(failure.failure.kind, FailureKind::OutputSkipped);
}

pub(super) async fn a_run_completes_if_the_step_that_may_give_its_output_is_skipped(world: &World) {
    let run = skip_xyz(world, Sketch::from("a; x; b < x").gives("b")).await;
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

pub(super) async fn a_task_can_be_skipped_after_a_lost_attempt(world: &World) {
    // G10: the lost attempt stays in the history.
    let flow = world.define("x; b < x").await;
    let run = world.start(&flow).await;
    let second = world.hire("second").await;
    world.claim(&second, 1).await;
    world.lose(&second).await;
    world.skip(&world.claim_one().await).await;
    assert_eq!(world.states(&run).await, "x SKIPPED, b SKIPPED");
    assert_eq!(world.task(&run, "x").await.attempt, 1);
    let expected = "RUN_STARTED, x QUEUED, x STARTED, x LEASE_LOST, x SKIPPED, b SKIPPED, \
                    RUN_ENDED COMPLETED";
    assert_eq!(world.trail(&run).await, expected);
}
