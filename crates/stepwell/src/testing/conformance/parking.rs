//! Parking: tasks that no live worker serves stand in nobody's way until one does.

use std::time::Duration;

use stepwell_core::queue::BLOCK_LENGTH;
use stepwell_core::run::{RunStatus, TaskState};

use super::world::{Flow, LEASE, Run, Sketch, TENANT, WORKER, World, worker};
use crate::ports::TaskPlace;

/// Whether a task waits for a worker that serves it.
async fn is_parked(world: &World, run: &Run, step: &str) -> bool {
    world.place(run, step).await == Some(TaskPlace::Parked)
}

async fn is_ready(world: &World, run: &Run, step: &str) -> bool {
    matches!(world.place(run, step).await, Some(TaskPlace::Ready(..)))
}

/// A workflow that one worker serves, and a run of it.
async fn served_by(world: &World, name: &str) -> (Flow, Run, stepwell_core::id::WorkerId) {
    let flow = world.define_unserved("a").await;
    let worker = world.hire_for(name, &["default"], &[&flow]).await;
    let run = world.start(&flow).await;
    (flow, run, worker)
}

pub(super) async fn a_task_that_nobody_serves_is_parked(world: &World) {
    // FE3
    let flow = world.define_unserved("a").await;
    let run = world.start(&flow).await;
    assert!(is_parked(world, &run, "a").await);
    assert_eq!(world.task(&run, "a").await.state(), TaskState::Queued);
    let view = world.tenant_view(TENANT).await;
    assert_eq!((view.n_ready, view.n_parked), (0, 1));
    world.define("other").await;
    assert!(world.claim_all().await.is_empty());
}

pub(super) async fn a_parked_task_comes_back_when_a_worker_registers(world: &World) {
    // FE3
    let flow = world.define_unserved("a").await;
    let run = world.start(&flow).await;
    world.serve(&flow).await;
    assert!(is_ready(world, &run, "a").await);
    assert_eq!(world.claim_one().await.attempt, 1);
}

/// More than any store moves in one transaction.
const MANY: usize = 1_200;

/// Starts many runs without looking at each.
async fn start_crowd(world: &World, flow: &Flow) {
    let requests = (0..MANY).map(|_| world.request(TENANT, "", flow, b"input")).collect();
    world.store().start(requests).await.expect("start a crowd");
}

/// Moves what has to move, as a leader does.
async fn settle(world: &World) {
    for _ in 0..MANY {
        if !world.store().settle_services().await.expect("settle services") {
            return;
        }
    }
    panic!("there is always something left");
}

pub(super) async fn many_parked_tasks_come_back_piece_by_piece(world: &World) {
    // L2
    let flow = world.define_unserved("a").await;
    start_crowd(world, &flow).await;
    assert_eq!(world.tenant_view(TENANT).await.n_parked, MANY);
    world.serve(&flow).await;
    settle(world).await;
    let view = world.tenant_view(TENANT).await;
    assert_eq!((view.n_parked, view.n_ready), (0, MANY));
}

pub(super) async fn many_ready_tasks_are_parked_piece_by_piece(world: &World) {
    // L2
    let flow = world.define("a").await;
    start_crowd(world, &flow).await;
    world.dismiss(&worker(WORKER)).await;
    settle(world).await;
    let view = world.tenant_view(TENANT).await;
    assert_eq!((view.n_parked, view.n_ready), (MANY, 0));
}

pub(super) async fn a_parked_task_follows_when_its_step_gets_another_queue(world: &World) {
    // G13: nobody will ever serve the old queue again.
    let old = world.define_unserved(Sketch::from("a @ old").named("deployed")).await;
    let run = world.start(&old).await;
    assert_eq!(world.place(&run, "a").await, Some(TaskPlace::Parked));
    let new = world.define(Sketch::from("a @ new").named("deployed")).await;
    assert_eq!(new.0.id, old.0.id, "policies are no structure");
    settle(world).await;
    assert_eq!(world.claim_one().await.claim.run, run.key);
}

pub(super) async fn a_parked_task_follows_when_other_steps_keep_its_queue(world: &World) {
    // G13: the queue is still that of another step, so tasks of that one stay.
    let old = world.define_unserved(Sketch::from("a @ old; b @ old").named("deployed")).await;
    let run = world.start(&old).await;
    let new = world.define_unserved(Sketch::from("a @ new; b @ old").named("deployed")).await;
    assert_eq!(new.0.id, old.0.id, "policies are no structure");
    settle(world).await;
    let worker = world.hire_for("new", &["new"], &[&new]).await;
    settle(world).await;
    let claimed = world.claim(&worker, 2).await;
    assert_eq!(claimed.len(), 1);
    assert_eq!(claimed[0].claim.node, new.node("a"));
    assert!(is_parked(world, &run, "b").await);
}

pub(super) async fn a_ready_task_follows_when_the_last_worker_of_its_old_queue_leaves(
    world: &World,
) {
    // G13
    let old = world.define_unserved(Sketch::from("a @ old").named("deployed")).await;
    let before = world.hire_for("before", &["old"], &[&old]).await;
    let run = world.start(&old).await;
    let new = world.define_unserved(Sketch::from("a @ new").named("deployed")).await;
    let after = world.hire_for("after", &["new"], &[&new]).await;
    assert!(world.claim(&after, 1).await.is_empty(), "its own worker is still there");
    world.dismiss(&before).await;
    settle(world).await;
    assert_eq!(world.claim(&after, 1).await[0].claim.run, run.key);
}

pub(super) async fn a_ready_task_is_parked_when_its_last_worker_leaves(world: &World) {
    let (_, run, only) = served_by(world, "only").await;
    assert!(is_ready(world, &run, "a").await);
    world.dismiss(&only).await;
    assert!(is_parked(world, &run, "a").await);
}

pub(super) async fn a_ready_task_is_parked_when_its_last_worker_dies(world: &World) {
    let (flow, run, only) = served_by(world, "only").await;
    world.lose(&only).await;
    assert!(is_parked(world, &run, "a").await);
    world.hire_for("next", &["default"], &[&flow]).await;
    assert!(is_ready(world, &run, "a").await);
}

pub(super) async fn a_ready_task_stays_while_another_worker_serves_it(world: &World) {
    let (flow, run, first) = served_by(world, "first").await;
    let second = world.hire_for("second", &["default"], &[&flow]).await;
    world.dismiss(&first).await;
    assert!(is_ready(world, &run, "a").await);
    world.dismiss(&second).await;
    assert!(is_parked(world, &run, "a").await);
}

pub(super) async fn a_worker_that_registers_with_less_parks_the_rest(world: &World) {
    let (flow, run, only) = served_by(world, "only").await;
    let other = world.define_unserved("b").await;
    world.hire_for(only.as_str(), &["default"], &[&other]).await;
    assert!(is_parked(world, &run, "a").await);
    world.hire_for(only.as_str(), &["default"], &[&other, &flow]).await;
    assert!(is_ready(world, &run, "a").await);
}

pub(super) async fn a_worker_of_another_queue_does_not_serve_a_task(world: &World) {
    let flow = world.define_unserved("a @ slow; b").await;
    world.hire_for("default-only", &["default"], &[&flow]).await;
    let run = world.start(&flow).await;
    assert!(is_parked(world, &run, "a").await);
    assert!(is_ready(world, &run, "b").await);
    world.hire_for("slow-only", &["slow"], &[&flow]).await;
    assert!(is_ready(world, &run, "a").await);
}

pub(super) async fn children_that_nobody_serves_are_parked_when_they_become_ready(world: &World) {
    let flow = world.define_unserved("a; b @ rare < a").await;
    let plain = world.hire_for("plain", &["default"], &[&flow]).await;
    let run = world.start(&flow).await;
    let batch = world.claim(&plain, 5).await;
    world.complete_together(&batch).await;
    assert!(is_parked(world, &run, "b").await);
}

pub(super) async fn a_retry_that_nobody_serves_is_parked_when_it_is_due(world: &World) {
    let flow = world.define_unserved("a * 1/10s").await;
    let only = world.hire_for("only", &["default"], &[&flow]).await;
    let run = world.start(&flow).await;
    world.fail(&world.claim(&only, 1).await[0]).await;
    world.dismiss(&only).await;
    world.pass(Duration::from_secs(10));
    world.fire().await;
    assert!(is_parked(world, &run, "a").await);
}

pub(super) async fn parking_is_not_charged(world: &World) {
    // FE3
    let (flow, run, first) = served_by(world, "first").await;
    world.dismiss(&first).await;
    world.hire_for("second", &["default"], &[&flow]).await;
    let task = world.task(&run, "a").await;
    assert_eq!((task.attempt, task.failures, task.losses), (0, 0, 0));
    assert_eq!(world.trail(&run).await, "RUN_STARTED, (a QUEUED)");
}

pub(super) async fn a_parked_task_can_be_cancelled(world: &World) {
    let flow = world.define_unserved("a; b").await;
    let run = world.start(&flow).await;
    world.cancel(&run).await;
    assert_eq!(world.status(&run).await, RunStatus::Cancelled);
    assert_eq!(world.tenant_view(TENANT).await.n_parked, 0);
    world.serve(&flow).await;
    assert!(world.claim_all().await.is_empty());
}

pub(super) async fn parked_tasks_take_no_slots_of_their_tenant(world: &World) {
    // R26
    let unserved = world.define_unserved("a").await;
    let flow = world.define("b").await;
    world.limit(TENANT, 1).await;
    world.start_many_for(TENANT, &unserved, 3).await;
    world.start(&flow).await;
    assert_eq!(world.claim_all().await.steps(), "b");
}

pub(super) async fn parked_tasks_come_back_within_the_limit(world: &World) {
    // R26, S15
    let flow = world.define_unserved("a").await;
    world.limit(TENANT, 2).await;
    world.start_many_for(TENANT, &flow, 5).await;
    world.serve(&flow).await;
    let view = world.tenant_view(TENANT).await;
    assert_eq!((view.n_ready, view.n_throttled, view.n_parked), (2, 3, 0));
    for _ in 0..5 {
        world.step().await;
    }
}

pub(super) async fn a_line_that_was_parked_does_not_overtake_others(world: &World) {
    // DESIGN: it comes back stamped anew.
    let unserved = world.define_unserved("late").await;
    let flow = world.define("a").await;
    world.start_many_for("patient", &unserved, 20).await;
    world.start_many_for("steady", &flow, 60).await;
    for _ in 0..30 {
        world.pass(Duration::from_millis(20));
        world.claim_one().await;
    }
    world.serve(&unserved).await;
    let next = world.claim(&worker(WORKER), 20).await.tenants();
    let n_steady = next.matches("steady").count();
    assert!((9..=11).contains(&n_steady), "{next}");
}

pub(super) async fn the_failure_handler_is_parked_like_any_task(world: &World) {
    // R20
    let flow = world.define_unserved(Sketch::from("a @ slow").on_failure()).await;
    let slow = world.hire_for("slow", &["slow"], &[&flow]).await;
    let run = world.start(&flow).await;
    let task = world.claim(&slow, 1).await[0].clone();
    world.dismiss(&slow).await;
    world.fail(&task).await;
    assert!(is_parked(world, &run, "on_failure").await);
    // It waits where the first step did.
    let slow = world.hire_for("slower", &["slow"], &[&flow]).await;
    let handler = world.claim(&slow, 1).await[0].clone();
    assert_eq!(handler.claim.node, run.node("on_failure"));
    world.complete(&handler).await;
    assert_eq!(world.status(&run).await, RunStatus::Failed);
}

pub(super) async fn parked_tasks_come_back_in_the_order_they_arrived(world: &World) {
    let first = world.define_unserved("a").await;
    let second = world.define_unserved("b").await;
    for flow in [&second, &first, &second, &first] {
        world.start(flow).await;
    }
    let worker = world.hire_for("late", &["default"], &[&first, &second]).await;
    assert_eq!(world.claim(&worker, 10).await.steps(), "b a b a");
}

pub(super) async fn what_only_the_dead_served_is_parked_without_a_place(world: &World) {
    // Its tenant would otherwise pay for places that nobody could use.
    let (flow, run, only) = served_by(world, "only").await;
    world.start_many_for("zeta", &flow, 2).await;
    assert_eq!(world.claim(&only, 3).await.len(), 3);
    world.pass(LEASE + Duration::from_millis(1));
    world.reap().await;
    assert!(is_parked(world, &run, "a").await);
    let next = world.hire_for("next", &["default"], &[&flow]).await;
    let place = world.place(&run, "a").await.expect("it is back");
    let TaskPlace::Ready(_, key) = place else { panic!("{place:?}") };
    assert_eq!(key.0, BLOCK_LENGTH, "at the frontier, one place behind the one it had");
    assert_eq!(world.claim(&next, 3).await.len(), 3);
}

pub(super) async fn a_child_of_a_wait_that_nobody_serves_is_parked(world: &World) {
    // L2, L7
    let flow = world.define_unserved("w ? paid; b < w").await;
    let run = world.start(&flow).await;
    world.signal(&run, "paid").await;
    assert_eq!(world.place(&run, "b").await, Some(TaskPlace::Parked));
    world.serve(&flow).await;
    assert_eq!(world.drain().await, "b");
}
