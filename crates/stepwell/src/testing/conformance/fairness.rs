//! Fairness: tenants are served in turn, by weight, however long their lines are.
//!
//! Time moves a little before every claim: a store need not write its frontier down more often
//! than every ten milliseconds.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use stepwell_core::id::WorkerId;
use stepwell_core::queue::{BLOCK_LENGTH, OrderKey, stride};

use super::world::{Flow, World, worker};
use crate::ports::TaskPlace;

const MOMENT: Duration = Duration::from_millis(20);

/// How often each tenant came among so many claims of one task each.
async fn shares(world: &World, n_claims: usize) -> BTreeMap<String, usize> {
    let worker = worker(super::world::WORKER);
    let mut shares = BTreeMap::new();
    for tenant in served(world, &worker, n_claims).await {
        *shares.entry(tenant).or_default() += 1;
    }
    shares
}

/// The tenants of so many claims of one task each.
async fn served(world: &World, worker: &WorkerId, n_claims: usize) -> Vec<String> {
    let mut tenants = Vec::new();
    for _ in 0..n_claims {
        world.pass(MOMENT);
        let batch = world.claim(worker, 1).await;
        tenants.extend(batch.iter().map(|task| task.tenant.to_string()));
    }
    tenants
}

/// T3: within a tenth of what is fair.
fn expect_share(shares: &BTreeMap<String, usize>, tenant: &str, fair: usize) {
    let share = shares.get(tenant).copied().unwrap_or_default();
    let slack = fair.div_ceil(10);
    assert!(share.abs_diff(fair) <= slack, "{tenant} should get {fair}, but {shares:?}");
}

/// The order keys of a tenant's ready tasks.
async fn order_keys(world: &World, tenant: &str) -> Vec<u64> {
    let dump = world.dump().await;
    let is_its = |run| dump.runs.get(run).is_some_and(|log| log.run.tenant.as_str() == tenant);
    let mut keys = Vec::new();
    for ((run, _), place) in &dump.places {
        if let TaskPlace::Ready(_, OrderKey(key)) = place
            && is_its(run)
        {
            keys.push(*key);
        }
    }
    keys.sort_unstable();
    keys
}

pub(super) async fn a_tenant_with_five_times_the_work_gets_the_same_share(world: &World) {
    // R2, FE5, T3
    let flow = world.define("a").await;
    world.start_many_for("big", &flow, 500).await;
    world.start_many_for("small", &flow, 100).await;
    let shares = shares(world, 200).await;
    expect_share(&shares, "big", 100);
    expect_share(&shares, "small", 100);
}

pub(super) async fn ten_tenants_are_served_in_turn(world: &World) {
    // R2, T3
    let flow = world.define("a").await;
    let names: Vec<String> = (0..10).map(|n| format!("tenant-{n}")).collect();
    for name in &names {
        world.start_many_for(name, &flow, 10).await;
    }
    let tenants = served(world, &worker(super::world::WORKER), 100).await;
    for turn in tenants.chunks(10) {
        let mut turn = turn.to_vec();
        turn.sort_unstable();
        assert_eq!(turn, names);
    }
}

pub(super) async fn one_batch_is_as_fair_as_single_claims(world: &World) {
    // R2
    let flow = world.define("a").await;
    for name in ["one", "two", "three"] {
        world.start_many_for(name, &flow, 40).await;
    }
    let tenants = world.claim(&worker(super::world::WORKER), 30).await.tenants();
    for name in ["one", "two", "three"] {
        assert_eq!(tenants.split(' ').filter(|tenant| *tenant == name).count(), 10, "{tenants}");
    }
}

pub(super) async fn shares_follow_weights(world: &World) {
    // R2, T3
    let flow = world.define("a").await;
    world.weigh("heavy", 3).await;
    world.start_many_for("heavy", &flow, 300).await;
    world.start_many_for("light", &flow, 300).await;
    let shares = shares(world, 200).await;
    expect_share(&shares, "heavy", 150);
    expect_share(&shares, "light", 50);
}

pub(super) async fn a_newcomer_is_served_at_once_behind_a_long_line(world: &World) {
    // R2, T3
    let flow = world.define("a").await;
    world.start_many_for("big", &flow, 1_000).await;
    let worker = worker(super::world::WORKER);
    world.claim(&worker, 100).await;
    served(world, &worker, 3).await;
    world.start_for("newcomer", &flow).await;
    let next = served(world, &worker, 2).await;
    assert!(next.contains(&"newcomer".to_owned()), "{next:?}");
}

pub(super) async fn a_newcomer_gets_its_share_and_no_more(world: &World) {
    // T3: a frontier that stands still would let it take all.
    let flow = world.define("a").await;
    world.start_many_for("old", &flow, 200).await;
    shares(world, 100).await;
    world.start_many_for("newcomer", &flow, 100).await;
    let shares = shares(world, 100).await;
    expect_share(&shares, "old", 50);
    expect_share(&shares, "newcomer", 50);
}

pub(super) async fn an_idle_tenant_saves_up_nothing(world: &World) {
    let flow = world.define("a").await;
    world.start_for("idle", &flow).await;
    world.start_many_for("busy", &flow, 200).await;
    shares(world, 101).await;
    world.start_many_for("idle", &flow, 100).await;
    expect_share(&shares(world, 60).await, "busy", 30);
}

pub(super) async fn a_row_that_nobody_takes_does_not_hold_the_frontier(world: &World) {
    // R2: the frontier is what was dequeued, not the smallest row that is left.
    let flow = world.define("a").await;
    let other = world.define_unserved("b").await;
    world.hire_for("absent", &["default"], &[&other]).await;
    world.start_for("stuck", &other).await;
    world.start_many_for("old", &flow, 200).await;
    shares(world, 100).await;
    world.start_many_for("newcomer", &flow, 100).await;
    expect_share(&shares(world, 100).await, "newcomer", 50);
}

pub(super) async fn order_keys_follow_the_block_formula(world: &World) {
    // R2
    let flow = world.define("a").await;
    for name in ["one", "two", "three"] {
        world.start_many_for(name, &flow, 5).await;
    }
    for name in ["one", "two", "three"] {
        let group = u64::from(world.tenant_view(name).await.tenant_no.0);
        let expected: Vec<u64> = (0..5).map(|block| group + BLOCK_LENGTH * block).collect();
        assert_eq!(order_keys(world, name).await, expected);
    }
}

pub(super) async fn a_weight_puts_several_places_into_one_block(world: &World) {
    // R2
    let flow = world.define("a").await;
    world.weigh("heavy", 4).await;
    world.start_many_for("heavy", &flow, 8).await;
    let group = u64::from(world.tenant_view("heavy").await.tenant_no.0);
    let block = |place: u64| place * stride(4) / BLOCK_LENGTH;
    let expected: Vec<u64> = (0..8).map(|place| group + BLOCK_LENGTH * block(place)).collect();
    assert_eq!(order_keys(world, "heavy").await, expected);
}

pub(super) async fn tenants_are_numbered_in_order_of_appearance(world: &World) {
    let flow = world.define("a").await;
    let mut groups = Vec::new();
    for name in ["zeta", "acme", "mike"] {
        world.start_for(name, &flow).await;
        groups.push(world.tenant_view(name).await.tenant_no);
    }
    assert!(groups.is_sorted() && groups[0] < groups[1] && groups[1] < groups[2], "{groups:?}");
}

/// A workflow of so many roots.
fn roots(n: usize) -> String {
    let mut text = "s0".to_owned();
    for ix in 1..n {
        write!(text, "; s{ix}").expect("a string takes all");
    }
    text
}

pub(super) async fn twenty_thousand_parked_tasks_do_not_matter(world: &World) {
    // R2
    let unserved: Flow = world.define_unserved(roots(20_000)).await;
    let flow = world.define("a").await;
    world.start_for("big", &unserved).await;
    assert_eq!(world.tenant_view("big").await.n_parked, 20_000);
    world.start_many_for("big", &flow, 50).await;
    world.start_many_for("small", &flow, 50).await;
    let shares = shares(world, 40).await;
    expect_share(&shares, "big", 20);
    expect_share(&shares, "small", 20);
}

pub(super) async fn held_back_tasks_take_no_places(world: &World) {
    // R2, R26
    let flow = world.define("a").await;
    world.limit("limited", 1).await;
    world.start_many_for("limited", &flow, 50).await;
    world.start_many_for("free", &flow, 20).await;
    for _ in 0..5 {
        world.pass(MOMENT);
        let batch = world.claim(&worker(super::world::WORKER), 2).await;
        assert_eq!(batch.tenants().matches("limited").count(), 1, "{}", batch.tenants());
        world.complete_together(&batch).await;
    }
}

pub(super) async fn a_cancelled_line_gives_its_places_back(world: &World) {
    let flow = world.define("a").await;
    world.start_many_for("steady", &flow, 60).await;
    let mistake = world.start_many_for("sorry", &flow, 50).await;
    for run in &mistake {
        world.cancel(run).await;
    }
    world.start_for("sorry", &flow).await;
    let tenants = served(world, &worker(super::world::WORKER), 5).await;
    assert!(tenants.contains(&"sorry".to_owned()), "{tenants:?}");
}

pub(super) async fn a_cancelled_task_that_others_passed_costs_its_tenant_no_turn(world: &World) {
    // R2, T3: the stand-in never asks for work, so the frontier passes the task it could have.
    let (flow, stray) = (world.define("a").await, world.define_unserved("b").await);
    world.hire_for("stand-in", &["default"], &[&stray]).await;
    world.start_many_for("steady", &flow, 4).await;
    let passed = world.start_for("patient", &stray).await;
    served(world, &worker(super::world::WORKER), 2).await;
    world.pass(MOMENT);
    world.cancel(&passed).await;
    world.start_for("patient", &flow).await;
    assert_eq!(served(world, &worker(super::world::WORKER), 1).await, ["patient"]);
}

pub(super) async fn a_retry_goes_to_the_end_of_its_tenants_line(world: &World) {
    let flow = world.define("a * 1").await;
    let runs = world.start_many_for("acme", &flow, 3).await;
    let first = world.claim_one().await;
    world.pass(MOMENT);
    world.fail(&first).await;
    let order: Vec<_> = world.claim_all().await.iter().map(|task| task.run_id.clone()).collect();
    assert_eq!(order, [runs[1].id.clone(), runs[2].id.clone(), runs[0].id.clone()]);
}

pub(super) async fn every_queue_has_a_line_of_its_own(world: &World) {
    let flows = (world.define("left @ left").await, world.define("right @ right").await);
    world.start_many_for("big", &flows.0, 100).await;
    world.start_many_for("big", &flows.1, 10).await;
    world.start_many_for("small", &flows.1, 10).await;
    let right = world.hire_for("right", &["right"], &[&flows.1]).await;
    let tenants = served(world, &right, 20).await;
    for turn in tenants.chunks(2) {
        assert!(turn.contains(&"big".to_owned()) && turn.contains(&"small".to_owned()), "{turn:?}");
    }
}
