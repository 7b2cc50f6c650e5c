//! Tasks that nobody serves, and workers that come and go.

use stepwell::core::id::Queue;
use stepwell::ports::WorkerRegistration;
use stepwell::testing::conformance::world::{Flow, LEASE, TENANT, WORKER, worker};

use crate::acts;
use crate::stage::Stage;

fn registration(name: &str, flows: &[&Flow]) -> WorkerRegistration {
    WorkerRegistration {
        worker: worker(name),
        queues: vec![Queue::default_queue()],
        services: flows.iter().map(|flow| flow.0.service()).collect(),
        lease: LEASE,
    }
}

#[tokio::test]
async fn a_start_that_parks_its_tasks_meets_the_worker_that_serves_them() {
    let stage = Stage::open().await;
    let world = &stage.world;
    let flow = world.define_unserved("a; b; j < a, b").await;
    world.start(&flow).await;
    let start = acts::start(world.request(TENANT, "", &flow, b"input"));
    let register = acts::register(registration("newcomer", &[&flow]));
    let tried = stage.meet(&start, &register).await;
    assert!(tried.n_waits > 0, "they meet: {tried:?}");
    stage.close().await;
}

#[tokio::test]
async fn a_commit_that_parks_a_task_meets_the_worker_that_serves_it() {
    let stage = Stage::open().await;
    let world = &stage.world;
    world.limit(TENANT, 3).await;
    let flow = world.define("a; b < a").await;
    let run = world.start(&flow).await;
    world.start_many_for(TENANT, &flow, 3).await;
    let task = world.claim_one().await;
    assert_eq!(task.claim.run, run.key);
    // The worker that holds the task goes; nobody serves what the task makes ready.
    world.dismiss(&worker(WORKER)).await;
    let commit = acts::complete(task.claim);
    let register = acts::register(registration("newcomer", &[&flow]));
    let tried = stage.meet(&commit, &register).await;
    assert!(tried.n_waits > 0, "they meet: {tried:?}");
    stage.close().await;
}

#[tokio::test]
async fn the_last_worker_goes_while_another_comes() {
    let stage = Stage::open().await;
    let world = &stage.world;
    let flow = world.define("a; b").await;
    world.start_many_for(TENANT, &flow, 2).await;
    let deregister = acts::deregister(&worker(WORKER));
    let register = acts::register(registration("newcomer", &[&flow]));
    let tried = stage.meet(&deregister, &register).await;
    assert!(tried.n_waits > 0, "they meet: {tried:?}");
    stage.close().await;
}

#[tokio::test]
async fn the_last_worker_goes_while_it_claims() {
    let stage = Stage::open().await;
    let world = &stage.world;
    let flow = world.define("a; b").await;
    world.start_many_for(TENANT, &flow, 2).await;
    let deregister = acts::deregister(&worker(WORKER));
    let claim = acts::claim(&worker(WORKER), 3, 1);
    let tried = stage.meet(&deregister, &claim).await;
    assert!(tried.n_as.iter().all(|n| *n > 0), "they meet: {tried:?}");
    stage.close().await;
}
