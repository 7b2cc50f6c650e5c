//! Settings of a tenant change while its tasks are let in.

use stepwell::TenantSettings;
use stepwell::testing::conformance::world::TENANT;
use stepwell_faults::interleave::Side;

use crate::acts;
use crate::scene::{Call, Scene};
use crate::stage::Stage;

/// Sets the tenant's limit from one value to another while a call is under way.
async fn the_limit_changes(from: Option<u32>, to: Option<u32>, call: Call) {
    let stage = Stage::open().await;
    let scene = Scene::set(&stage.world, from, false).await;
    let settings = TenantSettings { weight: 2, tasks_max: to };
    let change = acts::set_tenant(TENANT, settings);
    let tried = stage.meet(&change, &scene.act(call, Side::Other)).await;
    assert!(tried.n_orders > 20, "{tried:?}");
    stage.close().await;
}

#[tokio::test]
async fn a_limit_that_is_lowered_meets_a_commit_that_lets_tasks_in() {
    // S15
    the_limit_changes(Some(8), Some(6), Call::FanIn).await;
}

#[tokio::test]
async fn a_limit_that_is_lifted_meets_a_commit_that_lets_tasks_in() {
    the_limit_changes(Some(8), None, Call::FanIn).await;
}

#[tokio::test]
async fn a_limit_that_is_new_meets_a_commit_that_lets_tasks_in() {
    the_limit_changes(None, Some(6), Call::FanIn).await;
}

#[tokio::test]
async fn a_limit_that_is_new_meets_a_commit_that_makes_nothing_ready() {
    // A slot that was counted for the claim that ends here would never come free again.
    let stage = Stage::open().await;
    let scene = Scene::set(&stage.world, None, false).await;
    let change = acts::set_tenant(TENANT, TenantSettings { weight: 1, tasks_max: Some(5) });
    stage.meet(&change, &acts::complete(scene.claims["z1"])).await;
    stage.close().await;
}

#[tokio::test]
async fn a_limit_that_is_lowered_meets_a_claim() {
    the_limit_changes(Some(8), Some(6), Call::Claim).await;
}

#[tokio::test]
async fn a_limit_that_is_lowered_meets_a_cancellation() {
    the_limit_changes(Some(8), Some(6), Call::Cancel).await;
}

#[tokio::test]
async fn a_limit_that_is_raised_meets_timers_that_fire() {
    the_limit_changes(Some(6), Some(9), Call::Fire).await;
}

#[tokio::test]
async fn starts_of_a_tenant_behind_its_limit_meet_each_other() {
    let stage = Stage::open().await;
    let world = &stage.world;
    let flow = world.define("a; b").await;
    world.limit(TENANT, 3).await;
    let request = || world.request(TENANT, "", &flow, b"input");
    let (one, other) = (acts::start(request()), acts::start(request()));
    stage.meet(&one, &other).await;
    stage.close().await;
}
