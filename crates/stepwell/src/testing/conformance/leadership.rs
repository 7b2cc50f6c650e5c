//! Leadership: one candidate leads, epochs only grow, and an old epoch's writes are refused.

use std::time::Duration;

use futures_util::future::join_all;
use stepwell_core::id::Epoch;

use super::world::{LEASE, World, worker};
use crate::ports::{Lead, StoreError};

const TTL: Duration = Duration::from_secs(15);
const TICK: Duration = Duration::from_millis(1);

async fn lead(world: &World, candidate: &str) -> Lead {
    world.store().lead(&worker(candidate), TTL).await.expect("lead")
}

/// Leads, or says why not.
async fn epoch(world: &World, candidate: &str) -> Epoch {
    match lead(world, candidate).await {
        Lead::Leading(epoch) => epoch,
        Lead::Following => panic!("{candidate} follows"),
    }
}

/// An epoch that was taken over by another leader.
async fn stale_epoch(world: &World) -> Epoch {
    let stale = epoch(world, "one").await;
    world.pass(TTL + TICK);
    assert!(epoch(world, "two").await > stale);
    stale
}

pub(super) async fn the_first_candidate_leads_and_the_second_follows(world: &World) {
    // R13
    assert!(matches!(lead(world, "one").await, Lead::Leading(_)));
    assert_eq!(lead(world, "two").await, Lead::Following);
}

pub(super) async fn a_leader_that_keeps_leading_keeps_its_epoch(world: &World) {
    let first = epoch(world, "one").await;
    for _ in 0..5 {
        world.pass(TTL.saturating_sub(TICK));
        assert_eq!(epoch(world, "one").await, first);
        assert_eq!(lead(world, "two").await, Lead::Following);
    }
}

pub(super) async fn another_takes_over_when_the_leader_is_silent(world: &World) {
    // T5, S17
    let first = epoch(world, "one").await;
    world.pass(TTL.saturating_sub(TICK));
    assert_eq!(lead(world, "two").await, Lead::Following);
    world.pass(TICK * 2);
    let second = epoch(world, "two").await;
    assert!(second > first, "{second:?} after {first:?}");
    assert_eq!(lead(world, "one").await, Lead::Following);
}

pub(super) async fn a_time_of_day_that_jumps_back_does_not_prolong_a_term(world: &World) {
    // T5: of those who take the time from a clock that can be set back
    let first = epoch(world, "one").await;
    world.clock().jump_back(Duration::from_hours(1));
    world.pass(TTL + TICK);
    let second = epoch(world, "two").await;
    assert!(second > first, "{second:?} after {first:?}");
    assert_eq!(lead(world, "one").await, Lead::Following);
}

pub(super) async fn epochs_only_grow(world: &World) {
    // S17
    let mut last = Epoch(0);
    for candidate in ["one", "two", "one", "three", "one"] {
        let next = epoch(world, candidate).await;
        assert!(next > last, "{next:?} after {last:?}");
        last = next;
        world.pass(TTL + TICK);
    }
}

pub(super) async fn one_of_many_candidates_of_one_moment_leads(world: &World) {
    // FA4
    let candidates: Vec<_> = (0..6).map(|n| worker(&format!("candidate-{n}"))).collect();
    let answers = join_all(candidates.iter().map(|id| world.store().lead(id, TTL))).await;
    let leads = answers.into_iter().filter(|lead| matches!(lead, Ok(Lead::Leading(_))));
    assert_eq!(leads.count(), 1);
}

pub(super) async fn timers_are_not_fired_by_an_old_leader(world: &World) {
    // FA4
    let flow = world.define("s ~ 1s").await;
    world.start(&flow).await;
    let stale = stale_epoch(world).await;
    let fired = world.unchanged_by(world.store().fire_timers(stale, 10)).await;
    assert!(matches!(fired, Err(StoreError::NotLeader)), "{fired:?}");
}

pub(super) async fn workers_are_not_reaped_by_an_old_leader(world: &World) {
    // FA4
    let flow = world.define("a").await;
    world.start(&flow).await;
    world.claim_one().await;
    let stale = stale_epoch(world).await;
    world.pass(LEASE * 2);
    let request = world.reap_request().await;
    assert_eq!(request.dead.len(), 1);
    let reaped = world.unchanged_by(world.store().reap(stale, request)).await;
    assert!(matches!(reaped, Err(StoreError::NotLeader)), "{reaped:?}");
}

pub(super) async fn an_epoch_that_never_was_is_refused(world: &World) {
    let current = epoch(world, "one").await;
    for made_up in [Epoch(current.0 + 1), Epoch(current.0.wrapping_sub(1))] {
        let fired = world.store().fire_timers(made_up, 10).await;
        assert!(matches!(fired, Err(StoreError::NotLeader)), "{fired:?}");
    }
    assert!(world.store().fire_timers(current, 10).await.is_ok());
}

pub(super) async fn a_leader_that_resigns_is_followed_at_once(world: &World) {
    // R12
    let first = epoch(world, "one").await;
    world.store().resign(first).await.expect("resign");
    let second = epoch(world, "two").await;
    assert!(second > first);
}

pub(super) async fn a_leader_that_resigned_leads_no_more(world: &World) {
    let first = epoch(world, "one").await;
    world.store().resign(first).await.expect("resign");
    let fired = world.store().fire_timers(first, 10).await;
    assert!(matches!(fired, Err(StoreError::NotLeader)), "{fired:?}");
}

pub(super) async fn an_old_leader_cannot_unseat_the_new_one(world: &World) {
    // FA4
    let stale = stale_epoch(world).await;
    world.store().resign(stale).await.expect("resign");
    assert_eq!(lead(world, "three").await, Lead::Following);
    assert!(matches!(lead(world, "two").await, Lead::Leading(_)));
}

pub(super) async fn nobody_fires_before_somebody_leads(world: &World) {
    for made_up in [Epoch(0), Epoch(1)] {
        let fired = world.store().fire_timers(made_up, 10).await;
        assert!(matches!(fired, Err(StoreError::NotLeader)), "{fired:?}");
    }
}
