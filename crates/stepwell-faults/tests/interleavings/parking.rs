//! Tasks that nobody serves, and workers that come and go.

use stepwell::core::id::Queue;
use stepwell::ports::{TaskPlace, WorkerRegistration};
use stepwell::testing::conformance::world::{Flow, LEASE, Run, TENANT, WORKER, worker};

use crate::acts;
use crate::stage::Stage;

fn registration(name: &str, flows: &[&Flow]) -> WorkerRegistration {
    WorkerRegistration {
        worker: worker(name),
        queues: vec![Queue::default_queue()],
        services: flows.iter().map(|flow| flow.0.marked_service()).collect(),
        lease: LEASE,
    }
}

fn is_served(place: &TaskPlace) -> bool {
    !is_parked(place)
}

fn is_parked(place: &TaskPlace) -> bool {
    *place == TaskPlace::Parked
}

#[tokio::test]
async fn a_start_that_parks_its_tasks_meets_the_worker_that_serves_them() {
    let stage = Stage::open().await;
    let world = &stage.world;
    let flow = world.define_unserved("a; b; j < a, b").await;
    world.start(&flow).await;
    let start = acts::start(world.request(TENANT, "", &flow, b"input"));
    let register = acts::register(registration("newcomer", &[&flow]));
    assert!(stage.meet_and_settle(&start, &register, is_served).await > 0, "they meet");
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
    assert!(stage.meet_and_settle(&commit, &register, is_served).await > 0, "they meet");
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
    assert!(stage.meet_and_settle(&deregister, &claim, is_parked).await > 0, "they meet");
    stage.close().await;
}

/// Two runs that are parked, and a worker that serves them since just now: nothing was moved yet.
async fn parked_and_served(stage: &Stage, tasks_max: Option<u32>) -> (Flow, [Run; 2]) {
    let world = &stage.world;
    world.limit(TENANT, tasks_max).await;
    let flow = world.define_unserved("a; b; j < a, b").await;
    let runs = [world.start(&flow).await, world.start(&flow).await];
    world.hire_for(WORKER, &["default"], &[]).await;
    let serve = format!(
        "insert into stepwell.serve (queue, service, worker) \
         select 'default', {}, no from stepwell.worker",
        flow.0.service().0
    );
    stage.change(&serve).await;
    (flow, runs)
}

/// Two runs that are ready, and nobody serves them since just now: nothing was moved yet.
async fn ready_and_unserved(stage: &Stage, tasks_max: Option<u32>) -> (Flow, [Run; 2]) {
    let world = &stage.world;
    world.limit(TENANT, tasks_max).await;
    let flow = world.define("a; b; j < a, b").await;
    let runs = [world.start(&flow).await, world.start(&flow).await];
    stage.change("delete from stepwell.serve").await;
    (flow, runs)
}

#[tokio::test]
async fn tasks_come_back_while_their_run_is_cancelled() {
    // S16
    for tasks_max in [None, Some(2)] {
        let stage = Stage::open().await;
        let (_, [run, _]) = parked_and_served(&stage, tasks_max).await;
        let cancel = acts::cancel(run.key);
        assert!(stage.meet_and_settle(&acts::settle(), &cancel, is_served).await > 0, "they meet");
        stage.close().await;
    }
}

#[tokio::test]
async fn tasks_are_parked_while_their_run_is_cancelled() {
    // S16
    for tasks_max in [None, Some(2)] {
        let stage = Stage::open().await;
        let (_, [run, _]) = ready_and_unserved(&stage, tasks_max).await;
        let cancel = acts::cancel(run.key);
        assert!(stage.meet_and_settle(&acts::settle(), &cancel, is_parked).await > 0, "they meet");
        stage.close().await;
    }
}

#[tokio::test]
async fn tasks_come_back_while_others_start() {
    for tasks_max in [None, Some(2)] {
        let stage = Stage::open().await;
        let (flow, _) = parked_and_served(&stage, tasks_max).await;
        let start = acts::start(stage.world.request(TENANT, "", &flow, b"input"));
        assert!(stage.meet_and_settle(&acts::settle(), &start, is_served).await > 0, "they meet");
        stage.close().await;
    }
}

#[tokio::test]
async fn two_leaders_let_the_same_tasks_come_back() {
    let stage = Stage::open().await;
    parked_and_served(&stage, Some(2)).await;
    let tried = stage.meet_and_settle(&acts::settle(), &acts::settle(), is_served).await;
    assert!(tried > 0, "they meet");
    stage.close().await;
}
